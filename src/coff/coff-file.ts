import { ByteReader } from "../bytes/byte-reader.ts";
import { decodeUtf8 } from "../bytes/text.ts";
import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";

/**
 * A Windows image (PE32+) or COFF object file, as far as its sections.
 *
 * | offset | size | image |
 * | --- | --- | --- |
 * | 0 | 2 | `MZ` |
 * | 60 | 4 | offset of `PE\0\0`, after which the COFF header follows |
 *
 * | offset | size | COFF header |
 * | --- | --- | --- |
 * | 0, 2 | 2, 2 | machine, number of sections |
 * | 8, 12 | 4, 4 | offset of the symbol table, number of symbols |
 * | 16 | 2 | size of the optional header |
 *
 * | offset | size | optional header of PE32+ |
 * | --- | --- | --- |
 * | 0 | 2 | magic 0x20b |
 * | 24 | 8 | image base |
 * | 32, 36 | 4, 4 | alignment of sections in memory, in the file |
 *
 * | offset | size | section header, 40 bytes |
 * | --- | --- | --- |
 * | 0 | 8 | name, or `/` and a decimal offset in the string table behind the symbol table |
 * | 8, 12 | 4, 4 | size in memory (0 in object files), address relative to the image base |
 * | 16, 20 | 4, 4 | size in the file (rounded up), offset in the file |
 * | 36 | 4 | characteristics |
 */
export interface CoffFile {
  readonly isObject: boolean;
  readonly machine: number;
  /** Offset in the file of the COFF header. */
  readonly headerOffset: number;
  /** 0 in an object file. */
  readonly imageBase: number;
  readonly sections: readonly CoffSection[];
}

export interface CoffSection {
  readonly index: number;
  /** The long name where there is one. */
  readonly name: string;
  readonly virtualSize: number;
  /** Relative to the image base. */
  readonly address: number;
  readonly rawSize: number;
  readonly rawOffset: number;
  readonly characteristics: number;
  /** Bytes of the section that the file has: without the padding of `rawSize`. */
  readonly presentSize: number;
  /** Offset in the file of the section's header. */
  readonly headerOffset: number;
}

export const COFF_MACHINE_X86_64 = 0x8664;

const COFF_HEADER_SIZE = 20;
const SECTION_HEADER_SIZE = 40;
const SYMBOL_SIZE = 18;
const LONGEST_NAME = 256;
const PE32_PLUS = 0x20b;
const UNINITIALISED_DATA = 0x80;

interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the headers of an image or an object file: three reads, and one for each long section name.
 * @throws FormatError when a header is outside the file or is none.
 */
export async function readCoffFile(source: Source, options: ReadOptions = {}): Promise<CoffFile> {
  const start = await source.read(0, Math.min(64, source.size), options);
  const isImage = start[0] === 0x4d && start[1] === 0x5a;
  const headerOffset = isImage ? await findHeader(source, start, options) : 0;
  const header = await readerAt(source, headerOffset, COFF_HEADER_SIZE, options);
  const machine = header.u16("coff machine"); // 0
  const sectionCount = header.u16("coff section count"); // 2
  header.skip(4, "coff time stamp"); // 4
  const symbolTableOffset = header.u32("coff symbol table"); // 8
  const symbolCount = header.u32("coff symbol count"); // 12
  const optionalSize = header.u16("coff optional header size"); // 16
  const optionalOffset = headerOffset + COFF_HEADER_SIZE;
  const imageBase = isImage ? await readImageBase(source, optionalOffset, optionalSize, options) : 0;
  const tableOffset = optionalOffset + optionalSize;
  const table = await readerAt(source, tableOffset, sectionCount * SECTION_HEADER_SIZE, options);
  const stringTable = symbolTableOffset === 0 ? undefined : symbolTableOffset + symbolCount * SYMBOL_SIZE;
  const sections: CoffSection[] = [];
  for (let index = 0; index < sectionCount; index++) {
    const section = parseSection(table, index);
    sections.push({ ...section, name: await longName(source, section.name, stringTable, options) });
  }
  return { isObject: !isImage, machine, headerOffset, imageBase, sections };
}

async function findHeader(source: Source, start: Uint8Array, options: ReadOptions): Promise<number> {
  const reader = new ByteReader(start, { file: source.name });
  reader.skip(60, "dos header");
  const offset = reader.u32("offset of the PE header"); // 60
  const signature = await readerAt(source, offset, 4, options);
  const found = signature.u32("pe signature");
  if (found !== 0x4550) {
    throw new FormatError("BAD_MAGIC", "this is no PE image", {
      file: source.name,
      field: "pe signature",
      offset,
      expected: "0x4550",
      found: `0x${found.toString(16)}`,
    });
  }
  return offset + 4;
}

async function readImageBase(
  source: Source,
  offset: number,
  size: number,
  options: ReadOptions,
): Promise<number> {
  const reader = await readerAt(source, offset, Math.min(size, 32), options);
  const magic = reader.u16("pe optional header magic"); // 0
  if (magic !== PE32_PLUS) {
    throw new FormatError("UNSUPPORTED_VERSION", "only 64-bit images (PE32+) are supported", {
      file: source.name,
      field: "pe optional header magic",
      offset,
      expected: PE32_PLUS,
      found: magic,
    });
  }
  reader.skip(22, "pe optional header");
  return reader.u64("pe image base"); // 24
}

function parseSection(reader: ByteReader, index: number): CoffSection {
  const field = `section ${index}`;
  const headerOffset = reader.offset;
  const name = textUntilZero(reader.take(8, `${field}: name`)); // 0
  const virtualSize = reader.u32(`${field}: virtual size`); // 8
  const address = reader.u32(`${field}: address`); // 12
  const rawSize = reader.u32(`${field}: raw size`); // 16
  const rawOffset = reader.u32(`${field}: raw offset`); // 20
  reader.skip(12, `${field}: relocations and line numbers`); // 24
  const characteristics = reader.u32(`${field}: characteristics`); // 36
  const isEmpty = rawOffset === 0 || (characteristics & UNINITIALISED_DATA) !== 0;
  const presentSize = isEmpty ? 0 : virtualSize === 0 ? rawSize : Math.min(virtualSize, rawSize);
  return {
    index,
    name,
    virtualSize,
    address,
    rawSize,
    rawOffset,
    characteristics,
    presentSize,
    headerOffset,
  };
}

/** `/123` is an offset in the string table. A name that cannot be found stays as it is. */
async function longName(
  source: Source,
  name: string,
  stringTable: number | undefined,
  options: ReadOptions,
): Promise<string> {
  if (stringTable === undefined || !/^\/[0-9]+$/.test(name)) return name;
  const offset = stringTable + Number(name.slice(1));
  if (offset >= source.size) return name;
  const bytes = await source.read(offset, Math.min(LONGEST_NAME, source.size - offset), options);
  return textUntilZero(bytes) || name;
}

function textUntilZero(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decodeUtf8(end < 0 ? bytes : bytes.subarray(0, end)) ?? "";
}

async function readerAt(
  source: Source,
  offset: number,
  size: number,
  options: ReadOptions,
): Promise<ByteReader> {
  const bytes = await source.read(offset, size, options);
  return new ByteReader(bytes, { file: source.name, base: offset });
}
