import { AccessError, FormatError } from "../errors/errors.ts";

/** How bytes are read from a source. */
export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * A buffer of at least the wanted length that the source may fill and return a view of, instead of allocating.
   * The caller must use the returned bytes, not the buffer, and not reuse it while it needs them.
   */
  readonly buffer?: Uint8Array | undefined;
}

/**
 * Bytes that can be read anywhere: a file, memory, a Blob, later a URL.
 * `size` is known on opening; a read returns exactly what was asked for or rejects.
 */
export interface Source extends AsyncDisposable {
  /** Path or URL, for messages. */
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  /**
   * Exactly `length` bytes from `offset`. The caller must not change them.
   * @throws FormatError `TRUNCATED` when the range is not inside the source.
   * @throws AccessError `READ_FAILED` or `SOURCE_CHANGED` when the bytes cannot be had.
   */
  read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array>;
}

/** Throws unless `offset` and `length` describe bytes inside the source. Every source calls it first. */
export function checkRange(source: Pick<Source, "name" | "size">, offset: number, length: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0 || !Number.isSafeInteger(length) || length < 0) {
    throw new RangeError(`offset and length must be safe integers from 0 on, got ${offset} and ${length}`);
  }
  if (offset + length > source.size) {
    throw new FormatError("TRUNCATED", "the file ends before the bytes that are needed", {
      file: source.name,
      offset,
      expected: `${length} bytes`,
      found: `${Math.max(0, source.size - offset)}`,
    });
  }
}

/** The error for a source that returned fewer bytes than its size promised. */
export function shortRead(
  source: Pick<Source, "name">,
  offset: number,
  expected: number,
  found: number,
): AccessError {
  return new AccessError("SOURCE_CHANGED", "the file became shorter while it was read", {
    file: source.name,
    offset,
    expected: `${expected} bytes`,
    found: `${found}`,
    hint: "Run the command again when nothing writes to the file.",
  });
}
