import { ByteReader } from "../bytes/byte-reader.ts";
import type { Limits } from "../bytes/limits.ts";
import { describeUint64 } from "../bytes/uint64.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import type { BundleCompression } from "./bundle.ts";

/**
 * The header of a compressed offload bundle.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | magic `CCOB` |
 * | 4 | 2 | version: 1, 2 or 3 |
 * | 6 | 2 | method: 0 zlib, 1 zstd |
 *
 * | version | total size | uncompressed size | hash | header bytes |
 * | --- | --- | --- | --- | --- |
 * | 1 | – | u32 at 8 | u64 at 12 | 20 |
 * | 2 | u32 at 8 | u32 at 12 | u64 at 16 | 24 |
 * | 3 | u64 at 8 | u64 at 16 | u64 at 24 | 32 |
 *
 * The total size counts the header. The hash is the first 8 bytes of the MD5 of the uncompressed content.
 */
export const COMPRESSED_MAGIC = "CCOB";
/** Of the version with the largest header. */
export const LARGEST_COMPRESSED_HEADER = 32;

const METHODS: ReadonlyMap<number, "zlib" | "zstd"> = new Map([
  [0, "zlib"],
  [1, "zstd"],
]);

/**
 * Parses the header at the start of `bytes`, of which the first {@link LARGEST_COMPRESSED_HEADER} are needed.
 * @param available How many bytes the bundle may have.
 * @throws FormatError when the header contradicts itself or the bytes that are there; LimitError when the content
 *   would be too large.
 */
export function parseCompressedHeader(
  bytes: Uint8Array,
  available: number,
  limits: Limits,
  place: { readonly file: string; readonly fileOffset: number; readonly field: string },
): BundleCompression {
  const reader = new ByteReader(bytes, { file: place.file, base: place.fileOffset });
  const named = (field: string): string => `${place.field}.${field}`;
  reader.skip(COMPRESSED_MAGIC.length, named("magic")); // 0
  const version = reader.u16(named("version")); // 4
  if (version < 1 || version > 3) {
    throw new FormatError("UNSUPPORTED_VERSION", "this version of compressed bundles is not known", {
      ...reader.details(named("version"), place.fileOffset + 4),
      expected: "1, 2 or 3",
      found: version,
    });
  }
  const methodNumber = reader.u16(named("method")); // 6
  const method = METHODS.get(methodNumber);
  if (method === undefined) {
    throw new FormatError("UNSUPPORTED_METHOD", "this compression method is not known", {
      ...reader.details(named("method"), place.fileOffset + 6),
      expected: "0 (zlib) or 1 (zstd)",
      found: methodNumber,
    });
  }
  const size = (field: string): bigint => (version === 3 ? reader.u64Big(field) : BigInt(reader.u32(field)));
  const totalSize = version === 1 ? undefined : size(named("totalSize")); // 8
  const uncompressedOffset = reader.offset;
  const uncompressedSize = size(named("uncompressedSize"));
  const hash = reader.u64Big(named("hash"));
  const headerSize = reader.position;
  if (totalSize !== undefined)
    checkTotalSize(totalSize, headerSize, available, reader, named("totalSize"), place);
  if (uncompressedSize > BigInt(limits.bundleSize)) {
    throw new LimitError("LIMIT_EXCEEDED", "the bundle's content is larger than the limit", {
      ...reader.details(named("uncompressedSize"), uncompressedOffset),
      expected: `at most ${limits.bundleSize}`,
      found: describeUint64(uncompressedSize),
      hint: "Raise limits.bundleSize when the bundle is to be trusted.",
    });
  }
  return {
    version,
    method,
    headerSize,
    totalSize: totalSize === undefined ? undefined : Number(totalSize),
    uncompressedSize: Number(uncompressedSize),
    hash: formatHash(hash),
  };
}

/** The hash as LLVM's tools print it, with a prefix. */
export function formatHash(hash: bigint): string {
  return `0x${hash.toString(16).padStart(16, "0")}`;
}

function checkTotalSize(
  totalSize: bigint,
  headerSize: number,
  available: number,
  reader: ByteReader,
  field: string,
  place: { readonly fileOffset: number },
): void {
  const details = reader.details(field, place.fileOffset + 8);
  if (totalSize < BigInt(headerSize)) {
    throw new FormatError("SIZE_MISMATCH", "the total size is smaller than the header", {
      ...details,
      expected: `at least ${headerSize}`,
      found: Number(totalSize),
    });
  }
  if (totalSize > BigInt(available)) {
    throw new FormatError("TRUNCATED", "the data ends before the compressed bundle does", {
      ...details,
      expected: `at most ${available}`,
      found: describeUint64(totalSize),
    });
  }
}
