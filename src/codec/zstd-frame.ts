import { FormatError } from "../errors/errors.ts";
import { ByteReader } from "../bytes/byte-reader.ts";
import { describeUint64, safeNumber } from "../bytes/uint64.ts";

/**
 * The outside of a zstd frame (RFC 8878, section 3.1): where it ends and what it promises, without decoding it.
 *
 * A decoder is no judge of this: Node's accepts bytes after the frame and several frames in a row, and returns
 * nothing for a skippable frame in front.
 *
 * | bytes | what |
 * | --- | --- |
 * | 4 | magic 28 B5 2F FD |
 * | 1 | descriptor: content size flag (bits 6–7), single segment (5), checksum (2), dictionary id flag (0–1) |
 * | 0–1 | window descriptor, unless single segment |
 * | 0–4 | dictionary id |
 * | 0–8 | content size |
 * | … | blocks: 3-byte header (last 1 bit, type 2 bits, size 21 bits) and data |
 * | 0–4 | checksum of the content |
 */
export interface ZstdFrame {
  /** Offset of the frame in the given bytes: after skippable frames. */
  readonly start: number;
  /** Bytes of the frame, header to checksum. */
  readonly size: number;
  readonly contentSize: number | undefined;
  /** The most that the frame's blocks can decode to: no block gives more than 128 KiB. */
  readonly largestContent: number;
  readonly hasChecksum: boolean;
  readonly dictionaryId: number;
  /** Bytes of skippable frames in front of the frame. */
  readonly skippedBytes: number;
}

const ZSTD_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const BLOCK_CONTENT_LIMIT = 131072;
const BLOCK_TYPE_RLE = 1;
const BLOCK_TYPE_RESERVED = 3;

/**
 * Walks the first zstd frame in `bytes`, past skippable frames.
 * @throws FormatError `TRUNCATED` or `DECOMPRESSION_FAILED` when there is no whole frame.
 */
export function scanZstdFrame(
  bytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base?: number } = {},
): ZstdFrame {
  const reader = new ByteReader(bytes, place);
  let magic = reader.u32("zstd frame magic");
  while ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
    reader.skip(reader.u32("skippable frame size"), "skippable frame");
    magic = reader.u32("zstd frame magic");
  }
  const start = reader.position - 4;
  if (magic !== ZSTD_MAGIC) {
    throw new FormatError("DECOMPRESSION_FAILED", "this is no zstd frame", {
      ...reader.details("zstd frame magic", reader.base + start),
      expected: "28b52ffd",
      found: magic
        .toString(16)
        .padStart(8, "0")
        .replace(/(..)(..)(..)(..)/, "$4$3$2$1"),
    });
  }
  const descriptor = reader.u8("zstd frame descriptor");
  if ((descriptor & 0x08) !== 0) {
    throw new FormatError("DECOMPRESSION_FAILED", "a reserved bit of the zstd frame is set", {
      ...reader.details("zstd frame descriptor", reader.offset - 1),
    });
  }
  const singleSegment = (descriptor & 0x20) !== 0;
  if (!singleSegment) reader.skip(1, "zstd window descriptor");
  const dictionaryId = readDictionaryId(reader, descriptor & 3);
  const contentSize = readContentSize(reader, descriptor >> 6, singleSegment);
  const blocks = skipBlocks(reader);
  const hasChecksum = (descriptor & 0x04) !== 0;
  if (hasChecksum) reader.skip(4, "zstd content checksum");
  return {
    start,
    size: reader.position - start,
    contentSize,
    largestContent: blocks * BLOCK_CONTENT_LIMIT,
    hasChecksum,
    dictionaryId,
    skippedBytes: start,
  };
}

function readDictionaryId(reader: ByteReader, flag: number): number {
  const field = "zstd dictionary id";
  if (flag === 0) return 0;
  return flag === 1 ? reader.u8(field) : flag === 2 ? reader.u16(field) : reader.u32(field);
}

function readContentSize(reader: ByteReader, flag: number, singleSegment: boolean): number | undefined {
  const field = "zstd content size";
  if (flag === 0) return singleSegment ? reader.u8(field) : undefined;
  if (flag === 1) return reader.u16(field) + 256;
  if (flag === 2) return reader.u32(field);
  const offset = reader.offset;
  const size = reader.u64Big(field);
  const number = safeNumber(size);
  if (number === undefined) {
    throw new FormatError("SIZE_MISMATCH", "the frame claims more bytes than any kernel has", {
      ...reader.details(field, offset),
      found: describeUint64(size),
    });
  }
  return number;
}

/** Moves past the blocks and returns how many there are. */
function skipBlocks(reader: ByteReader): number {
  let blocks = 0;
  for (let last = false; !last; blocks++) {
    const header = reader.u16("zstd block header") | (reader.u8("zstd block header") << 16);
    last = (header & 1) !== 0;
    const type = (header >> 1) & 3;
    if (type === BLOCK_TYPE_RESERVED) {
      throw new FormatError("DECOMPRESSION_FAILED", "a zstd block has the reserved type", {
        ...reader.details("zstd block header", reader.offset - 3),
      });
    }
    reader.skip(type === BLOCK_TYPE_RLE ? 1 : header >> 3, "zstd block");
  }
  return blocks;
}
