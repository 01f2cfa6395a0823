/** Enough for a reader that has begun the next bundle while others still take entries of the one before. */
const MOST_KEPT = 4;
const MOST_BYTES = 256 * 1024 * 1024;

/**
 * Keeps the last decompressed bundles, so that the entries of one bundle cost one decompression, while a walk over
 * hundreds of bundles holds just a few of them.
 */
export class DecodedCache {
  readonly #kept = new Map<number, { readonly content: Promise<Uint8Array>; readonly size: number }>();

  /** The content under `key`, from memory or from `decode`. Callers at the same time share one decoding. */
  async get(key: number, size: number, decode: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    const entry = kept ?? { content: decode(), size };
    this.#kept.set(key, entry); // last: the first one is the one that was not used for longest
    this.#evict();
    try {
      return await entry.content;
    } catch (error) {
      if (this.#kept.get(key) === entry) this.#kept.delete(key);
      throw error;
    }
  }

  #evict(): void {
    let total = 0;
    for (const { size } of this.#kept.values()) total += size;
    for (const [key, { size }] of this.#kept) {
      if (this.#kept.size <= 1 || (this.#kept.size <= MOST_KEPT && total <= MOST_BYTES)) return;
      this.#kept.delete(key);
      total -= size;
    }
  }
}
