import { type Extent, extentEnd } from "../bytes/extent.ts";
import { KeptBuffer } from "../bytes/kept-buffer.ts";
import type { Codecs, FrameDecompressor } from "../codec/codec.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import { decodeFrame } from "./decode-frame.ts";
import { checkInsideArea, USUAL_AREA_START } from "./area-check.ts";
import { FrameTable } from "./frame-offsets.ts";
import { COUNT_SIZE, FRAME_SIZE_SIZE, FrameWalk, readUint32 } from "./frame-walk.ts";
import {
  checkOrdinal,
  type DecompressOptions,
  type DecompressorContext,
  type KernelDecompressor,
  type KernelReader,
  type SchemeFields,
} from "./scheme.ts";

/** A range of the table beyond this is doubted before it is read. */
const LARGE_RANGE = 64 * 1024 * 1024;

/** Frames up to this size are read into memory that is kept. */
const LARGEST_KEPT_FRAME = 16 * 1024 * 1024;

interface SignalOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Memory that frames are read into and decoded into, for one kernel at a time. */
interface Workspace {
  readonly frameDecompressor: FrameDecompressor | undefined;
  readonly frame: KeptBuffer;
}

export class ZstdPerKernelDecompressor implements KernelDecompressor {
  readonly #codecs: Codecs;
  readonly #context: DecompressorContext;
  readonly #area: Extent;
  readonly #table: FrameTable | undefined;
  readonly #walk: FrameWalk;

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
    this.#walk = new FrameWalk(source, this.#area);
  }

  async kernelCount(options: SignalOptions = {}): Promise<number> {
    const count = await this.#walk.count(options);
    if (this.#table && this.#table.count !== count)
      throw this.#wrongTable(`${count} offsets`, this.#table.count);
    return count;
  }

  async decompressKernel(ordinal: number, options: DecompressOptions = {}): Promise<Uint8Array> {
    return await this.#decompress(ordinal, options, undefined);
  }

  openReader(): KernelReader {
    const frameDecompressor = this.#codecs.zstd?.createFrameDecompressor?.();
    const workspace: Workspace = { frameDecompressor, frame: new KeptBuffer(LARGEST_KEPT_FRAME) };
    return {
      decompressKernel: (ordinal, options = {}) => this.#decompress(ordinal, options, workspace),
      close: () => frameDecompressor?.close(),
    };
  }

  async #decompress(
    ordinal: number,
    options: DecompressOptions,
    workspace: Workspace | undefined,
  ): Promise<Uint8Array> {
    const { source, limits } = this.#context;
    const { extent, bytes } = await this.#readFrame(ordinal, options, workspace);
    return await decodeFrame(bytes, {
      codecs: this.#codecs,
      file: source.name,
      offset: extent.offset,
      field: `frame ${ordinal}${options.id === undefined ? "" : ` (${options.id})`}`,
      expectedSize: options.expectedSize,
      limit: limits.kernelSize,
      frameDecompressor: workspace?.frameDecompressor,
      onFinding: options.onFinding,
      signal: options.signal,
    });
  }

  /** With a table nothing is read: what it says is compared with the frames when they are read, and by `verifyArea`. */
  async storedExtents(ordinal: number, options: SignalOptions = {}): Promise<readonly Extent[]> {
    if (!this.#table) return [await this.#walk.locate(ordinal, options)];
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
    const last = count > 0 ? await this.#walk.walkTo(count - 1, options) : undefined;
    const end = last ? extentEnd(last) : this.#area.offset + COUNT_SIZE;
    const before = Math.max(0, this.#area.offset - USUAL_AREA_START);
    reportUnused(before, "before the kernels' area", USUAL_AREA_START);
    reportUnused(tocOffset - end, "after the last frame", end);
    if (!this.#table) return;
    for (let ordinal = 0; ordinal < count; ordinal++) {
      const walked = this.#walk.frames[ordinal];
      if (walked && walked.offset !== this.#table.offset(ordinal)) {
        throw this.#wrongTable(walked.offset, this.#table.offset(ordinal), ordinal);
      }
    }
  }

  /** With a table one read brings the frame's size and the frame; without it, the sizes before it are walked. */
  async #readFrame(
    ordinal: number,
    options: DecompressOptions,
    workspace: Workspace | undefined,
  ): Promise<{ extent: Extent; bytes: Uint8Array }> {
    const table = this.#table;
    if (!table) {
      const extent = await this.#walk.locate(ordinal, options);
      return { extent, bytes: await this.#read(extent.offset, extent.size, options, workspace) };
    }
    const { start, end } = this.#tableRange(table, ordinal, options.id);
    const length = end - start + FRAME_SIZE_SIZE;
    const bytes = await this.#readRange(start - FRAME_SIZE_SIZE, length, options, workspace);
    const extent = this.#walk.checkFrame(ordinal, start, readUint32(bytes));
    if (ordinal + 1 < table.count && extentEnd(extent) !== end) {
      throw this.#wrongTable(extentEnd(extent) + FRAME_SIZE_SIZE, end + FRAME_SIZE_SIZE, ordinal + 1);
    }
    return { extent, bytes: bytes.subarray(FRAME_SIZE_SIZE, FRAME_SIZE_SIZE + extent.size) };
  }

  /** A frame's size and its bytes in one read; of a range that is oddly large the size first, to see if it is true. */
  async #readRange(
    offset: number,
    length: number,
    options: SignalOptions,
    workspace: Workspace | undefined,
  ): Promise<Uint8Array> {
    if (length <= LARGE_RANGE) return await this.#read(offset, length, options, workspace);
    const size = readUint32(await this.#read(offset, FRAME_SIZE_SIZE, options, workspace));
    return await this.#read(offset, Math.min(length, FRAME_SIZE_SIZE + size), options, workspace);
  }

  async #read(
    offset: number,
    length: number,
    { signal }: SignalOptions,
    workspace: Workspace | undefined,
  ): Promise<Uint8Array> {
    return await this.#context.source.read(offset, length, { signal, buffer: workspace?.frame.for(length) });
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

  #tableOffset(table: FrameTable, ordinal: number, id: string | undefined): number {
    checkOrdinal(ordinal, table.count, { file: this.#context.source.name, id });
    const offset = table.offset(ordinal);
    const first = this.#area.offset + COUNT_SIZE + FRAME_SIZE_SIZE;
    if (offset === undefined || offset < first || offset > extentEnd(this.#area)) {
      throw this.#wrongTable(`${first} to ${extentEnd(this.#area)}`, offset, ordinal);
    }
    return offset;
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
