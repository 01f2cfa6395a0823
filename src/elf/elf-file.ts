import { ByteReader } from "../bytes/byte-reader.ts";
import { decodeUtf8 } from "../bytes/text.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import { ELF_HEADER_SIZE, type ElfHeader, parseElfHeader } from "./elf-header.ts";

/**
 * The tables of an ELF64 file: what it has on disk (sections) and in memory (segments).
 *
 * | offset | size | section header |
 * | --- | --- | --- |
 * | 0, 4 | 4, 4 | name (offset in the name table), type |
 * | 8, 16 | 8, 8 | flags, address |
 * | 24, 32 | 8, 8 | offset, size |
 * | 40, 44 | 4, 4 | link, info |
 * | 48, 56 | 8, 8 | alignment, entry size |
 *
 * | offset | size | program header |
 * | --- | --- | --- |
 * | 0, 4 | 4, 4 | type, flags |
 * | 8 | 8 | offset |
 * | 16, 24 | 8, 8 | virtual address, physical address |
 * | 32, 40 | 8, 8 | size in the file, size in memory |
 * | 48 | 8 | alignment |
 */
export interface ElfFile {
  readonly header: ElfHeader;
  /** In the order of the table, with the null section at 0. Empty when the file has no section headers. */
  readonly sections: readonly ElfSection[];
  /** In the order of the table. */
  readonly segments: readonly ElfSegment[];
}

export interface ElfSection {
  readonly index: number;
  readonly name: string;
  readonly type: number;
  readonly flags: bigint;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
  readonly info: number;
  readonly alignment: number;
  readonly entrySize: number;
}

export interface ElfSegment {
  readonly index: number;
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileSize: number;
  readonly memorySize: number;
  readonly alignment: number;
}

export const SECTION_TYPE_RELA = 4;
export const SECTION_TYPE_NOBITS = 8;
export const SECTION_TYPE_RELR = 19;
export const SECTION_FLAG_ALLOC = 2n;
export const SEGMENT_TYPE_LOAD = 1;

const SECTION_HEADER_SIZE = 64;
const PROGRAM_HEADER_SIZE = 56;
const EXTENDED_INDEX = 0xffff;
/** Linkers make a few dozen sections, compilers some ten thousand; a table beyond this is damage or an attack. */
const MOST_HEADERS = 1 << 20;
const MOST_NAME_BYTES = 1 << 28;
/** Longer ones are cut: a table without an end would be searched again for every section. */
const LONGEST_NAME = 4096;

/**
 * Reads header, section headers with names and program headers: four or five reads.
 * @throws FormatError when a table is outside the file or contradicts itself.
 */
