import type { Extent } from "../../bytes/extent.ts";
import { safeNumber } from "../../bytes/uint64.ts";
import { FormatError, type FormatErrorCode } from "../../errors/errors.ts";
import type { NewSchemeFields, SchemeFields } from "../scheme.ts";

/**
 * The tables of the scheme `zstd-cross-kernel`: which frames there are, which of them are dictionaries of others, and
 * which slices of decoded frames make a kernel. All are MessagePack bins of little-endian records:
 *
 * | TOC field | record |
 * | --- | --- |
 * | `cross_frames` | 24 bytes by frame: u64 offset, u32 stored size, u32 content size, u32 first and u32 second dictionary |
 * | `cross_kernels` | u32 by ordinal, and one more: index of the kernel's first slice; the next value ends them |
 * | `cross_slices` | 12 bytes: u32 frame, u32 offset in its content, u32 size |
 * | `cross_depth` | integer: the most frames that one kernel needs decoded, at most 8 |
 *
 * A dictionary is a frame with a lower index, FFFFFFFF stands for none. So there are no cycles to look for.
 */
export interface Frame {
  /** Where the stored frame lies in the file. */
  readonly extent: Extent;
  /** Size of the decoded content. */
  readonly contentSize: number;
  /** Frames whose contents, one after the other, are the raw dictionary: none, one or two. */
  readonly dictionaries: readonly number[];
}

/** A run of bytes of a frame's content. */
export interface Slice {
  readonly frame: number;
  readonly offset: number;
  readonly size: number;
}

/** The most frames that a kernel may need: its own, their dictionaries, and theirs. */
export const DEPTH_LIMIT = 8;

export const CROSS_KERNEL_FIELDS: readonly string[] = [
  "cross_frames",
  "cross_kernels",
  "cross_slices",
  "cross_depth",
];

const FRAME_RECORD = 24;
const SLICE_RECORD = 12;
const NO_DICTIONARY = 0xffffffff;

export class FrameGraph {
  readonly frameCount: number;
  readonly kernelCount: number;
  readonly depth: number;
  readonly #frames: DataView;
  readonly #kernels: DataView;
  readonly #slices: DataView;
  readonly #file: string;

