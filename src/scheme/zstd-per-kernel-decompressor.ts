import { type Extent, extentEnd } from "../bytes/extent.ts";
import type { Codecs } from "../codec/codec.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import { decodeFrame } from "./decode-frame.ts";
import { checkInsideArea, USUAL_AREA_START } from "./area-check.ts";
import { FrameTable } from "./frame-offsets.ts";
import {
  checkOrdinal,
  type DecompressOptions,
  type DecompressorContext,
  type KernelDecompressor,
  type SchemeFields,
} from "./scheme.ts";

const COUNT_SIZE = 4;
const FRAME_SIZE_SIZE = 4;

/** Frames up to this size on average are walked through windows of this size, others size by size. */
const SMALL_FRAME = 8192;
const WINDOW_SIZE = 262144;

/** A range of the table beyond this is doubted before it is read. */
const LARGE_RANGE = 64 * 1024 * 1024;

/** Bytes of the area that were read last while walking. */
interface Window {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

interface SignalOptions {
  readonly signal?: AbortSignal | undefined;
}

export class ZstdPerKernelDecompressor implements KernelDecompressor {
  readonly #codecs: Codecs;
  readonly #context: DecompressorContext;
  readonly #area: Extent;
  readonly #table: FrameTable | undefined;
  #count: number | undefined;
  /** Frames found by walking so far; the next size stands at `#walked`. */
  readonly #frames: Extent[] = [];
  #walked = 0;
  /** Kept from one walk to the next: kernels asked for in order find their sizes in it. */
  #window: Window = { offset: 0, bytes: new Uint8Array() };
  #walk: Promise<void> = Promise.resolve();

  constructor(codecs: Codecs, fields: SchemeFields, context: DecompressorContext) {
    this.#codecs = codecs;
    this.#context = context;
    const { source, tocOffset } = context;
    this.#area = {
      offset: fields.reader("zstd_offset").unsigned("zstd_offset"),
      size: fields.reader("zstd_size").unsigned("zstd_size"),
    };
    checkInsideArea(
      this.#area,
      { file: source.name, tocOffset, fileSize: source.size },
      "zstd_offset + zstd_size",
    );
    if (this.#area.size < COUNT_SIZE) {
      throw new FormatError("TRUNCATED", "the area has no room for the number of kernels", {
        file: source.name,
        field: "zstd_size",
        expected: `at least ${COUNT_SIZE}`,
        found: this.#area.size,
      });
    }
    if (this.#area.offset < USUAL_AREA_START) {
      context.onFinding({
        severity: "warning",
        code: "AREA_BEFORE_64",
        message: `the kernels begin at byte ${this.#area.offset}, inside the padding of the header`,
        file: source.name,
        offset: this.#area.offset,
      });
    }
    this.#table = readTable(fields, source.name);
    this.#walked = this.#area.offset + COUNT_SIZE;
  }

