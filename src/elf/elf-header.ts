import { ByteReader } from "../bytes/byte-reader.ts";
import { FormatError } from "../errors/errors.ts";

/**
 * The header of a little-endian ELF64 file.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | magic 7F 45 4C 46 |
 * | 4 | 1 | class: 2 is 64-bit |
 * | 5 | 1 | data: 1 is little-endian |
 * | 6 | 1 | version |
 * | 7 | 1 | OS ABI |
 * | 8 | 1 | ABI version |
 * | 16 | 2 | type |
 * | 18 | 2 | machine |
 * | 24 | 8 | entry |
 * | 32 | 8 | offset of the program headers |
 * | 40 | 8 | offset of the section headers |
 * | 48 | 4 | flags |
 * | 52 | 2 | size of this header |
 * | 54, 56 | 2, 2 | size and number of program headers |
 * | 58, 60 | 2, 2 | size and number of section headers |
 * | 62 | 2 | index of the section that holds the sections' names |
 */
export interface ElfHeader {
  readonly osAbi: number;
  readonly abiVersion: number;
  readonly type: number;
  readonly machine: number;
  readonly entry: bigint;
  readonly programHeaderOffset: number;
  readonly sectionHeaderOffset: number;
  readonly flags: number;
  readonly programHeaderSize: number;
  /** As it stands in the header: 0xffff when section 0 has the real number. */
  readonly programHeaderCount: number;
  readonly sectionHeaderSize: number;
  /** As it stands in the header: 0 when section 0 has the real number. */
  readonly sectionHeaderCount: number;
  /** As it stands in the header: 0xffff when section 0 has the real number. */
  readonly sectionNameIndex: number;
}

export const ELF_HEADER_SIZE = 64;

export const ELF_TYPE_RELOCATABLE = 1;
export const ELF_MACHINE_X86_64 = 62;
export const ELF_MACHINE_AMDGPU = 224;

const ELF_MAGIC = 0x464c457f;
const CLASS_64 = 2;
const DATA_LITTLE_ENDIAN = 1;

export function hasElfMagic(bytes: Uint8Array): boolean {
  return bytes[0] === 0x7f && bytes[1] === 0x45 && bytes[2] === 0x4c && bytes[3] === 0x46;
}

/**
 * Parses an ELF header.
 * @throws FormatError `TRUNCATED`, `BAD_MAGIC`, or `UNSUPPORTED_VERSION` for 32-bit and big-endian files.
 */
export function parseElfHeader(
  bytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base?: number } = {},
): ElfHeader {
  const reader = new ByteReader(bytes, place);
  const magic = reader.u32("elf magic");
  if (magic !== ELF_MAGIC) {
    throw new FormatError("BAD_MAGIC", "this is no ELF file", {
      ...reader.details("elf magic", reader.base),
      expected: "0x464c457f",
      found: `0x${magic.toString(16)}`,
    });
  }
  requireByte(reader, "elf class", CLASS_64, "only 64-bit ELF files are supported");
  requireByte(reader, "elf data encoding", DATA_LITTLE_ENDIAN, "only little-endian ELF files are supported");
  reader.skip(1, "elf version"); // 6
  const osAbi = reader.u8("elf OS ABI"); // 7
  const abiVersion = reader.u8("elf ABI version"); // 8
  reader.skip(7, "elf padding"); // 9
  const type = reader.u16("elf type"); // 16
  const machine = reader.u16("elf machine"); // 18
  reader.skip(4, "elf version"); // 20
  const entry = reader.u64Big("elf entry"); // 24
  const programHeaderOffset = reader.u64("elf program header offset"); // 32
  const sectionHeaderOffset = reader.u64("elf section header offset"); // 40
  const flags = reader.u32("elf flags"); // 48
  reader.skip(2, "elf header size"); // 52
  return {
    osAbi,
    abiVersion,
    type,
    machine,
    entry,
    programHeaderOffset,
    sectionHeaderOffset,
    flags,
    programHeaderSize: reader.u16("elf program header size"), // 54
    programHeaderCount: reader.u16("elf program header count"), // 56
    sectionHeaderSize: reader.u16("elf section header size"), // 58
    sectionHeaderCount: reader.u16("elf section header count"), // 60
    sectionNameIndex: reader.u16("elf section name index"), // 62
  };
}

function requireByte(reader: ByteReader, field: string, expected: number, summary: string): void {
  const found = reader.u8(field);
  if (found !== expected) {
    throw new FormatError("UNSUPPORTED_VERSION", summary, {
      ...reader.details(field, reader.offset - 1),
      expected,
      found,
    });
  }
}
