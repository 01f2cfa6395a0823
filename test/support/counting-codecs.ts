import { type Codecs, nodeCodecs, type ZstdCodec } from "../../src/node.ts";

/** Node's codecs, with what was asked of them on record; `failNext` makes that many decodings fail. */
export class CountingCodecs implements Codecs {
  readonly zstd: ZstdCodec;
  /** The content sizes that were asked for. */
  decoded: number[] = [];
  failNext = 0;

  constructor() {
    const zstd = nodeCodecs.zstd as ZstdCodec;
    this.zstd = {
      ...zstd,
      decompress: async (frame, size, options) => {
        await this.#count(size);
        return await zstd.decompress(frame, size, options);
      },
      createFrameDecompressor: (options) => {
        const decompressor = zstd.createFrameDecompressor?.(options);
        if (!decompressor) throw new TypeError("Node's codec has no frame decompressor");
        return {
          decompress: async (frame, size) => {
            await this.#count(size);
            return await decompressor.decompress(frame, size);
          },
          close: () => decompressor.close(),
        };
      },
    };
  }

  take(): readonly number[] {
    const { decoded } = this;
    this.decoded = [];
    return decoded;
  }

  async #count(size: number): Promise<void> {
    this.decoded.push(size);
    if (this.failNext === 0) return;
    this.failNext -= 1;
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("the decoder has a bad day");
  }
}
