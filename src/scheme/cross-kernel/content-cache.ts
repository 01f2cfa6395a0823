/**
 * Decoded contents of frames, within a budget of bytes. What is asked for again soon (a shared dictionary) stays; what
 * was not used for the longest time goes. Requests for a content that is being decoded wait for that one decoding.
 */
export class ContentCache {
  readonly #budget: number;
  readonly #contents = new Map<number, Uint8Array>();
  readonly #decoding = new Map<number, Promise<Uint8Array>>();
  #size = 0;
  /** The last content over the budget: without it, each kernel of a very large frame would decode all of it. */
  #largest: { readonly frame: number; readonly content: Uint8Array } | undefined;

  constructor(budget: number) {
    this.#budget = budget;
  }

  /** The frame's content, decoded by `decode` unless it is here. A failure is not kept. */
  async get(frame: number, decode: () => Promise<Uint8Array>): Promise<Uint8Array> {
    if (frame === this.#largest?.frame) return this.#largest.content;
    const content = this.#contents.get(frame);
    if (content) {
      this.#contents.delete(frame); // to the end: it was used last
      this.#contents.set(frame, content);
      return content;
    }
    const running = this.#decoding.get(frame);
    if (running) return await running;
    const decoding = decode();
    this.#decoding.set(frame, decoding);
    try {
      const decoded = await decoding;
      this.#keep(frame, decoded);
      return decoded;
    } finally {
      this.#decoding.delete(frame);
    }
  }

  clear(): void {
    this.#contents.clear();
    this.#largest = undefined;
    this.#size = 0;
  }

  #keep(frame: number, content: Uint8Array): void {
    if (this.#budget === 0) return;
    if (content.length > this.#budget) {
      this.#largest = { frame, content };
      return;
    }
    this.#contents.set(frame, content);
    this.#size += content.length;
    for (const [oldest, { length }] of this.#contents) {
      if (this.#size <= this.#budget) return;
      this.#contents.delete(oldest);
      this.#size -= length;
    }
  }
}
