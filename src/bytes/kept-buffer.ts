/** A buffer that is used again and grows with what is asked for, up to a limit beyond which it is better not kept. */
export class KeptBuffer {
  readonly #limit: number;
  #buffer = new Uint8Array();

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The buffer, with room for `size` bytes unless that is over the limit. What it held may be gone. */
  for(size: number): Uint8Array {
    if (size > this.#buffer.length && size <= this.#limit) this.#buffer = new Uint8Array(size + (size >>> 2));
    return this.#buffer;
  }
}
