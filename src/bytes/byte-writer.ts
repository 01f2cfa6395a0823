/** A growing little-endian buffer. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    const at = this.#grow(1); // first: growing replaces the view
    this.#view.setUint8(at, value);
  }

  u16(value: number, littleEndian = true): void {
    const at = this.#grow(2); // first: growing replaces the view
    this.#view.setUint16(at, value, littleEndian);
  }

  u32(value: number, littleEndian = true): void {
    const at = this.#grow(4); // first: growing replaces the view
    this.#view.setUint32(at, value, littleEndian);
  }

  u64(value: number | bigint, littleEndian = true): void {
    const at = this.#grow(8); // first: growing replaces the view
    this.#view.setBigUint64(at, BigInt(value), littleEndian);
  }

  append(bytes: Uint8Array): void {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** What was written so far, as a view that later writes may invalidate. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(length: number): number {
    const start = this.#length;
    const end = start + length;
    if (end > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      bytes.set(this.#bytes.subarray(0, start));
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    this.#length = end;
    return start;
  }
}