export async function readElfFile(
  source: Source,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ElfFile> {
  const bytes = await source.read(0, Math.min(ELF_HEADER_SIZE, source.size), options);
  const header = parseElfHeader(bytes, { file: source.name });
  const first = await readNullSection(source, header, options);
  const sectionCount = first === undefined ? 0 : header.sectionHeaderCount || first.size;
  const nameIndex = header.sectionNameIndex === EXTENDED_INDEX ? (first?.link ?? 0) : header.sectionNameIndex;
  const segmentCount =
    header.programHeaderCount === EXTENDED_INDEX && first !== undefined
      ? first.info
      : header.programHeaderCount;
  const sectionTable = await readTable(source, options, {
    field: "section headers",
    offset: header.sectionHeaderOffset,
    count: sectionCount,
    entrySize: header.sectionHeaderSize,
    leastEntrySize: SECTION_HEADER_SIZE,
  });
  const raw = sectionTable.map((reader, index) => parseSection(reader, index));
  const names = await readNames(source, raw[nameIndex], options);
  const segmentTable = await readTable(source, options, {
    field: "program headers",
    offset: header.programHeaderOffset,
    count: segmentCount,
    entrySize: header.programHeaderSize,
    leastEntrySize: PROGRAM_HEADER_SIZE,
  });
  return {
    header,
    sections: raw.map(({ nameOffset, ...section }) => ({ ...section, name: nameAt(names, nameOffset) })),
    segments: segmentTable.map((reader, index) => parseSegment(reader, index)),
  };
}

/** The segment whose bytes in the file hold `address`, or undefined when none does. */
export function segmentOfAddress(elf: ElfFile, address: number): ElfSegment | undefined {
  return elf.segments.find(
    (segment) =>
      segment.type === SEGMENT_TYPE_LOAD &&
      address >= segment.address &&
      address < segment.address + segment.fileSize,
  );
}

type RawSection = Omit<ElfSection, "name"> & { readonly nameOffset: number };

/** Section 0 holds the numbers that do not fit into the header. */
async function readNullSection(
  source: Source,
  header: ElfHeader,
  options: { readonly signal?: AbortSignal | undefined },
): Promise<RawSection | undefined> {
  if (header.sectionHeaderOffset === 0) return undefined;
  const [reader] = await readTable(source, options, {
    field: "section headers",
    offset: header.sectionHeaderOffset,
    count: 1,
    entrySize: header.sectionHeaderSize,
    leastEntrySize: SECTION_HEADER_SIZE,
  });
  return reader && parseSection(reader, 0);
}

interface Table {
  readonly field: string;
  readonly offset: number;
  readonly count: number;
  readonly entrySize: number;
  readonly leastEntrySize: number;
}

async function readTable(
  source: Source,
  options: { readonly signal?: AbortSignal | undefined },
  table: Table,
): Promise<readonly ByteReader[]> {
  const { field, offset, count, entrySize } = table;
  if (count === 0) return [];
  if (entrySize < table.leastEntrySize) {
    throw new FormatError("SIZE_MISMATCH", "the entries are too small", {
      file: source.name,
      field: `${field}: entry size`,
      expected: table.leastEntrySize,
      found: entrySize,
    });
  }
  const size = count * entrySize;
  if (offset + size > source.size) {
    throw new FormatError("OUT_OF_BOUNDS", "the table ends behind the end of the file", {
      file: source.name,
      field,
      offset,
      expected: `at most ${source.size}`,
      found: offset + size,
    });
  }
  if (count > MOST_HEADERS) {
    throw new LimitError("LIMIT_EXCEEDED", "the table has too many entries", {
      file: source.name,
      field,
      offset,
      expected: `at most ${MOST_HEADERS}`,
      found: count,
    });
  }
  const bytes = await source.read(offset, size, options);
  return Array.from({ length: count }, (_, index) => {
    const start = index * entrySize;
    return new ByteReader(bytes.subarray(start, start + entrySize), {
      file: source.name,
      base: offset + start,
    });
  });
}

function parseSection(reader: ByteReader, index: number): RawSection {
  const field = `section ${index}`;
  return {
    index,
    nameOffset: reader.u32(`${field}: name`), // 0
    type: reader.u32(`${field}: type`), // 4
    flags: reader.u64Big(`${field}: flags`), // 8
    address: reader.u64(`${field}: address`), // 16
    offset: reader.u64(`${field}: offset`), // 24
    size: reader.u64(`${field}: size`), // 32
    link: reader.u32(`${field}: link`), // 40
    info: reader.u32(`${field}: info`), // 44
    alignment: reader.u64(`${field}: alignment`), // 48
    entrySize: reader.u64(`${field}: entry size`), // 56
  };
}

function parseSegment(reader: ByteReader, index: number): ElfSegment {
  const field = `program header ${index}`;
  const type = reader.u32(`${field}: type`); // 0
  const flags = reader.u32(`${field}: flags`); // 4
  const offset = reader.u64(`${field}: offset`); // 8
  const address = reader.u64(`${field}: address`); // 16
  reader.skip(8, `${field}: physical address`); // 24
  return {
    index,
    type,
    flags,
    offset,
    address,
    fileSize: reader.u64(`${field}: file size`), // 32
    memorySize: reader.u64(`${field}: memory size`), // 40
    alignment: reader.u64(`${field}: alignment`), // 48
  };
}

async function readNames(
  source: Source,
  section: RawSection | undefined,
  options: { readonly signal?: AbortSignal | undefined },
): Promise<Uint8Array> {
  if (section === undefined || section.type === SECTION_TYPE_NOBITS) return new Uint8Array(0);
  if (section.offset + section.size > source.size) {
    throw new FormatError("OUT_OF_BOUNDS", "the section names end behind the end of the file", {
      file: source.name,
      field: `section ${section.index}: size`,
      offset: section.offset,
      expected: `at most ${source.size}`,
      found: section.offset + section.size,
    });
  }
  if (section.size > MOST_NAME_BYTES) {
    throw new LimitError("LIMIT_EXCEEDED", "the table of section names is too large", {
      file: source.name,
      field: `section ${section.index}: size`,
      expected: `at most ${MOST_NAME_BYTES}`,
      found: section.size,
    });
  }
  return await source.read(section.offset, section.size, options);
}

function nameAt(names: Uint8Array, offset: number): string {
  const window = names.subarray(offset, offset + LONGEST_NAME);
  const end = window.indexOf(0);
  return decodeUtf8(end < 0 ? window : window.subarray(0, end)) ?? "";
}
