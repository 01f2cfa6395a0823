import { AccessError } from "../errors/errors.ts";

/** A codec turns bytes into bytes. What goes where in an archive is a scheme's business, not a codec's. */
export interface ZstdCodec {
  /**
   * One zstd frame with content size and content checksum.
   * The same bytes and options give the same frame, whatever else runs.
   */
  compress(bytes: Uint8Array, options: ZstdCompressOptions): Promise<Uint8Array>;
  /**
   * The content of `frame`, which must be exactly one frame.
   * `size` is the size that the content must have; it was checked against a limit before.
   * Rejects with any error when the frame is damaged; callers wrap it.
   */
  decompress(frame: Uint8Array, size: number, options?: ZstdDecompressOptions): Promise<Uint8Array>;
  /** Undefined where the runtime has no dictionaries. */
  readonly createFrameCompressor?: ((options: FrameCompressorOptions) => FrameCompressor) | undefined;
  /** Undefined where the runtime has nothing better to offer than `decompress`. */
  readonly createFrameDecompressor?: ((options?: FrameDecompressorOptions) => FrameDecompressor) | undefined;
  /** The content of a frame that does not state its size, at most `limit` bytes. */
  decompressUnsized(frame: Uint8Array, limit: number, options?: ZstdDecompressOptions): Promise<Uint8Array>;
}

/** Compresses many contents with one dictionary that is taken in once. */
export interface FrameCompressor {
  /**
   * One zstd frame with content size and content checksum. One call at a time. The bytes do not depend on what was
   * compressed before. After a failure the compressor must not be used again.
   */
  compress(bytes: Uint8Array): Promise<Uint8Array>;
  close(): void;
}

/** What all frames of one decompressor have in common. */
export interface FrameDecompressorOptions {
  /** Taken in once. */
  readonly dictionary?: Uint8Array | undefined;
  /** The most bytes that a content is expected to have: room for them is made at once, not step by step. */
  readonly largestContent?: number | undefined;
}

/** Decodes one frame after another into memory that is used again: fresh memory takes longer than the decoding. */
export interface FrameDecompressor {
  /**
   * As {@link ZstdCodec.decompress}, but the content is valid only until the next call. One call at a time. It can be
   * used again after a failure.
   */
  decompress(frame: Uint8Array, size: number): Promise<Uint8Array>;
  close(): void;
}

/** What zstd is told for all frames of one compressor. */
export interface FrameCompressorOptions {
  /** 1 to 22. */
  readonly level: number;
  /** Base-2 logarithm of the window, which has to hold the dictionary and the content. */
  readonly windowLog: number;
  readonly dictionary?: Uint8Array | undefined;
  /** Base-2 logarithm of the size of zstd's hash table; by default the level's own. */
  readonly hashLog?: number | undefined;
  /** Base-2 logarithm of the size of zstd's chain table; by default the level's own. */
  readonly chainLog?: number | undefined;
  /** Base-2 logarithm of the number of places that zstd tries for a match; by default the level's own. */
  readonly searchLog?: number | undefined;
  /** zstd's strategy, 1 (fast) to 9 (btultra2); by default the level's own. */
  readonly strategy?: number | undefined;
}

/** How a zstd frame is made. */
export interface ZstdCompressOptions {
  /** 1 to 22. */
  readonly level: number;
  readonly signal?: AbortSignal | undefined;
}

/** How a zstd frame is decoded. */
export interface ZstdDecompressOptions {
  readonly dictionary?: Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Decompression of zlib streams, as compressed bundles may have them. */
export interface ZlibCodec {
  /**
   * The content of the zlib stream at the start of `bytes`, at most `limit` bytes, and how many bytes the stream took.
   */
  decompress(
    bytes: Uint8Array,
    limit: number,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly content: Uint8Array; readonly consumed: number }>;
}

/** What the runtime provides. The portable core has no implementation of its own; `rocm-kpack/node` has. */
export interface Codecs {
  readonly zstd?: ZstdCodec | undefined;
  readonly zlib?: ZlibCodec | undefined;
  /** MD5, for the hash of a compressed bundle. */
  readonly md5?: ((bytes: Uint8Array) => Promise<Uint8Array>) | undefined;
}

/** The named codec, or an error that says what is missing. */
export function requireCodec<Name extends keyof Codecs>(
  codecs: Codecs,
  name: Name,
): NonNullable<Codecs[Name]> {
  const codec = codecs[name];
  if (codec === undefined || codec === null) {
    throw new AccessError("MISSING_CODEC", `this needs the codec ${name}, and none was given`, {
      hint: `Pass { codecs: { ${name} } }, or import from "rocm-kpack/node", which brings its own.`,
    });
  }
  return codec;
}
