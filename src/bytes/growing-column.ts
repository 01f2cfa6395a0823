/** Bytes of a column that may as well stay longer than its values. */
const SMALL_COLUMN = 65536;

/** A column that grows. */
export class GrowingColumn<Column extends Uint8Array | Uint32Array | Float64Array> {
  #values: Column;
  #length = 0;
  readonly #make: (length: number) => Column;

  constructor(make: (length: number) => Column, capacity: number) {
    this.#make = make;
    this.#values = make(Math.max(capacity, 16));
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const values = this.#make(this.#length * 2);
      values.set(this.#values);
      this.#values = values;
    }
    this.#values[this.#length++] = value;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }

  /** The values: small ones where they are, many in an array that is no longer than they need. */
  finish(): Column;
  finish(): Uint8Array | Uint32Array | Float64Array {
    if (this.#values.byteLength <= SMALL_COLUMN) return this.#values.subarray(0, this.#length);
    const values = this.#make(this.#length);
    values.set(this.#values.subarray(0, this.#length));
    return values;
  }
}
