/** A binary heap over the indexes of an array of values: the largest value on top, of equal ones the lowest index. */
export class MaxHeap {
  readonly #values: Float64Array;
  readonly #heap: Uint32Array;
  #length: number;

  constructor(values: readonly number[]) {
    this.#values = Float64Array.from(values);
    this.#heap = Uint32Array.from(values, (_, index) => index);
    this.#length = values.length;
    for (let position = (this.#length >>> 1) - 1; position >= 0; position--) this.#sink(position);
  }

  /** Index of the largest value, or undefined when the heap is empty. */
  top(): number | undefined {
    return this.#length > 0 ? this.#heap[0] : undefined;
  }

  value(index: number): number {
    return this.#values[index] ?? 0;
  }

  removeTop(): void {
    this.#length -= 1;
    this.#heap[0] = this.#heap[this.#length] ?? 0;
    this.#sink(0);
  }

  lowerTop(value: number): void {
    this.#values[this.#heap[0] ?? 0] = value;
    this.#sink(0);
  }

  #sink(from: number): void {
    const moving = this.#heap[from] ?? 0;
    let position = from;
    for (;;) {
      let child = position * 2 + 1;
      if (child >= this.#length) break;
      if (child + 1 < this.#length && this.#above(this.#heap[child + 1] ?? 0, this.#heap[child] ?? 0))
        child += 1;
      if (!this.#above(this.#heap[child] ?? 0, moving)) break;
      this.#heap[position] = this.#heap[child] ?? 0;
      position = child;
    }
    this.#heap[position] = moving;
  }

  #above(a: number, b: number): boolean {
    const difference = this.value(a) - this.value(b);
    return difference > 0 || (difference === 0 && a < b);
  }
}
