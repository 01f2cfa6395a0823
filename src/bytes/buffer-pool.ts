/**
 * Buffers that kernels are read into, used again and again: touching fresh memory for each kernel costs about as much
 * time as compressing it.
 */
export class BufferPool {
  readonly #free: Uint8Array[] = [];
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  take(size: number): Uint8Array {
    const fitting = this.#free.findIndex((buffer) => buffer.length >= size);
    const buffer = fitting >= 0 ? this.#free.splice(fitting, 1)[0] : undefined;
    if (buffer) return buffer;
    this.#free.shift(); // too small for what comes now: let it go rather than keep more and more
    return new Uint8Array(size + (size >>> 3));
  }

  give(buffer: Uint8Array): void {
    if (this.#free.length < this.#capacity) this.#free.push(buffer);
  }
}
