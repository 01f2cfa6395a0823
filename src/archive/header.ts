import { ByteReader } from "../bytes/byte-reader.ts";
import { ByteWriter } from "../bytes/byte-writer.ts";
import { describeUint64, safeNumber } from "../bytes/uint64.ts";
import { FormatError } from "../errors/errors.ts";
import { HEADER_FIELDS_SIZE } from "../scheme/area-check.ts";

/**
 * The header of an archive, little-endian:
 *
 * | offset | bytes | what |
 * | --- | --- | --- |
 * | 0 | 4 | magic `KPAK` |
 * | 4 | 4 | u32 format version, 1 |
 * | 8 | 8 | u64 absolute offset of the table of contents |
 * | 16 | 48 | zero, so that the blob area begins at 64 |
 */
export const HEADER_SIZE = 64;
export const FORMAT_VERSION = 1;
/** Where the TOC's offset stands, to be patched when it is known. */
export const TOC_OFFSET_POSITION = 8;
const MAGIC = 0x4b41504b;

/** Reads the header from the file's first bytes (at least 16 where the file has them) and returns the TOC offset. */
export function decodeHeader(
  bytes: Uint8Array,
  file: { readonly name: string; readonly size: number },
): number {
  if (file.size === 0) {
    throw new FormatError("EMPTY_FILE", "the file is empty", {
      file: file.name,
      hint: "A copy or download may have failed.",
    });
  }
  const reader = new ByteReader(bytes, { file: file.name });
  if (file.size < HEADER_FIELDS_SIZE) {
    throw new FormatError("TRUNCATED", "the file is smaller than a header", {
      ...reader.details("header", file.size),
      expected: `${HEADER_FIELDS_SIZE} bytes`,
      found: file.size,
    });
  }
  const magic = reader.u32("magic"); // 0
  if (magic !== MAGIC) {
    throw new FormatError("BAD_MAGIC", "this is no .kpack archive", {
      ...reader.details("magic", 0),
      expected: "KPAK",
      found: describeMagic(bytes),
    });
  }
  const version = reader.u32("format version"); // 4
  if (version !== FORMAT_VERSION) {
    throw new FormatError("UNSUPPORTED_VERSION", "this version of the format is not known", {
      ...reader.details("format version", 4),
      expected: FORMAT_VERSION,
      found: version,
    });
  }
  if (file.size === HEADER_FIELDS_SIZE) {
    throw new FormatError(
      "OUT_OF_BOUNDS",
      "the file ends after its header: there is no room for a table of contents",
      {
        ...reader.details("TOC offset", TOC_OFFSET_POSITION),
        expected: `more than ${HEADER_FIELDS_SIZE} bytes`,
        found: file.size,
        hint: "The file may be cut short, or its writer did not finish.",
      },
    );
  }
  const value = reader.u64Big("TOC offset"); // 8
  const tocOffset = safeNumber(value);
  if (tocOffset === undefined || tocOffset < HEADER_FIELDS_SIZE || tocOffset >= file.size) {
    throw new FormatError("OUT_OF_BOUNDS", "the table of contents cannot begin there", {
      ...reader.details("TOC offset", TOC_OFFSET_POSITION),
      expected: `${HEADER_FIELDS_SIZE} to ${file.size - 1}`,
      found: describeUint64(value),
      hint: "The file may be cut short, or its writer did not finish.",
    });
  }
  return tocOffset;
}

/** A whole header with its padding. */
export function encodeHeader(tocOffset: number): Uint8Array {
  const writer = new ByteWriter(HEADER_SIZE);
  writer.u32(MAGIC);
  writer.u32(FORMAT_VERSION);
  writer.u64(tocOffset);
  writer.append(new Uint8Array(HEADER_SIZE - HEADER_FIELDS_SIZE));
  return writer.finish();
}

function describeMagic(bytes: Uint8Array): string {
  const first = bytes.subarray(0, 4);
  const text = String.fromCharCode(...first);
  return /^[\x20-\x7e]{4}$/.test(text)
    ? text
    : Array.from(first, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
