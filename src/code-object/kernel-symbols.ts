import { ByteReader } from "../bytes/byte-reader.ts";
import { decodeUtf8 } from "../bytes/text.ts";
import { safeNumber } from "../bytes/uint64.ts";
import { type ElfFile, type ElfSection, segmentOfAddress } from "../elf/elf-file.ts";
import { ELF_TYPE_RELOCATABLE } from "../elf/elf-header.ts";
import { readSymbol } from "../elf/symbols.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import { memorySource } from "../source/memory-source.ts";
import type { Source } from "../source/source.ts";
import { KERNEL_DESCRIPTOR_SIZE, type KernelDescriptor, parseKernelDescriptor } from "./kernel-descriptor.ts";

/** Finds kernel descriptors through the symbol table: of the sections, or of the dynamic segment where they are gone. */

interface Options {
  readonly signal?: AbortSignal | undefined;
}

/** A run of bytes in the file, as far as tables of symbols and names need to be known. */
type Table = Pick<ElfSection, "name" | "offset" | "size">;

interface SymbolTables {
  readonly symbols: Table;
  readonly names: Table;
}

const SECTION_TYPE_SYMTAB = 2;
const SECTION_TYPE_DYNSYM = 11;
const SEGMENT_TYPE_DYNAMIC = 2;
const SYMBOL_SIZE = 24;
const SYMBOL_TYPE_OBJECT = 1;
const DYNAMIC_ENTRY_SIZE = 16;
const TAG_HASH = 4n;
const TAG_STRTAB = 5n;
const TAG_SYMTAB = 6n;
const TAG_STRSZ = 10n;
const SUFFIX = ".kd";
const LONGEST_NAME = 1 << 16;
const MOST_TABLE_BYTES = 1 << 28;
/** Descriptors closer together than this are read at once. */
const LARGEST_SPAN = 1 << 20;

/** All descriptors by the name of their kernel. One read for each table, and one for descriptors that are neighbours. */
export async function readKernelDescriptors(
  source: Source,
  elf: ElfFile,
  options: Options = {},
): Promise<ReadonlyMap<string, KernelDescriptor>> {
  const tables = sectionTables(elf) ?? (await dynamicTables(source, elf, options));
  if (!tables) return new Map();
  const symbolBytes = await readTable(source, tables.symbols, options);
  const names = await readTable(source, tables.names, options);
  const table = { ...emptySection, ...tables.symbols, offset: 0, size: symbolBytes.length };
  const inMemory = memorySource(symbolBytes, source.name);
  const places: { readonly kernel: string; readonly offset: number; readonly address: bigint }[] = [];
  for (let index = 0; index < Math.floor(symbolBytes.length / SYMBOL_SIZE); index++) {
    const symbol = await readSymbol(inMemory, table, index);
    if ((symbol.info & 15) !== SYMBOL_TYPE_OBJECT || symbol.size !== BigInt(KERNEL_DESCRIPTOR_SIZE)) continue;
    const name = nameAt(names, symbol.nameOffset);
    if (!name.endsWith(SUFFIX)) continue;
    const offset = fileOffsetOf(elf, symbol.value, symbol.sectionIndex);
    if (offset === undefined || offset + KERNEL_DESCRIPTOR_SIZE > source.size) {
      throw new FormatError("OUT_OF_BOUNDS", "the kernel descriptor lies outside of the code object", {
        file: source.name,
        field: name,
        found: `address 0x${symbol.value.toString(16)}`,
      });
    }
    places.push({ kernel: name.slice(0, -SUFFIX.length), offset, address: symbol.value });
  }
  return await readDescriptors(source, places, options);
}

async function readDescriptors(
  source: Source,
  places: readonly { readonly kernel: string; readonly offset: number; readonly address: bigint }[],
  options: Options,
): Promise<ReadonlyMap<string, KernelDescriptor>> {
  const descriptors = new Map<string, KernelDescriptor>();
  const sorted = places.toSorted((a, b) => a.offset - b.offset);
  for (let first = 0; first < sorted.length; ) {
    const start = sorted[first]?.offset ?? 0;
    let end = start;
    let next = first;
    for (; next < sorted.length; next++) {
      const place = (sorted[next]?.offset ?? 0) + KERNEL_DESCRIPTOR_SIZE;
      if (place - start > LARGEST_SPAN) break;
      end = place;
    }
    const bytes = await source.read(start, end - start, options);
    for (const { kernel, offset, address } of sorted.slice(first, next)) {
      const own = bytes.subarray(offset - start, offset - start + KERNEL_DESCRIPTOR_SIZE);
      descriptors.set(kernel, parseKernelDescriptor(own, { file: source.name, base: offset, address }));
    }
    first = next;
  }
  return descriptors;
}

