import { setImmediate } from "node:timers/promises";
import { constants, createInflate, zstdCompress, zstdDecompress } from "node:zlib";
import type { Codecs, ZlibCodec, ZstdCodec, ZstdCompressOptions, ZstdDecompressOptions } from "./codec.ts";
import { LimitError } from "../errors/errors.ts";
import { SMALLEST_CHUNK, StreamFrameCompressor, StreamFrameDecompressor } from "./frame-streams.node.ts";

const LARGEST_CALL = 2 ** 32 - 1;
/** The most that one byte of a zlib stream can become. */
const ZLIB_LARGEST_RATIO = 1032;
const HASHED_AT_ONCE = 16 * 1024 * 1024;

/** The most that zstd can make of `size` bytes (ZSTD_compressBound). */
function compressBound(size: number): number {
  return size + (size >>> 8) + (size < 131072 ? (131072 - size) >>> 11 : 0) + SMALLEST_CHUNK;
}

const zstd: ZstdCodec = {
  async compress(bytes: Uint8Array, options: ZstdCompressOptions): Promise<Uint8Array> {
    options.signal?.throwIfAborted();
    const params: Record<number, number> = {
      [constants.ZSTD_c_compressionLevel]: options.level,
      [constants.ZSTD_c_contentSizeFlag]: 1,
      [constants.ZSTD_c_checksumFlag]: 1,
    };
    return await new Promise((resolve, reject) => {
      zstdCompress(
        bytes,
        {
          params,
          // Without it the asynchronous call writes frames that do not state their content's size.
          pledgedSrcSize: bytes.length,
          // Room for the whole result, so that zstd compresses in one pass, straight from the input.
          chunkSize: compressBound(bytes.length),
        },
        // The result is a small part of the room that was made for it: copied, so that the room can be freed.
        (error, result) => (error ? reject(error) : resolve(Uint8Array.from(result))),
      );
    });
  },

  async decompress(frame: Uint8Array, size: number, options?: ZstdDecompressOptions): Promise<Uint8Array> {
    options?.signal?.throwIfAborted();
    if (size === 0) return await decompressEmpty(frame);
    checkCallSize(frame.length, size);
    return await decompressAtMost(frame, size, Math.max(size, SMALLEST_CHUNK), options);
  },

  createFrameCompressor: (options) => new StreamFrameCompressor(options),

  createFrameDecompressor: (options) => new StreamFrameDecompressor(zstd, options),

  async decompressUnsized(
    frame: Uint8Array,
    limit: number,
    options?: ZstdDecompressOptions,
  ): Promise<Uint8Array> {
    options?.signal?.throwIfAborted();
    return await decompressAtMost(frame, Math.max(limit, 1), 65536, options);
  },
};

function decompressAtMost(
  frame: Uint8Array,
  maxOutputLength: number,
  chunkSize: number,
  options?: ZstdDecompressOptions,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    zstdDecompress(
      frame,
      {
        maxOutputLength,
        chunkSize,
        // Whoever wrote the frame chose the window; the content's size bounds what is allocated.
        params: { [constants.ZSTD_d_windowLogMax]: 31 },
        ...(options?.dictionary && { dictionary: options.dictionary }),
      },
      (error, result) => {
        if (error) reject(error);
        else resolve(new Uint8Array(result.buffer, result.byteOffset, result.length));
      },
    );
  });
}

/** `maxOutputLength` may not be 0, so a frame that should be empty is given room for one byte. */
async function decompressEmpty(frame: Uint8Array): Promise<Uint8Array> {
  return await decompressAtMost(frame, 1, SMALLEST_CHUNK);
}

const zlib: ZlibCodec = {
  async decompress(
    bytes,
    limit,
    options,
  ): Promise<{ readonly content: Uint8Array; readonly consumed: number }> {
    options?.signal?.throwIfAborted();
    // Room for all of the content, so that it need not be put together from parts; one byte more, so that zlib sees
    // the stream's end before it asks for more room.
    const most = Math.min(limit, bytes.length * ZLIB_LARGEST_RATIO) + 1;
    checkCallSize(bytes.length, most);
    const inflate = createInflate({ chunkSize: Math.max(most, SMALLEST_CHUNK) });
    const parts: Uint8Array[] = [];
    let size = 0;
    try {
      inflate.end(bytes);
      for await (const part of inflate as AsyncIterable<Uint8Array>) {
        size += part.length;
        if (size > limit) throw new RangeError(`the stream holds more than the ${limit} bytes that it may`);
        options?.signal?.throwIfAborted();
        parts.push(part);
      }
    } finally {
      inflate.destroy();
    }
    const [first = new Uint8Array(0)] = parts;
    return { content: parts.length <= 1 ? first : Buffer.concat(parts), consumed: inflate.bytesWritten };
  },
};

/**
 * Node's zlib counts the bytes of a call in 32 bits: more of them end as other errors, or as wrong numbers.
 * @throws LimitError where a call would need more
 */
function checkCallSize(...sizes: readonly number[]): void {
  const largest = Math.max(...sizes);
  if (largest <= LARGEST_CALL) return;
  throw new LimitError("LIMIT_EXCEEDED", "the content is larger than Node can decompress at once", {
    expected: `at most ${LARGEST_CALL} bytes`,
    found: largest,
  });
}

/** zstd, zlib and MD5 of Node. */
export const nodeCodecs: Codecs = {
  zstd,
  zlib,
  md5: async (bytes) => {
    const { createHash } = await import("node:crypto"); // rarely needed, and slow to load
    const hash = createHash("md5");
    // One call takes less than 2 GiB. Between the parts a signal can come in.
    for (let start = 0; start < bytes.length; start += HASHED_AT_ONCE) {
      if (start > 0) await setImmediate();
      hash.update(bytes.subarray(start, start + HASHED_AT_ONCE));
    }
    return hash.digest();
  },
};
