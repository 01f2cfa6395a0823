import type { KernelDecompressor, KernelReader } from "./scheme.ts";

/** What a decompressor and a reader have in common. */
export type CanDecompress = Pick<KernelReader, "decompressKernel">;

/** The readers of jobs that read kernels at the same time, each used by one job after another. */
export class KernelReaders implements Disposable {
  readonly #decompressor: KernelDecompressor;
  readonly #all: KernelReader[] = [];
  readonly #free: KernelReader[] = [];

  constructor(decompressor: KernelDecompressor) {
    this.#decompressor = decompressor;
  }

  /** A reader to be given back when the bytes that it read last are no longer needed. */
  take(): KernelReader {
    const free = this.#free.pop();
    if (free) return free;
    const reader = this.#decompressor.openReader?.() ?? plainReader(this.#decompressor);
    this.#all.push(reader);
    return reader;
  }

  give(reader: KernelReader): void {
    this.#free.push(reader);
  }

  /**
   * Lends a reader to a task that is done with a kernel's bytes when it settles. Such tasks take kernels in any order, so
   * where kernels share frames these are decoded for all tasks rather than by one reader.
   */
  async use<Result>(task: (reader: CanDecompress) => Promise<Result>): Promise<Result> {
    if (this.#decompressor.frameOf) return await task(this.#decompressor);
    const reader = this.take();
    try {
      return await task(reader);
    } finally {
      this.give(reader);
    }
  }

  [Symbol.dispose](): void {
    for (const reader of this.#all) reader.close();
  }
}

/** Reads into fresh memory: for schemes that have nothing better. */
function plainReader(decompressor: KernelDecompressor): KernelReader {
  return {
    decompressKernel: (ordinal, options) => decompressor.decompressKernel(ordinal, options),
    close(): void {},
  };
}