  /**
   * Reads the tables and checks all of them: opening costs a walk over the tables, and nothing that they say has to be
   * doubted later but the extents' place in the file.
   */
  constructor(fields: SchemeFields, file: string) {
    this.#file = file;
    this.#frames = table(fields, "cross_frames", FRAME_RECORD, file);
    this.#kernels = table(fields, "cross_kernels", 4, file);
    this.#slices = table(fields, "cross_slices", SLICE_RECORD, file);
    this.depth = fields.reader("cross_depth").unsigned("cross_depth");
    this.frameCount = this.#frames.byteLength / FRAME_RECORD;
    this.kernelCount = this.#kernels.byteLength / 4 - 1;
    if (this.kernelCount < 0)
      throw this.#wrong("TRUNCATED", "cross_kernels", "the table lacks its last value");
    if (this.depth > DEPTH_LIMIT) {
      throw this.#wrong(
        "FRAME_GRAPH",
        "cross_depth",
        "a kernel may not need so many frames",
        `at most ${DEPTH_LIMIT}`,
        this.depth,
      );
    }
    this.#check();
  }

  frame(index: number): Frame {
    const at = index * FRAME_RECORD;
    const first = this.#frames.getUint32(at + 16, true); // 16
    const second = this.#frames.getUint32(at + 20, true); // 20
    return {
      extent: {
        offset: safeNumber(this.#frames.getBigUint64(at, true)) ?? Number.MAX_SAFE_INTEGER, // 0
        size: this.#frames.getUint32(at + 8, true), // 8
      },
      contentSize: this.#frames.getUint32(at + 12, true), // 12
      dictionaries: [first, second].filter((dictionary) => dictionary !== NO_DICTIONARY),
    };
  }

  /** The slices that make the kernel with this ordinal, in order. */
  slices(ordinal: number): readonly Slice[] {
    const end = this.#kernels.getUint32((ordinal + 1) * 4, true);
    const slices: Slice[] = [];
    for (let index = this.#kernels.getUint32(ordinal * 4, true); index < end; index++)
      slices.push(this.#slice(index));
    return slices;
  }

  /** The frames that have to be decoded for these: they themselves and what they depend on, each once. */
  closure(frames: Iterable<number>): ReadonlySet<number> {
    const needed = new Set<number>();
    const open = [...frames];
    for (let frame = open.pop(); frame !== undefined; frame = open.pop()) {
      if (needed.has(frame)) continue;
      needed.add(frame);
      if (needed.size > DEPTH_LIMIT) break; // enough to refuse it; a hostile chain may be long
      open.push(...this.frame(frame).dictionaries);
    }
    return needed;
  }

  #slice(index: number): Slice {
    const at = index * SLICE_RECORD;
    return {
      frame: this.#slices.getUint32(at, true), // 0
      offset: this.#slices.getUint32(at + 4, true), // 4
      size: this.#slices.getUint32(at + 8, true), // 8
    };
  }

  #check(): void {
    for (let index = 0; index < this.frameCount; index++) {
      for (const dictionary of this.frame(index).dictionaries) {
        if (dictionary < index) continue;
        const field = `cross_frames[${index}].dictionary`;
        const limit = index === 0 ? "none" : `a frame below ${index}`;
        throw this.#wrong(
          "FRAME_GRAPH",
          field,
          "a frame depends on itself or a later one",
          limit,
          dictionary,
        );
      }
    }
    const sliceCount = this.#slices.byteLength / SLICE_RECORD;
    let previous = 0;
    for (let ordinal = 0; ordinal <= this.kernelCount; ordinal++) {
      const start = this.#kernels.getUint32(ordinal * 4, true);
      if (start < previous || start > sliceCount) {
        throw this.#wrong(
          "FRAME_GRAPH",
          `cross_kernels[${ordinal}]`,
          "no such slice",
          `${previous} to ${sliceCount}`,
          start,
        );
      }
      previous = start;
    }
    for (let index = 0; index < sliceCount; index++) this.#checkSlice(index);
    for (let ordinal = 0; ordinal < this.kernelCount; ordinal++) {
      const needed = this.closure(this.slices(ordinal).map(({ frame }) => frame)).size;
      if (needed <= this.depth) continue;
      const field = `kernel ${ordinal}`;
      throw this.#wrong(
        "FRAME_GRAPH",
        field,
        "the kernel needs more frames than the archive states",
        `at most ${this.depth}`,
        needed,
      );
    }
  }

  #checkSlice(index: number): void {
    const { frame, offset, size } = this.#slice(index);
    const field = `cross_slices[${index}]`;
    if (frame >= this.frameCount)
      throw this.#wrong("FRAME_GRAPH", `${field}.frame`, "no such frame", `below ${this.frameCount}`, frame);
    const { contentSize } = this.frame(frame);
    if (offset + size > contentSize) {
      throw this.#wrong(
        "OUT_OF_BOUNDS",
        field,
        "the slice reaches past its frame's content",
        `at most ${contentSize}`,
        offset + size,
      );
    }
  }

  #wrong(
    code: FormatErrorCode,
    field: string,
    summary: string,
    expected?: string,
    found?: number,
  ): FormatError {
    return new FormatError(code, summary, { file: this.#file, field, expected, found });
  }
}

function table(fields: SchemeFields, name: string, record: number, file: string): DataView {
  const bytes = fields.reader(name).binary(name);
  if (bytes.length % record !== 0) {
    throw new FormatError("SIZE_MISMATCH", "the table is no whole number of records", {
      file,
      field: name,
      expected: `a multiple of ${record} bytes`,
      found: bytes.length,
    });
  }
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Collects frames and kernels while an archive is written. */
export class FrameGraphBuilder {
  readonly #frames: Frame[] = [];
  readonly #kernels: (readonly Slice[])[] = [];

  /** Adds a frame and returns its index. Its dictionaries must have been added before. */
  addFrame(frame: Frame): number {
    return this.#frames.push(frame) - 1;
  }

  setKernel(ordinal: number, slices: readonly Slice[]): void {
    this.#kernels[ordinal] = slices;
  }

  /** The frames that one frame needs decoded, itself included. */
  closure(frame: number, needed: Set<number> = new Set()): ReadonlySet<number> {
    if (!needed.has(frame)) {
      needed.add(frame);
      for (const dictionary of this.#frames[frame]?.dictionaries ?? []) this.closure(dictionary, needed);
    }
    return needed;
  }

  finish(): NewSchemeFields {
    const slices = this.#kernels.flat();
    const frames = new DataView(new ArrayBuffer(this.#frames.length * FRAME_RECORD));
    this.#frames.forEach(({ extent, contentSize, dictionaries: [first, second] }, index) => {
      const at = index * FRAME_RECORD;
      frames.setBigUint64(at, BigInt(extent.offset), true);
      frames.setUint32(at + 8, extent.size, true);
      frames.setUint32(at + 12, contentSize, true);
      frames.setUint32(at + 16, first ?? NO_DICTIONARY, true);
      frames.setUint32(at + 20, second ?? NO_DICTIONARY, true);
    });
    const kernels = new DataView(new ArrayBuffer((this.#kernels.length + 1) * 4));
    let start = 0;
    this.#kernels.forEach((kernel, ordinal) => {
      kernels.setUint32(ordinal * 4, start, true);
      start += kernel.length;
    });
    kernels.setUint32(this.#kernels.length * 4, start, true);
    const sliceTable = new DataView(new ArrayBuffer(slices.length * SLICE_RECORD));
    slices.forEach(({ frame, offset, size }, index) => {
      sliceTable.setUint32(index * SLICE_RECORD, frame, true);
      sliceTable.setUint32(index * SLICE_RECORD + 4, offset, true);
      sliceTable.setUint32(index * SLICE_RECORD + 8, size, true);
    });
    return {
      cross_frames: new Uint8Array(frames.buffer),
      cross_kernels: new Uint8Array(kernels.buffer),
      cross_slices: new Uint8Array(sliceTable.buffer),
      cross_depth: this.#depth(),
    };
  }

  #depth(): number {
    let depth = 0;
    for (const kernel of this.#kernels) {
      const needed = new Set<number>();
      for (const { frame } of kernel) this.closure(frame, needed);
      depth = Math.max(depth, needed.size);
    }
    return depth;
  }
}
