import type { FrameDecompressor, ZstdCodec } from "../../codec/codec.ts";

/** Frames whose dictionary fewer others share are decoded on their own. */
const FEWEST_FRAMES = 4;
/** Contents up to this size: of larger ones, taking in the dictionary is a small part of the time, and copying a large one. */
const LARGEST_CONTENT = 1024 * 1024;
/** Decompressors kept for one dictionary. Each holds the dictionary and room for a content. */
const MOST_KEPT = 4;

/**
 * Decompressors that have taken in a dictionary which many frames share, kept for the next of those frames: zstd copies
 * a dictionary whenever it takes one in, which takes longer than decoding a small frame.
 */
export class DictionaryDecompressors {
  readonly #zstd: ZstdCodec | undefined;
  /** How many frames have a dictionary as their only one. */
  readonly #users = new Map<number, number>();
  /** The dictionary that was used last, and the decompressors for it that nobody uses now. */
  #kept: { readonly dictionary: number; readonly free: FrameDecompressor[] } | undefined;
  #isClosed = false;

  constructor(zstd: ZstdCodec | undefined, frames: Iterable<{ readonly dictionaries: readonly number[] }>) {
    this.#zstd = zstd;
    for (const { dictionaries } of frames) {
      const [only] = dictionaries;
      if (only !== undefined && dictionaries.length === 1)
        this.#users.set(only, (this.#users.get(only) ?? 0) + 1);
    }
  }

  /**
   * Lends a decompressor to `decode` if keeping one pays for frames with this dictionary and contents of this size.
   * What `decode` resolves to is copied: it is valid only until the decompressor is used again.
   */
  async use(
    frame: { readonly contentSize: number; readonly dictionaries: readonly number[] },
    dictionary: Uint8Array | undefined,
    decode: (decompressor: FrameDecompressor | undefined) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    const create = this.#zstd?.createFrameDecompressor;
    const [only] = frame.dictionaries;
    const pays =
      only !== undefined &&
      frame.dictionaries.length === 1 &&
      (this.#users.get(only) ?? 0) >= FEWEST_FRAMES &&
      frame.contentSize <= LARGEST_CONTENT;
    if (!create || !pays || !dictionary) return await decode(undefined);
    if (this.#kept?.dictionary !== only) {
      this.#closeFree();
      this.#kept = { dictionary: only, free: [] };
    }
    const decompressor = this.#kept.free.pop() ?? create({ dictionary });
    try {
      return (await decode(decompressor)).slice();
    } finally {
      const { dictionary: kept, free } = this.#kept ?? { dictionary: -1, free: [] };
      if (kept === only && free.length < MOST_KEPT && !this.#isClosed) free.push(decompressor);
      else decompressor.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#closeFree();
  }

  #closeFree(): void {
    for (const decompressor of this.#kept?.free ?? []) decompressor.close();
    this.#kept = undefined;
  }
}
