import { ByteReader } from "../bytes/byte-reader.ts";
import { safeNumber } from "../bytes/uint64.ts";
import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import {
  type ElfFile,
  type ElfSection,
  SECTION_FLAG_ALLOC,
  SECTION_TYPE_RELA,
  SECTION_TYPE_RELR,
} from "./elf-file.ts";
import { ELF_TYPE_RELOCATABLE } from "./elf-header.ts";
import { readInside } from "./read-inside.ts";

/**
 * Relocations: what the dynamic linker (or, in an object file, the linker) writes into a word.
 *
 * | offset | size | RELA entry |
 * | --- | --- | --- |
 * | 0 | 8 | place: an address; in an object file an offset in the section |
 * | 8 | 8 | type (low 32 bits), symbol index (high 32 bits) |
 * | 16 | 8 | addend, signed |
 *
 * RELR is a list of u64 words. An even one is an address to relocate, and the base becomes that address + 8.
 * An odd one is a bitmap: bit i (1 to 63) stands for the word at base + (i − 1) × 8; then the base moves 63 × 8 on.
 * The addend of a RELR relocation is the word in the file.
 */
export interface Relocation {
  /** As the entry has it: an address, or in an object file an offset in the section. */
  readonly place: number;
  /** `R_X86_64_…` number. */
  readonly type: number;
  readonly symbolIndex: number;
  /** The addend, or undefined for RELR, where it is the word in the file. */
  readonly addend: bigint | undefined;
  /** The section that has the relocation. */
  readonly section: ElfSection;
  /** Offset in the file of the RELA entry, or undefined for RELR, which has no entry per word. */
  readonly entryOffset: number | undefined;
}

export const R_X86_64_64 = 1;
export const R_X86_64_RELATIVE = 8;

const RELA_ENTRY_SIZE = 24;
const RELR_WORD_SIZE = 8;
const BITMAP_WORDS = 63;
/** Tables of large libraries have tens of megabytes. A multiple of both entry sizes. */
const BLOCK_SIZE = RELA_ENTRY_SIZE * 65536;

/**
 * The relocations of the words at places from `start` to before `end`, as they stand in the tables.
 * In a linked file places are addresses, and only the tables that the dynamic linker uses count; in an object file
 * they are offsets in `target`.
 */
export async function findRelocations(
  source: Source,
  elf: ElfFile,
  range: { readonly start: number; readonly end: number; readonly target: ElfSection },
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly Relocation[]> {
  const isObject = elf.header.type === ELF_TYPE_RELOCATABLE;
  const found: Relocation[] = [];
  let size = 0;
  for (const section of elf.sections) {
    // Linkers keep other tables for analysis tools (--emit-relocs), which nothing applies.
    const applies = isObject
      ? section.info === range.target.index
      : (section.flags & SECTION_FLAG_ALLOC) !== 0n;
    if (!applies || (section.type !== SECTION_TYPE_RELA && section.type !== SECTION_TYPE_RELR)) continue;
    size += section.size;
    // Tables never overlap. A million headers of one table would have it read a million times.
    if (size > source.size) throw tablesTooLarge(source, section, size);
    if (section.type === SECTION_TYPE_RELA) {
      for await (const relocation of relaEntries(source, section, range, options)) found.push(relocation);
    } else if (!isObject) {
      for await (const relocation of relrPlaces(source, section, range, options)) found.push(relocation);
    }
  }
  return found;
}

function tablesTooLarge(source: Source, section: ElfSection, size: number): FormatError {
  return new FormatError("OUT_OF_BOUNDS", "the tables of relocations are larger than the file", {
    file: source.name,
    field: `relocations in ${section.name}`,
    offset: section.offset,
    expected: `at most ${source.size}`,
    found: size,
  });
}

async function* relaEntries(
  source: Source,
  section: ElfSection,
  range: { readonly start: number; readonly end: number },
  options: { readonly signal?: AbortSignal | undefined },
): AsyncIterable<Relocation> {
  for await (const reader of blocksOf(source, section, options)) {
    while (reader.remaining >= RELA_ENTRY_SIZE) {
      const entryOffset = reader.offset;
      const place = safeNumber(reader.u64Big("relocation: place")); // 0
      if (place === undefined || place < range.start || place >= range.end) {
        reader.skip(RELA_ENTRY_SIZE - 8, "relocation");
        continue;
      }
      const type = reader.u32("relocation: type"); // 8
      const symbolIndex = reader.u32("relocation: symbol"); // 12
      const addend = BigInt.asIntN(64, reader.u64Big("relocation: addend")); // 16
      yield { place, type, symbolIndex, addend, section, entryOffset };
    }
  }
}

async function* relrPlaces(
  source: Source,
  section: ElfSection,
  range: { readonly start: number; readonly end: number },
  options: { readonly signal?: AbortSignal | undefined },
): AsyncIterable<Relocation> {
  const relocation = (place: number): Relocation => ({
    place,
    type: R_X86_64_RELATIVE,
    symbolIndex: 0,
    addend: undefined,
    section,
    entryOffset: undefined,
  });
  const isWanted = (place: number): boolean => place >= range.start && place < range.end;
  let base = 0;
  for await (const reader of blocksOf(source, section, options)) {
    while (reader.remaining >= RELR_WORD_SIZE) {
      const word = reader.u64Big("relr word");
      if ((word & 1n) === 0n) {
        const place = safeNumber(word);
        if (place === undefined) continue;
        if (isWanted(place)) yield relocation(place);
        base = place + RELR_WORD_SIZE;
        continue;
      }
      const next = base + BITMAP_WORDS * RELR_WORD_SIZE;
      if (next > range.start && base < range.end) {
        for (let bit = 1; bit <= BITMAP_WORDS; bit++) {
          const place = base + (bit - 1) * RELR_WORD_SIZE;
          if (((word >> BigInt(bit)) & 1n) !== 0n && isWanted(place)) yield relocation(place);
        }
      }
      base = next;
    }
  }
}

async function* blocksOf(
  source: Source,
  section: ElfSection,
  options: { readonly signal?: AbortSignal | undefined },
): AsyncIterable<ByteReader> {
  for (let done = 0; done < section.size; done += BLOCK_SIZE) {
    const offset = section.offset + done;
    const extent = { offset, size: Math.min(BLOCK_SIZE, section.size - done) };
    const bytes = await readInside(source, extent, `relocations in ${section.name}`, options);
    yield new ByteReader(bytes, { file: source.name, base: offset });
  }
}
