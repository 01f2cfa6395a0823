import { type Codecs, requireCodec, type ZstdCodec } from "../codec/codec.ts";
import { LimitError } from "../errors/errors.ts";
import {
  type BlobArea,
  type CompressionScheme,
  type CompressorContext,
  type FinalizeOptions,
  type KernelCompressor,
  type KernelInput,
  type NewSchemeFields,
} from "./scheme.ts";
import { FrameTableWriter } from "./frame-offsets.ts";
import { ZstdPerKernelDecompressor } from "./zstd-per-kernel-decompressor.ts";

/** What ROCm's C++ reader refuses to open. */
export const ZSTD_AREA_SIZE_LIMIT: number = 4 * 1024 ** 3;
export const ZSTD_KERNEL_COUNT_LIMIT = 1_048_576;

export const DEFAULT_ZSTD_LEVEL = 3;

/**
 * The scheme `zstd-per-kernel`: each kernel is one zstd frame.
 *
 * | TOC field | value |
 * | --- | --- |
 * | `zstd_offset` | absolute offset of the area |
 * | `zstd_size` | bytes of the area |
 * | `zstd_frame_offsets` | ours, optional: see {@link FrameTableWriter} |
 *
 * The area: u32 number of kernels, then per ordinal u32 frame size and the frame.
 *
 * @param options.level 1 to 22, by default 3
 * @throws RangeError for a level outside that range
 */
export function zstdPerKernel(options: {
  readonly codecs: Codecs;
  readonly level?: number | undefined;
}): CompressionScheme<Uint8Array> {
  const level = options.level ?? DEFAULT_ZSTD_LEVEL;
  if (!Number.isInteger(level) || level < 1 || level > 22) {
    throw new RangeError(`the zstd level must be an integer from 1 to 22, got ${level}`);
  }
  return {
    name: "zstd-per-kernel",
    fieldNames: ["zstd_offset", "zstd_size", "zstd_frame_offsets"],
    createCompressor: (context) =>
      new ZstdPerKernelCompressor(requireCodec(options.codecs, "zstd"), level, context),
    openDecompressor: (fields, context) => new ZstdPerKernelDecompressor(options.codecs, fields, context),
  };
}

class ZstdPerKernelCompressor implements KernelCompressor<Uint8Array> {
  readonly #zstd: ZstdCodec;
  readonly #level: number;
  readonly #context: CompressorContext;

  constructor(zstd: ZstdCodec, level: number, context: CompressorContext) {
    this.#zstd = zstd;
    this.#level = level;
    this.#context = context;
  }

  async prepareKernel(
    kernel: KernelInput,
    options: { readonly signal?: AbortSignal | undefined },
  ): Promise<Uint8Array> {
    return await this.#zstd.compress(kernel.bytes, { level: this.#level, signal: options.signal });
  }

  async finalize(
    inputs: AsyncIterable<Uint8Array>,
    area: BlobArea,
    options: FinalizeOptions,
  ): Promise<NewSchemeFields> {
    const offsets = new FrameTableWriter();
    await area.write(uint32(0)); // the count is known at the end
    let count = 0;
    for await (const frame of inputs) {
      options.signal?.throwIfAborted();
      count += 1;
      if (count > ZSTD_KERNEL_COUNT_LIMIT) {
        throw readerLimit("kernels", ZSTD_KERNEL_COUNT_LIMIT, count, `${ZSTD_KERNEL_COUNT_LIMIT} kernels`);
      }
      if (area.position + 4 + frame.length - area.start > ZSTD_AREA_SIZE_LIMIT) {
        const size = area.position + 4 + frame.length - area.start;
        throw readerLimit("zstd_size", ZSTD_AREA_SIZE_LIMIT, size, "4 GiB of compressed kernels");
      }
      await area.write(uint32(frame.length));
      offsets.add((await area.write(frame)).offset);
    }
    await area.patch(area.start, uint32(count));
    return {
      zstd_offset: area.start,
      zstd_size: area.position - area.start,
      ...(this.#context.extraFields && { zstd_frame_offsets: offsets.finish() }),
    };
  }
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24);
}

function readerLimit(field: string, limit: number, found: number, what: string): LimitError {
  return new LimitError("READER_LIMIT", `ROCm's runtime refuses an archive with more than ${what}`, {
    field,
    expected: `at most ${limit}`,
    found,
    hint: "Write one archive per target (kpack pack --split-by target), or choose fewer targets.",
  });
}
