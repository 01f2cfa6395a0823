import type { Archive } from "../archive/archive.ts";

/**
 * The stored bytes of kernels, by ordinal. Each is asked for once: many entries may share a kernel, and finding its
 * extents takes time for each of its slices.
 */
export class StoredSizes {
  readonly #archive: Archive;
  readonly #signal: AbortSignal | undefined;
  readonly #sizes = new Map<number, number>();

  constructor(archive: Archive, signal: AbortSignal | undefined) {
    this.#archive = archive;
    this.#signal = signal;
  }

  async of(ordinal: number): Promise<number> {
    const known = this.#sizes.get(ordinal);
    if (known !== undefined) return known;
    const extents = await this.#archive.decompressor.storedExtents(ordinal, { signal: this.#signal });
    const size = extents.reduce((total, extent) => total + extent.size, 0);
    this.#sizes.set(ordinal, size);
    return size;
  }
}
