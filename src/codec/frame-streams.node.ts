import {
  constants,
  createZstdCompress,
  createZstdDecompress,
  type ZstdCompress,
  type ZstdDecompress,
} from "node:zlib";
import type {
  FrameCompressor,
  FrameCompressorOptions,
  FrameDecompressor,
  FrameDecompressorOptions,
  ZstdCodec,
} from "./codec.ts";
import { scanZstdFrame } from "./zstd-frame.ts";

/** Output of a frame compressor is taken in pieces of this size. */
const PIECE_SIZE = 65536;
/** zstd needs at least so much room for one call's output. */
export const SMALLEST_CHUNK = 64;
/** Contents up to this size are decoded into memory that is kept. */
const LARGEST_KEPT = 64 * 1024 * 1024;

/**
 * A stream that ends a frame with each write and keeps its digested dictionary. Its output is taken in pieces so small
 * that zstd never compresses more than a block in one pass straight into them: what it writes would then depend on how much
 * room the frame before has left.
 */
export class StreamFrameCompressor implements FrameCompressor {
  readonly #stream: ZstdCompress;
  #pieces: Uint8Array[] = [];
  #failure: Error | undefined;

  constructor(options: FrameCompressorOptions) {
    const params: Record<number, number> = {
      [constants.ZSTD_c_compressionLevel]: options.level,
      [constants.ZSTD_c_windowLog]: options.windowLog,
      [constants.ZSTD_c_contentSizeFlag]: 1,
      [constants.ZSTD_c_checksumFlag]: 1,
    };
    if (options.hashLog !== undefined) params[constants.ZSTD_c_hashLog] = options.hashLog;
    if (options.chainLog !== undefined) params[constants.ZSTD_c_chainLog] = options.chainLog;
    if (options.searchLog !== undefined) params[constants.ZSTD_c_searchLog] = options.searchLog;
    if (options.strategy !== undefined) params[constants.ZSTD_c_strategy] = options.strategy;
    this.#stream = createZstdCompress({
      params,
      flush: constants.ZSTD_e_end,
      chunkSize: PIECE_SIZE,
      ...(options.dictionary && { dictionary: options.dictionary }),
    });
    this.#stream.on("data", (piece: Uint8Array) => this.#pieces.push(piece));
    this.#stream.on("error", (error: Error) => (this.#failure = error));
  }

  async compress(bytes: Uint8Array): Promise<Uint8Array> {
    this.#pieces = [];
    await writeAll(this.#stream, bytes, () => this.#failure);
    return Buffer.concat(this.#pieces);
  }

  close(): void {
    this.#stream.destroy();
  }
}

/**
 * A stream that goes on with the next frame after each one, and writes all of them over each other at the start of its
 * one output buffer. For this it is told to forget how far the buffer is filled, by a property that Node does not
 * document. Should that ever have no effect, the frames stand one after another and fresh buffers are made as each is
 * full: slower, and right all the same.
 */
export class StreamFrameDecompressor implements FrameDecompressor {
  readonly #zstd: Pick<ZstdCodec, "decompress">;
  readonly #options: FrameDecompressorOptions;
  #stream: ZstdDecompress | undefined;
  /** Bytes of the stream's output buffer. */
  #room = 0;
  #pieces: Uint8Array[] = [];
  #received = 0;
  #wanted = 0;
  #isClosed = false;
  #failure: Error | undefined;

  constructor(zstd: Pick<ZstdCodec, "decompress">, options: FrameDecompressorOptions = {}) {
    this.#zstd = zstd;
    this.#options = options;
  }

  async decompress(frame: Uint8Array, size: number): Promise<Uint8Array> {
    if (this.#isClosed) throw new Error("the decompressor was closed");
    if (size === 0 || size > LARGEST_KEPT) return await this.#zstd.decompress(frame, size, this.#options);
    const stream = this.#streamFor(size);
    this.#pieces = [];
    this.#received = 0;
    this.#wanted = size;
    try {
      await writeAll(stream, frame, () => this.#failure);
    } catch (error) {
      this.#forget();
      throw error;
    }
    if ("_outOffset" in stream) stream._outOffset = 0;
    // A frame that is not whole leaves the stream in its middle; of one that lacks just its checksum, nothing else tells.
    if (this.#received !== size || !isWhole(frame)) this.#forget();
    const [first = new Uint8Array(0)] = this.#pieces;
    return this.#pieces.length <= 1 ? first : Buffer.concat(this.#pieces);
  }

  close(): void {
    this.#isClosed = true;
    this.#forget();
  }

  #forget(): void {
    this.#stream?.destroy();
    this.#stream = undefined;
  }

  #streamFor(size: number): ZstdDecompress {
    // One byte more, so that the buffer is never full: zstd decodes a whole frame in one pass where it fits.
    if (this.#stream && size < this.#room) return this.#stream;
    this.#forget();
    this.#failure = undefined;
    // A new stream takes the dictionary in anew, so it is made for what is to come.
    const wanted = Math.max(size + (size >>> 2), 2 * this.#room, this.#options.largestContent ?? 0);
    this.#room = Math.min(LARGEST_KEPT, wanted) + SMALLEST_CHUNK;
    const stream = createZstdDecompress({
      chunkSize: this.#room,
      // Whoever wrote the frame chose the window; the content's size bounds what is allocated.
      params: { [constants.ZSTD_d_windowLogMax]: 31 },
      ...(this.#options.dictionary && { dictionary: this.#options.dictionary }),
    });
    stream.on("data", (piece: Uint8Array) => this.#receive(stream, piece));
    stream.on("error", (error: Error) => {
      if (stream === this.#stream) this.#failure = error;
    });
    this.#stream = stream;
    return stream;
  }

  #receive(stream: ZstdDecompress, piece: Uint8Array): void {
    if (stream !== this.#stream) return; // one that was given up
    this.#received += piece.length;
    if (this.#received > this.#wanted) {
      const error = new RangeError(`the frame holds more than the ${this.#wanted} bytes that it may`);
      this.#failure ??= Object.assign(error, { code: "ERR_BUFFER_TOO_LARGE" }); // as zlib's own
      stream.destroy();
    } else this.#pieces.push(new Uint8Array(piece.buffer, piece.byteOffset, piece.length));
  }
}

/** Writes to a stream of zlib and waits until all was taken. An error closes the stream, and so may its owner. */
async function writeAll(
  stream: ZstdCompress | ZstdDecompress,
  bytes: Uint8Array,
  failure: () => Error | undefined,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const fail = (): void => reject(failure() ?? new Error("the stream was closed"));
    stream.once("close", fail); // after an error the callback is never called
    stream.write(bytes, (error) => {
      stream.off("close", fail);
      const reason = error ?? failure();
      if (reason) reject(reason);
      else resolve();
    });
  });
}

/** Whether the bytes hold a whole frame, its checksum included. */
function isWhole(frame: Uint8Array): boolean {
  try {
    const { start, size } = scanZstdFrame(frame);
    return start + size === frame.length;
  } catch {
    return false; // then the decoder is the one to say why
  }
}
