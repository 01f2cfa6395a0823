import { KeptBuffer } from "../../bytes/kept-buffer.ts";
import type { FrameDecompressor, ZstdCodec } from "../../codec/codec.ts";

/** Stored frames up to this size are read into memory that is kept. */
const LARGEST_KEPT = 16 * 1024 * 1024;

/** The memory of one reader: the frame that it decoded last, and a decompressor that has taken in its dictionary. */
export class FrameWorkspace {
  readonly #zstd: ZstdCodec | undefined;
  readonly #largestContent: number;
  /** What the stored bytes of a frame are read into. */
  readonly stored: KeptBuffer = new KeptBuffer(LARGEST_KEPT);
  #decompressor: FrameDecompressor | undefined;
  /** What the decompressor has taken in, as the frames that it was made of. */
  #dictionaries = "";
  #frame: number | undefined;
  #content: Uint8Array = new Uint8Array();
  #isClosed = false;

  /** @param largestContent of the frames that will be decoded, in bytes */
  constructor(zstd: ZstdCodec | undefined, largestContent: number) {
    this.#zstd = zstd;
    this.#largestContent = largestContent;
  }

  /** The frame's content, where it is the one decoded last. */
  contentOf(frame: number): Uint8Array | undefined {
    return frame === this.#frame ? this.#content : undefined;
  }

  async decode(
    index: number,
    frame: { readonly dictionaries: readonly number[] },
    dictionary: Uint8Array | undefined,
    decode: (decompressor: FrameDecompressor | undefined) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    if (this.#isClosed) throw new Error("the reader was closed");
    this.#frame = undefined; // its memory is written over, whatever comes of it
    const wanted = frame.dictionaries.join();
    if (!this.#decompressor || this.#dictionaries !== wanted) {
      this.#decompressor?.close();
      this.#decompressor = this.#zstd?.createFrameDecompressor?.({
        dictionary,
        largestContent: this.#largestContent,
      });
      this.#dictionaries = wanted;
    }
    const content = await decode(this.#decompressor);
    this.#content = content;
    this.#frame = index;
    return content;
  }

  close(): void {
    this.#isClosed = true;
    this.#frame = undefined;
    this.#decompressor?.close();
    this.#decompressor = undefined;
  }
}
