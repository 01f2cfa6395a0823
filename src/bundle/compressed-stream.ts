import { type Codecs, requireCodec } from "../codec/codec.ts";
import { scanZstdFrame, type ZstdFrame } from "../codec/zstd-frame.ts";
import { FormatError, isKpackError, LimitError } from "../errors/errors.ts";
import type { BundleCompression } from "./bundle.ts";

/** The compressed bytes of a bundle, decoded to exactly the size that its header declares. */

export interface StreamPlace {
  readonly file: string;
  /** Offset in the file of the compressed bytes. */
  readonly fileOffset: number;
  readonly field: string;
}

export interface DecodedStream {
  readonly content: Uint8Array;
  /** Compressed bytes that the content took; the rest is something else. */
  readonly consumed: number;
}

/** The most that one zstd block, of 4 bytes at least, and one zlib byte can become. */
const ZSTD_LARGEST_BLOCK = 131072;
const ZSTD_SMALLEST_BLOCK = 4;
const ZLIB_LARGEST_RATIO = 1032;

/**
 * Decodes the stream at the start of `bytes`.
 * @throws FormatError `SIZE_MISMATCH` when the content's size is not the declared one, before anything is allocated
 *   where the bytes show it; `TRUNCATED` or `DECOMPRESSION_FAILED` when the stream is damaged.
 */
export async function decodeStream(
  bytes: Uint8Array,
  compression: BundleCompression,
  codecs: Codecs,
  place: StreamPlace,
): Promise<DecodedStream> {
  const decoded =
    compression.method === "zstd"
      ? await decodeZstd(bytes, compression.uncompressedSize, codecs, place)
      : await decodeZlib(bytes, compression.uncompressedSize, codecs, place);
  const { content, consumed } = decoded;
  checkSize(content.length, compression.uncompressedSize, place);
  // A codec may return a Buffer, whose slices are views: one entry would keep all of the content in memory.
  return { content: new Uint8Array(content.buffer, content.byteOffset, content.length), consumed };
}

/** The most bytes that a stream of so much content takes, whatever compressor wrote it. */
export function largestStream(uncompressedSize: number): number {
  return uncompressedSize + Math.ceil(uncompressedSize / 8) + 65536;
}

/** The zstd frame at the start of `bytes`; errors name the bundle. */
export function scanStreamFrame(bytes: Uint8Array, place: StreamPlace): ZstdFrame {
  try {
    return scanZstdFrame(bytes, { file: place.file, base: place.fileOffset });
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    const { code, summary, file, offset, expected, found } = error;
    const field = `${place.field}.content: ${error.field ?? "zstd frame"}`;
    throw new FormatError(code, summary, { file, field, offset, expected, found, cause: error });
  }
}

async function decodeZstd(
  bytes: Uint8Array,
  size: number,
  codecs: Codecs,
  place: StreamPlace,
): Promise<DecodedStream> {
  const codec = requireCodec(codecs, "zstd");
  const frame = scanStreamFrame(bytes, place);
  if (frame.contentSize !== undefined) checkSize(frame.contentSize, size, place);
  const most = Math.ceil(frame.size / ZSTD_SMALLEST_BLOCK) * ZSTD_LARGEST_BLOCK;
  if (size > most) throw sizeMismatch(`at most ${most}`, size, place);
  const encoded = bytes.subarray(frame.start, frame.start + frame.size);
  // Also for a frame that does not state its size: the bundle's header does, so all of the room is made at once.
  const content = await decoding(place, () => codec.decompress(encoded, size));
  return { content, consumed: frame.start + frame.size };
}

async function decodeZlib(
  bytes: Uint8Array,
  size: number,
  codecs: Codecs,
  place: StreamPlace,
): Promise<DecodedStream> {
  const codec = requireCodec(codecs, "zlib");
  const most = bytes.length * ZLIB_LARGEST_RATIO;
  if (size > most) throw sizeMismatch(`at most ${most}`, size, place);
  return await decoding(place, () => codec.decompress(bytes, size));
}

async function decoding<Result>(place: StreamPlace, decode: () => Promise<Result>): Promise<Result> {
  try {
    return await decode();
  } catch (cause) {
    if (isKpackError(cause, "LIMIT_EXCEEDED") && cause.file === undefined) {
      // A codec knows its runtime's limits, but not whose bytes these are.
      const { summary, expected, found } = cause;
      throw new LimitError("LIMIT_EXCEEDED", summary, {
        file: place.file,
        field: `${place.field}.content`,
        offset: place.fileOffset,
        expected,
        found,
        cause,
      });
    }
    if (isKpackError(cause)) throw cause;
    if (isOutOfMemory(cause)) {
      throw new LimitError("LIMIT_EXCEEDED", "there is no memory for the content", {
        file: place.file,
        field: `${place.field}.content`,
        offset: place.fileOffset,
        cause,
      });
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FormatError("DECOMPRESSION_FAILED", `the compressed bytes cannot be decoded: ${reason}`, {
      file: place.file,
      field: `${place.field}.content`,
      offset: place.fileOffset,
      cause,
    });
  }
}

/** How V8 and Node say that a buffer could not be allocated. */
function isOutOfMemory(cause: unknown): boolean {
  return cause instanceof RangeError && /allocation failed|failed to allocate/i.test(cause.message);
}

function checkSize(found: number, declared: number, place: StreamPlace): void {
  if (found !== declared) throw sizeMismatch(found, declared, place);
}

function sizeMismatch(found: number | string, declared: number, place: StreamPlace): FormatError {
  return new FormatError("SIZE_MISMATCH", "the compressed bytes do not hold as much as the header says", {
    file: place.file,
    field: `${place.field}.uncompressedSize`,
    offset: place.fileOffset,
    expected: declared,
    found,
  });
}
