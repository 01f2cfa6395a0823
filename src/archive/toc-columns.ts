/**
 * The entries of a TOC as columns of numbers, in file order. Positions are offsets in the TOC's bytes, which are
 * below 2^32 since the TOC's size is limited.
 */
export interface EntryColumns {
  readonly count: number;
  readonly binaries: BinaryColumns;
  /** Index into `targetNames`. */
  readonly targets: Uint32Array;
  readonly ordinals: Uint32Array;
  /** Uncompressed size in bytes, or -1 where the entry does not say. */
  readonly originalSizes: Float64Array;
  /** Where the entry's map begins. */
  readonly positions: Uint32Array;
  /** 1 where the entry has keys beside type, ordinal and original_size. */
  readonly hasMore: Uint8Array;
  readonly targetNames: readonly string[];
}

export interface BinaryColumns {
  readonly count: number;
  /** Where the binary's key, a MessagePack string, begins. */
  readonly keyPositions: Uint32Array;
  /** Index of the binary's first entry; one more than there are binaries, so that the next one ends it. */
  readonly firstEntries: Uint32Array;
  /** Open-addressing hash table over the keys: index + 1, or 0 for an empty slot. */
  readonly table: Uint32Array;
  readonly mask: number;
}

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
