import { type ErrorDetails, FormatError } from "../errors/errors.ts";
import { describeUint64, safeNumber } from "./uint64.ts";

/**
 * A bounds-checked little-endian cursor over bytes that were read from a file.
 * It knows the file's name and the offset of its first byte, for messages.
 */
export class ByteReader {
  readonly bytes: Uint8Array;
  /** Offset in the file of `bytes[0]`. */
  readonly base: number;
  readonly file: string | undefined;
  position = 0;
  readonly #view: DataView;

  constructor(
    bytes: Uint8Array,
    options: { readonly file?: string | undefined; readonly base?: number } = {},
  ) {
    this.bytes = bytes;
    this.base = options.base ?? 0;
    this.file = options.file;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get remaining(): number {
    return this.bytes.length - this.position;
  }

  /** Absolute offset in the file of the next byte. */
  get offset(): number {
    return this.base + this.position;
  }

  u8(field: string): number {
    return this.#view.getUint8(this.#take(1, field));
  }

  u16(field: string): number {
    return this.#view.getUint16(this.#take(2, field), true);
  }

  u32(field: string): number {
    return this.#view.getUint32(this.#take(4, field), true);
  }

  /** A u64 as bigint, for values that need not fit a number (hashes, addresses). */
  u64Big(field: string): bigint {
    return this.#view.getBigUint64(this.#take(8, field), true);
  }

  /** A u64 that has to be a safe integer: an offset, a size, a count. */
  u64(field: string): number {
    const offset = this.offset;
    const value = this.u64Big(field);
    const number = safeNumber(value);
    if (number === undefined) {
      throw new FormatError("OUT_OF_BOUNDS", "the value is larger than any file", {
        ...this.details(field, offset),
        found: describeUint64(value),
      });
    }
    return number;
  }

  /** A view of the next `length` bytes. */
  take(length: number, field: string): Uint8Array {
    const start = this.#take(length, field);
    return this.bytes.subarray(start, start + length);
  }

  skip(length: number, field: string): void {
    this.#take(length, field);
  }

  /** Details for an error at `offset` (absolute; by default the next byte). */
  details(field: string, offset: number = this.offset): ErrorDetails {
    return { file: this.file, field, offset };
  }

  #take(length: number, field: string): number {
    if (length > this.remaining) {
      throw new FormatError("TRUNCATED", "the data ends inside this field", {
        ...this.details(field),
        expected: `${length} bytes`,
        found: `${this.remaining}`,
      });
    }
    const start = this.position;
    this.position += length;
    return start;
  }
}
