import { FormatError } from "../errors/errors.ts";
import { ByteWriter } from "./byte-writer.ts";

/** Unsigned LEB128: seven bits a byte, the lowest first; the high bit says that more follow. Values are below 2^32. */
const LARGEST_BYTES = 5;

export class VarintReader {
  readonly #bytes: Uint8Array;
  readonly #file: string;
  readonly #field: string;
  #position = 0;

  constructor(bytes: Uint8Array, place: { readonly file: string; readonly field: string }) {
    this.#bytes = bytes;
    this.#file = place.file;
    this.#field = place.field;
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  /** @param what the value's name, for a message */
  next(what: string): number {
    let value = 0;
    for (let index = 0; index < LARGEST_BYTES; index++) {
      const byte = this.#bytes[this.#position];
      if (byte === undefined) throw this.#wrong("TRUNCATED", what, "the table ends inside a number");
      this.#position += 1;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) {
        if (value < 2 ** 32) return value;
        break;
      }
    }
    throw this.#wrong("OUT_OF_BOUNDS", what, "a number of the table is larger than 32 bits");
  }

  #wrong(code: "TRUNCATED" | "OUT_OF_BOUNDS", what: string, summary: string): FormatError {
    return new FormatError(code, summary, { file: this.#file, field: `${this.#field}: ${what}` });
  }
}

export class VarintWriter {
  readonly #out = new ByteWriter();

  /** @throws RangeError for a value that is not an integer from 0 to 2^32 − 1 */
  add(value: number): void {
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** 32)
      throw new RangeError(`${value} is no unsigned 32-bit integer`);
    let rest = value;
    while (rest >= 0x80) {
      this.#out.u8((rest % 0x80) | 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.#out.u8(rest);
  }

  finish(): Uint8Array {
    return this.#out.finish().slice();
  }
}