/** The dynamic symbols have all kernels that can be launched; an object that is not linked has only the others. */
function sectionTables(elf: ElfFile): SymbolTables | undefined {
  const symbols =
    elf.sections.find(({ type }) => type === SECTION_TYPE_DYNSYM) ??
    elf.sections.find(({ type }) => type === SECTION_TYPE_SYMTAB);
  const names = symbols && elf.sections[symbols.link];
  return symbols && names && { symbols, names };
}

/** The same tables by way of PT_DYNAMIC; the hash table says how many symbols there are. */
async function dynamicTables(
  source: Source,
  elf: ElfFile,
  options: Options,
): Promise<SymbolTables | undefined> {
  const segment = elf.segments.find(({ type }) => type === SEGMENT_TYPE_DYNAMIC);
  if (!segment) return undefined;
  const bytes = await readTable(
    source,
    { name: "dynamic segment", offset: segment.offset, size: segment.fileSize },
    options,
  );
  const reader = new ByteReader(bytes, { file: source.name, base: segment.offset });
  const values = new Map<bigint, bigint>();
  while (reader.remaining >= DYNAMIC_ENTRY_SIZE) {
    const tag = reader.u64Big("dynamic tag");
    if (tag === 0n) break;
    values.set(tag, reader.u64Big("dynamic value"));
  }
  const place = (tag: bigint): number | undefined => {
    const address = values.get(tag);
    return address === undefined ? undefined : fileOffsetOf(elf, address, undefined);
  };
  const [hash, symbols, names] = [place(TAG_HASH), place(TAG_SYMTAB), place(TAG_STRTAB)];
  const nameSize = safeNumber(values.get(TAG_STRSZ) ?? 0n);
  if (hash === undefined || symbols === undefined || names === undefined || nameSize === undefined)
    return undefined;
  const head = await readTable(source, { name: "symbol hash table", offset: hash, size: 8 }, options);
  const hashReader = new ByteReader(head, { file: source.name, base: hash });
  hashReader.skip(4, "symbol hash table: buckets");
  const count = hashReader.u32("symbol hash table: chains");
  return {
    symbols: { name: "dynamic symbols", offset: symbols, size: count * SYMBOL_SIZE },
    names: { name: "dynamic names", offset: names, size: nameSize },
  };
}

function fileOffsetOf(elf: ElfFile, value: bigint, sectionIndex: number | undefined): number | undefined {
  const address = safeNumber(value);
  if (address === undefined) return undefined;
  if (elf.header.type === ELF_TYPE_RELOCATABLE) {
    const section = sectionIndex === undefined ? undefined : elf.sections[sectionIndex];
    return section && section.offset + address;
  }
  const segment = segmentOfAddress(elf, address);
  return segment && segment.offset + (address - segment.address);
}

async function readTable(source: Source, table: Table, options: Options): Promise<Uint8Array> {
  const { name, offset, size } = table;
  const details = { file: source.name, field: name, offset };
  if (offset + size > source.size) {
    throw new FormatError("OUT_OF_BOUNDS", "the table ends behind the end of the code object", {
      ...details,
      expected: `at most ${source.size}`,
      found: offset + size,
    });
  }
  if (size > MOST_TABLE_BYTES) {
    throw new LimitError("LIMIT_EXCEEDED", "the table is too large", {
      ...details,
      expected: `at most ${MOST_TABLE_BYTES} bytes`,
      found: size,
    });
  }
  return await source.read(offset, size, options);
}

function nameAt(names: Uint8Array, offset: number): string {
  const window = names.subarray(offset, offset + LONGEST_NAME);
  const end = window.indexOf(0);
  return decodeUtf8(end < 0 ? window : window.subarray(0, end)) ?? "";
}

const emptySection: ElfSection = {
  index: 0,
  name: "",
  type: SECTION_TYPE_DYNSYM,
  flags: 0n,
  address: 0,
  offset: 0,
  size: 0,
  link: 0,
  info: 0,
  alignment: 8,
  entrySize: SYMBOL_SIZE,
};
