import type { FrameCompressor, FrameCompressorOptions, ZstdCodec } from "../../codec/codec.ts";
import { AccessError } from "../../errors/errors.ts";
import { type EffortParameters, type FrameLevel, SMALL_FRAME } from "./effort.ts";

const LEAST_WINDOW_LOG = 17;
/** 16 MiB: larger windows would take hundreds of megabytes for each job, and find little more. */
const MOST_WINDOW_LOG = 24;

/** The window for so many bytes of dictionary and content, as a base-2 logarithm. */
export function windowLogFor(bytes: number): number {
  return Math.max(LEAST_WINDOW_LOG, Math.min(MOST_WINDOW_LOG, Math.ceil(Math.log2(bytes + 1))));
}

/** A codec's frame compressor, or an error that says that it has none. */
export function createFrameCompressor(zstd: ZstdCodec, options: FrameCompressorOptions): FrameCompressor {
  if (zstd.createFrameCompressor) return zstd.createFrameCompressor(options);
  throw new AccessError("MISSING_CODEC", "this zstd codec cannot compress with dictionaries", {
    hint: 'Import from "rocm-kpack/node", which brings one that can.',
  });
}

/**
 * Compressors that all have the same dictionary, for up to `jobs` frames at once. They are made when they are needed: each
 * takes the dictionary in once, which costs up to a third of a second.
 */
export class FrameCompressors implements Disposable {
  readonly #zstd: ZstdCodec;
  readonly #dictionary: Uint8Array | undefined;
  readonly #effort: EffortParameters;
  readonly #largestContent: number;
  #closed = false;
  readonly #idle: { readonly small: FrameCompressor[]; readonly large: FrameCompressor[] } = {
    small: [],
    large: [],
  };

  constructor(
    zstd: ZstdCodec,
    options: {
      readonly dictionary: Uint8Array | undefined;
      readonly effort: EffortParameters;
      readonly largestContent: number;
    },
  ) {
    this.#zstd = zstd;
    this.#dictionary = options.dictionary;
    this.#effort = options.effort;
    this.#largestContent = options.largestContent;
  }

  async compress(content: Uint8Array): Promise<Uint8Array> {
    const kind = content.length < SMALL_FRAME ? "small" : "large";
    const compressor = this.#idle[kind].pop() ?? this.#create(kind);
    try {
      const frame = await compressor.compress(content);
      // After an abort nobody waits for the last frames, and everything may be closed already.
      if (this.#closed) compressor.close();
      else this.#idle[kind].push(compressor);
      return frame;
    } catch (error) {
      compressor.close();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const compressor of [...this.#idle.small.splice(0), ...this.#idle.large.splice(0)])
      compressor.close();
  }

  #create(kind: "small" | "large"): FrameCompressor {
    const level: FrameLevel = this.#effort[kind];
    const content = kind === "small" ? SMALL_FRAME : this.#largestContent;
    const windowLog = windowLogFor((this.#dictionary?.length ?? 0) + content);
    return createFrameCompressor(this.#zstd, { ...level, windowLog, dictionary: this.#dictionary });
  }
}
