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
  /** The content of a frame that does not state its size, at most `limit` bytes. */
  decompressUnsized(frame: Uint8Array, limit: number, options?: ZstdDecompressOptions): Promise<Uint8Array>;
}

export interface ZstdCompressOptions {
  /** 1 to 22. */
  readonly level: number;
  /** Bytes that stand before the content, as a raw dictionary. */
  readonly dictionary?: Uint8Array | undefined;
  /** Base-2 logarithm of the window; by default the level's own, adapted to the size. */
  readonly windowLog?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ZstdDecompressOptions {
  readonly dictionary?: Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

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
