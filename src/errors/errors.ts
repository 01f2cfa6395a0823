/**
 * The one family of errors of this library. `code` is stable across versions; messages are for people and may change.
 *
 * Wrong arguments of a caller are `TypeError` or `RangeError`, an aborted call rejects with its signal's reason.
 */

/** What is wrong with the bytes of a file. */
export type FormatErrorCode =
  | "EMPTY_FILE"
  | "TRUNCATED"
  | "BAD_MAGIC"
  | "UNSUPPORTED_VERSION"
  | "UNSUPPORTED_METHOD"
  | "OUT_OF_BOUNDS"
  | "OVERLAP"
  | "COUNT_TOO_LARGE"
  | "MALFORMED_MSGPACK"
  | "MALFORMED_TEXT"
  | "MISSING_KEY"
  | "WRONG_TYPE"
  | "DUPLICATE_KEY"
  | "UNKNOWN_SCHEME"
  | "ORDINAL_OUT_OF_RANGE"
  | "DECOMPRESSION_FAILED"
  | "SIZE_MISMATCH"
  | "CHECKSUM_MISMATCH"
  | "NOT_A_BUNDLE"
  | "NO_DEVICE_CODE"
  | "HALF_CONVERTED"
  | "CONFLICTING_KERNELS"
  | "FRAME_GRAPH";

/** A documented limit stopped the work before anything was allocated or written. */
export type LimitErrorCode = "LIMIT_EXCEEDED" | "READER_LIMIT";

/** What was asked for is not there. */
export type NotFoundErrorCode = "KERNEL_NOT_FOUND" | "NOTHING_FOUND";

/** The world around the file: it could not be read or written. */
export type AccessErrorCode = "READ_FAILED" | "WRITE_FAILED" | "SOURCE_CHANGED" | "MISSING_CODEC";

/** The stable name of what went wrong. */
export type KpackErrorCode = FormatErrorCode | LimitErrorCode | NotFoundErrorCode | AccessErrorCode;

/** Where an error lies and what was found there. All offsets and sizes are bytes. */
export interface ErrorDetails {
  /** Path or URL of the file. */
  readonly file?: string | undefined;
  /** Absolute byte offset in the file. */
  readonly offset?: number | undefined;
  /** The field or structure, for example `toc["lib/a.so#0"].gfx942.ordinal`. */
  readonly field?: string | undefined;
  /** What a right file has there. */
  readonly expected?: string | number | undefined;
  /** What this file has there. */
  readonly found?: string | number | undefined;
  /** What a person can do about it. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** Base of all errors that the library throws about files. See the four subclasses. */
export abstract class KpackError extends Error {
  readonly code: KpackErrorCode;
  readonly file: string | undefined;
  readonly offset: number | undefined;
  readonly field: string | undefined;
  readonly expected: string | number | undefined;
  readonly found: string | number | undefined;
  readonly hint: string | undefined;
  /** What is wrong, without the place. */
  readonly summary: string;
  /** @internal Lets two copies of the library recognise each other's errors. */
  readonly isKpackError: true = true;

  constructor(code: KpackErrorCode, summary: string, details: ErrorDetails = {}) {
    super(
      composeMessage(summary, details),
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.summary = summary;
    this.file = details.file;
    this.offset = details.offset;
    this.field = details.field;
    this.expected = details.expected;
    this.found = details.found;
    this.hint = details.hint;
  }
}

/** The bytes of a file are not what the format allows. */
export class FormatError extends KpackError {
  override readonly name = "FormatError";
  declare readonly code: FormatErrorCode;
  constructor(code: FormatErrorCode, summary: string, details?: ErrorDetails) {
    super(code, summary, details);
  }
}

/** A size is beyond a limit of ours (an option) or of the readers that the file is meant for. */
export class LimitError extends KpackError {
  override readonly name = "LimitError";
  declare readonly code: LimitErrorCode;
  constructor(code: LimitErrorCode, summary: string, details?: ErrorDetails) {
    super(code, summary, details);
  }
}

/** The file is fine, but what was asked for is not in it. */
export class NotFoundError extends KpackError {
  override readonly name = "NotFoundError";
  declare readonly code: NotFoundErrorCode;
  constructor(code: NotFoundErrorCode, summary: string, details?: ErrorDetails) {
    super(code, summary, details);
  }
}

/** A file could not be read or written at all. */
export class AccessError extends KpackError {
  override readonly name = "AccessError";
  declare readonly code: AccessErrorCode;
  constructor(code: AccessErrorCode, summary: string, details?: ErrorDetails) {
    super(code, summary, details);
  }
}

/**
 * Whether `error` is one of this library's, and, when codes are given, has one of them.
 * Works across copies of the library.
 *
 * @example
 * ```ts
 * import { isKpackError } from "rocm-kpack";
 * try {
 *   throw new TypeError("not ours");
 * } catch (error) {
 *   if (isKpackError(error, "KERNEL_NOT_FOUND")) console.error(error.hint);
 * }
 * ```
 */
export function isKpackError(error: unknown, ...codes: readonly KpackErrorCode[]): error is KpackError {
  if (!(error instanceof Error) || !("isKpackError" in error)) return false;
  return codes.length === 0 || ("code" in error && codes.some((code) => code === error.code));
}

function composeMessage(summary: string, details: ErrorDetails): string {
  const place = [
    details.file,
    details.field,
    details.offset === undefined ? undefined : `at byte ${details.offset}`,
  ].filter((part) => part !== undefined);
  const values = [
    details.expected === undefined ? undefined : `expected ${details.expected}`,
    details.found === undefined ? undefined : `found ${details.found}`,
  ].filter((part) => part !== undefined);
  let message = place.length > 0 ? `${place.join(", ")}: ${summary}` : summary;
  if (values.length > 0) message += ` (${values.join(", ")})`;
  return message;
}
