import { type Codecs, type FrameDecompressor, requireCodec } from "../codec/codec.ts";
import { scanZstdFrame } from "../codec/zstd-frame.ts";
import type { OnFinding } from "../errors/finding.ts";
import { FormatError, isKpackError, LimitError } from "../errors/errors.ts";

export interface FrameContext {
  readonly codecs: Codecs;
  readonly file: string;
  /** Absolute offset of the frame. */
  readonly offset: number;
  /** What the frame is, for messages. */
  readonly field: string;
  /** Where the size that the content must have is stated, for messages. @default "original_size" */
  readonly sizeField?: string | undefined;
  /** The size that the content must have, where it is known. */
  readonly expectedSize?: number | undefined;
  /** The most that the content may have. */
  readonly limit: number;
  readonly dictionary?: Uint8Array | undefined;
  /** One that has taken in the dictionary, and decodes into memory of its own: the content is valid until its next use. */
  readonly frameDecompressor?: FrameDecompressor | undefined;
  /** Refuse what is merely odd: a frame that does not state its content's size, skippable frames in front. */
  readonly strict?: boolean | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Decodes the one zstd frame that `bytes` must be. All sizes are checked before the content is allocated;
 * what the decoder says of a damaged frame becomes a `FormatError`.
 */
export async function decodeFrame(bytes: Uint8Array, context: FrameContext): Promise<Uint8Array> {
  const place = { file: context.file, field: context.field, offset: context.offset };
  if (bytes.length === 0) throw new FormatError("DECOMPRESSION_FAILED", "the frame is empty", place);
  const frame = scanFrame(bytes, context);
  if (frame.dictionaryId !== 0) {
    throw new FormatError("DECOMPRESSION_FAILED", "the frame needs a trained dictionary", {
      ...place,
      found: frame.dictionaryId,
    });
  }
  if (frame.start + frame.size !== bytes.length) {
    throw new FormatError("DECOMPRESSION_FAILED", "bytes follow the zstd frame", {
      ...place,
      expected: `${frame.start + frame.size} bytes`,
      found: bytes.length,
    });
  }
  const { expectedSize, limit } = context;
  const { contentSize } = frame;
  if (contentSize !== undefined && expectedSize !== undefined && contentSize !== expectedSize) {
    throw sizeMismatch(context, expectedSize, contentSize);
  }
  const size = contentSize ?? expectedSize;
  if (size !== undefined && size > limit) {
    throw new LimitError("LIMIT_EXCEEDED", "the kernel is larger than the limit for one kernel", {
      ...place,
      expected: `at most ${limit} bytes`,
      found: size,
      hint: "Raise the limit (option limits.kernelSize) if the archive is trusted.",
    });
  }
  if (contentSize !== undefined && contentSize > frame.largestContent) {
    throw new FormatError("DECOMPRESSION_FAILED", "the frame claims more bytes than its blocks can hold", {
      ...place,
      expected: `at most ${frame.largestContent}`,
      found: contentSize,
    });
  }
  if (context.strict && (contentSize === undefined || frame.skippedBytes > 0)) {
    const what =
      contentSize === undefined ? "does not state its content's size" : "has skippable frames in front";
    throw new FormatError("DECOMPRESSION_FAILED", `the frame ${what}`, place);
  }
  if (contentSize === undefined) {
    const message = `${context.field} does not state its content's size`;
    context.onFinding?.({ severity: "warning", code: "NO_CONTENT_SIZE", message, ...place });
  }
  if (frame.skippedBytes > 0) {
    const message = `${context.field} has ${frame.skippedBytes} bytes of skippable frames in front`;
    context.onFinding?.({ severity: "warning", code: "SKIPPABLE_FRAME", message, ...place });
  }
  const content = bytes.subarray(frame.start, frame.start + frame.size);
  let decoded: Uint8Array;
  try {
    decoded = await decompress(content, contentSize, context);
  } catch (cause) {
    context.signal?.throwIfAborted();
    if (isKpackError(cause)) throw cause;
    throw decodingFailed(place, cause, expectedSize);
  }
  if (size !== undefined && decoded.length !== size) throw sizeMismatch(context, size, decoded.length);
  return decoded;
}

async function decompress(
  frame: Uint8Array,
  contentSize: number | undefined,
  context: FrameContext,
): Promise<Uint8Array> {
  const { codecs, limit, expectedSize, dictionary, frameDecompressor, signal } = context;
  signal?.throwIfAborted(); // whoever is aborted may have closed the decompressor
  const zstd = requireCodec(codecs, "zstd");
  if (contentSize === undefined)
    return await zstd.decompressUnsized(frame, Math.min(limit, expectedSize ?? limit), {
      dictionary,
      signal,
    });
  if (frameDecompressor) return await frameDecompressor.decompress(frame, contentSize);
  return await zstd.decompress(frame, contentSize, { dictionary, signal });
}

function scanFrame(bytes: Uint8Array, context: FrameContext): ReturnType<typeof scanZstdFrame> {
  try {
    return scanZstdFrame(bytes, { file: context.file, base: context.offset });
  } catch (cause) {
    if (!isKpackError(cause) || cause.code === "SIZE_MISMATCH") throw cause;
    throw new FormatError("DECOMPRESSION_FAILED", `no whole zstd frame: ${cause.summary}`, {
      file: context.file,
      field: context.field,
      offset: cause.offset ?? context.offset,
      expected: cause.expected,
      found: cause.found,
      cause,
    });
  }
}

function decodingFailed(
  place: { readonly file: string; readonly field: string; readonly offset: number },
  cause: unknown,
  expectedSize: number | undefined,
): FormatError {
  const code = errorCode(cause);
  if (code === "ERR_BUFFER_TOO_LARGE") {
    return new FormatError("SIZE_MISMATCH", "the frame holds more bytes than it should", {
      ...place,
      expected: expectedSize,
      found: "more",
      cause,
    });
  }
  if (code === "ZSTD_error_checksum_wrong") {
    return new FormatError(
      "CHECKSUM_MISMATCH",
      "the content checksum of the frame is wrong: bytes were damaged",
      { ...place, cause },
    );
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new FormatError("DECOMPRESSION_FAILED", `the frame is damaged: ${reason}`, { ...place, cause });
}

function errorCode(cause: unknown): unknown {
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

function sizeMismatch(context: FrameContext, expected: number, found: number): FormatError {
  return new FormatError("SIZE_MISMATCH", "the content's size is not the one that is stated elsewhere", {
    file: context.file,
    field: `${context.field}, ${context.sizeField ?? "original_size"}`,
    offset: context.offset,
    expected,
    found,
  });
}