  async kernelCount(options: SignalOptions = {}): Promise<number> {
    if (this.#count !== undefined) return this.#count;
    const { source } = this.#context;
    const count = readUint32(await source.read(this.#area.offset, COUNT_SIZE, options));
    if (count * FRAME_SIZE_SIZE > this.#area.size - COUNT_SIZE) {
      throw new FormatError("COUNT_TOO_LARGE", "the area cannot hold so many kernels", {
        file: source.name,
        field: "number of kernels",
        offset: this.#area.offset,
        expected: `at most ${Math.floor((this.#area.size - COUNT_SIZE) / FRAME_SIZE_SIZE)}`,
        found: count,
      });
    }
    if (this.#table && this.#table.count !== count)
      throw this.#wrongTable(`${count} offsets`, this.#table.count);
    this.#count = count;
    return count;
  }

  async decompressKernel(ordinal: number, options: DecompressOptions = {}): Promise<Uint8Array> {
    const { source, limits } = this.#context;
    const { extent, bytes } = await this.#readFrame(ordinal, options);
    return await decodeFrame(bytes, {
      codecs: this.#codecs,
      file: source.name,
      offset: extent.offset,
      field: `frame ${ordinal}${options.id === undefined ? "" : ` (${options.id})`}`,
      expectedSize: options.expectedSize,
      limit: limits.kernelSize,
      onFinding: options.onFinding,
      signal: options.signal,
    });
  }

  /** With a table nothing is read: what it says is compared with the frames when they are read, and by `verifyArea`. */
  async storedExtents(ordinal: number, options: SignalOptions = {}): Promise<readonly Extent[]> {
    if (!this.#table) return [await this.#locate(ordinal, options)];
    const { start, end } = this.#tableRange(this.#table, ordinal, undefined);
    return [{ offset: start, size: end - start }];
  }

  async verifyArea(onFinding: OnFinding, options: SignalOptions = {}): Promise<void> {
    const { source, tocOffset } = this.#context;
    const reportUnused = (size: number, where: string, offset: number): void => {
      if (size <= 0) return;
      const message = `${size} bytes ${where} belong to no kernel`;
      onFinding({ severity: "warning", code: "UNUSED_BYTES", message, file: source.name, offset });
    };
    const count = await this.kernelCount(options);
    const last = count > 0 ? await this.#walkTo(count - 1, options) : undefined;
    const end = last ? extentEnd(last) : this.#area.offset + COUNT_SIZE;
    const before = Math.max(0, this.#area.offset - USUAL_AREA_START);
    reportUnused(before, "before the kernels' area", USUAL_AREA_START);
    reportUnused(tocOffset - end, "after the last frame", end);
    if (!this.#table) return;
    for (let ordinal = 0; ordinal < count; ordinal++) {
      const walked = this.#frames[ordinal];
      if (walked && walked.offset !== this.#table.offset(ordinal)) {
        throw this.#wrongTable(walked.offset, this.#table.offset(ordinal), ordinal);
      }
    }
  }

  /** With a table one read brings the frame's size and the frame; without it, the sizes before it are walked. */
  async #readFrame(
    ordinal: number,
    options: DecompressOptions,
  ): Promise<{ extent: Extent; bytes: Uint8Array }> {
    const { source } = this.#context;
    const table = this.#table;
    if (!table) {
      const extent = await this.#locate(ordinal, options);
      return { extent, bytes: await source.read(extent.offset, extent.size, { signal: options.signal }) };
    }
    const { start, end } = this.#tableRange(table, ordinal, options.id);
    const bytes = await this.#readRange(start - FRAME_SIZE_SIZE, end - start + FRAME_SIZE_SIZE, options);
    const extent = this.#checkFrame(ordinal, start, readUint32(bytes));
    if (ordinal + 1 < table.count && extentEnd(extent) !== end) {
      throw this.#wrongTable(extentEnd(extent) + FRAME_SIZE_SIZE, end + FRAME_SIZE_SIZE, ordinal + 1);
    }
    return { extent, bytes: bytes.subarray(FRAME_SIZE_SIZE, FRAME_SIZE_SIZE + extent.size) };
  }

  /** A frame's size and its bytes in one read; of a range that is oddly large the size first, to see if it is true. */
  async #readRange(offset: number, length: number, options: SignalOptions): Promise<Uint8Array> {
    const { source } = this.#context;
    if (length <= LARGE_RANGE) return await source.read(offset, length, { signal: options.signal });
    const size = readUint32(await source.read(offset, FRAME_SIZE_SIZE, { signal: options.signal }));
    return await source.read(offset, Math.min(length, FRAME_SIZE_SIZE + size), { signal: options.signal });
  }

  /** Where the frame's bytes lie, as the table has it: up to the size of the next frame, or the end of the area. */
  #tableRange(
    table: FrameTable,
    ordinal: number,
    id: string | undefined,
  ): { readonly start: number; readonly end: number } {
    const start = this.#tableOffset(table, ordinal, id);
    if (ordinal + 1 >= table.count) return { start, end: extentEnd(this.#area) };
    const next = this.#tableOffset(table, ordinal + 1, id);
    if (next - FRAME_SIZE_SIZE < start)
      throw this.#wrongTable(`at least ${start + FRAME_SIZE_SIZE}`, next, ordinal + 1);
    return { start, end: next - FRAME_SIZE_SIZE };
  }

  /** Finds a frame by walking the sizes before it. */
  async #locate(
    ordinal: number,
    options: SignalOptions & { readonly id?: string | undefined },
  ): Promise<Extent> {
    const count = await this.kernelCount(options);
    checkOrdinal(ordinal, count, { file: this.#context.source.name, id: options.id });
    const frame = await this.#walkTo(ordinal, options);
    this.#checkRoom(ordinal, frame, count);
    return frame;
  }

  #tableOffset(table: FrameTable, ordinal: number, id: string | undefined): number {
    checkOrdinal(ordinal, table.count, { file: this.#context.source.name, id });
    const offset = table.offset(ordinal);
    const first = this.#area.offset + COUNT_SIZE + FRAME_SIZE_SIZE;
    if (offset === undefined || offset < first || offset > extentEnd(this.#area)) {
      throw this.#wrongTable(`${first} to ${extentEnd(this.#area)}`, offset, ordinal);
    }
    return offset;
  }

  /** One walk at a time; a failed one leaves the frames found so far and can be tried again. */
  async #walkTo(ordinal: number, options: SignalOptions): Promise<Extent> {
    const walk = this.#walk.catch(() => undefined).then(() => this.#walkFrames(ordinal, options));
    this.#walk = walk;
    await walk;
    const frame = this.#frames[ordinal];
    if (!frame) throw new RangeError(`ordinal ${ordinal} was not walked`);
    return frame;
  }

  async #walkFrames(ordinal: number, options: SignalOptions): Promise<void> {
    const { source } = this.#context;
    while (this.#frames.length <= ordinal) {
      options.signal?.throwIfAborted();
      const index = this.#frames.length;
      if (this.#walked + FRAME_SIZE_SIZE > extentEnd(this.#area)) {
        throw new FormatError("OUT_OF_BOUNDS", "the area ends before this frame's size", {
          file: source.name,
          field: `size of frame ${index}`,
          offset: this.#walked,
          expected: `an end of at most ${extentEnd(this.#area)}`,
          found: this.#walked + FRAME_SIZE_SIZE,
        });
      }
      const size = readUint32(await this.#readSize(options));
      this.#frames.push(this.#checkFrame(index, this.#walked + FRAME_SIZE_SIZE, size));
      this.#walked += FRAME_SIZE_SIZE + size;
    }
  }

  /**
   * The four bytes of the next frame's size. Where frames are small, one read brings the sizes of many of them: a
   * hundred thousand reads of four bytes would take seconds.
   */
  async #readSize(options: SignalOptions): Promise<Uint8Array> {
    const { source } = this.#context;
    const start = this.#walked - this.#window.offset;
    if (start >= 0 && start + FRAME_SIZE_SIZE <= this.#window.bytes.length)
      return this.#window.bytes.subarray(start);
    const averageFrame = this.#area.size / Math.max(1, this.#count ?? 1);
    const wanted = averageFrame <= SMALL_FRAME ? WINDOW_SIZE : FRAME_SIZE_SIZE;
    const length = Math.min(wanted, extentEnd(this.#area) - this.#walked);
    const bytes = await source.read(this.#walked, length, { signal: options.signal });
    this.#window = { offset: this.#walked, bytes };
    return bytes;
  }

  /** The frames after this one need at least their sizes' bytes: without a walk, it shows a count that is too large. */
  #checkRoom(ordinal: number, frame: Extent, count: number): void {
    const left = extentEnd(this.#area) - extentEnd(frame);
    const needed = (count - ordinal - 1) * FRAME_SIZE_SIZE;
    if (needed <= left) return;
    throw new FormatError("COUNT_TOO_LARGE", "the area ends before the frames that it should hold", {
      file: this.#context.source.name,
      field: "number of kernels",
      offset: this.#area.offset,
      expected: `at most ${ordinal + 1 + Math.floor(left / FRAME_SIZE_SIZE)}`,
      found: count,
    });
  }

  #checkFrame(ordinal: number, offset: number, size: number): Extent {
    if (offset + size > extentEnd(this.#area)) {
      throw new FormatError("OUT_OF_BOUNDS", "the frame reaches past the end of the kernels' area", {
        file: this.#context.source.name,
        field: `size of frame ${ordinal}`,
        offset: offset - FRAME_SIZE_SIZE,
        expected: `at most ${extentEnd(this.#area) - offset}`,
        found: size,
      });
    }
    return { offset, size };
  }

  #wrongTable(expected: string | number, found: number | undefined, ordinal?: number): FormatError {
    return new FormatError("OUT_OF_BOUNDS", "the frame offsets contradict the frames", {
      file: this.#context.source.name,
      field: ordinal === undefined ? "zstd_frame_offsets" : `zstd_frame_offsets[${ordinal}]`,
      expected,
      found: found ?? "more than a file can hold",
    });
  }
}

function readTable(fields: SchemeFields, file: string): FrameTable | undefined {
  if (!fields.has("zstd_frame_offsets")) return undefined;
  const bytes = fields.reader("zstd_frame_offsets").binary("zstd_frame_offsets");
  if (bytes.length % 8 !== 0) {
    throw new FormatError("SIZE_MISMATCH", "the frame offsets are no whole number of u64", {
      file,
      field: "zstd_frame_offsets",
      expected: "a multiple of 8 bytes",
      found: bytes.length,
    });
  }
  return new FrameTable(bytes);
}

function readUint32(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
}
