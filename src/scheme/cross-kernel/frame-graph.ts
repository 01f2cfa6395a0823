import type { Extent } from "../../bytes/extent.ts";
import { VarintReader } from "../../bytes/varint.ts";
import { FormatError, type FormatErrorCode } from "../../errors/errors.ts";
import type { SchemeFields } from "../scheme.ts";

/**
 * The tables of the scheme `zstd-cross-kernel`: which frames there are, which of them are dictionaries of others, and
 * which slices of decoded frames make a kernel. Numbers in the tables are unsigned LEB128, below 2^32.
 *
 * | TOC field | value |
 * | --- | --- |
 * | `cross_offset` | absolute offset of the first frame; the others follow without gaps |
 * | `cross_frames` | bin, by frame: stored size, content size, 1 + first dictionary, 1 + second dictionary (0: none) |
 * | `cross_kernels` | bin, by ordinal: number of slices, then each slice's frame, offset in its content, size |
 * | `cross_depth` | the most frames that one kernel needs decoded, at most 8 |
 *
 * A dictionary is a frame with a higher index, so there are no cycles to look for, and what all frames need stands
 * at the end, beside the TOC.
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
  "cross_offset",
  "cross_frames",
  "cross_kernels",
  "cross_depth",
];

/** The tables of an archive, checked as a whole when they are read. */
export class FrameGraph {
  readonly frames: readonly Frame[];
  /** By ordinal, the slices that make the kernel, in order. */
  readonly kernels: readonly (readonly Slice[])[];
  readonly depth: number;
  readonly #file: string;

  /** @throws FormatError, also for graphs that no writer may make: `FRAME_GRAPH` */
  constructor(fields: SchemeFields, file: string) {
    this.#file = file;
    this.depth = fields.reader("cross_depth").unsigned("cross_depth");
    if (this.depth > DEPTH_LIMIT) {
      throw this.#wrong(
        "FRAME_GRAPH",
        "cross_depth",
        "a kernel may not need so many frames",
        `at most ${DEPTH_LIMIT}`,
        this.depth,
      );
    }
    this.frames = this.#readFrames(fields);
    this.kernels = this.#readKernels(fields);
    this.#checkDepth();
  }

  frame(index: number): Frame {
    const frame = this.frames[index];
    if (!frame) throw new RangeError(`there is no frame ${index}`);
    return frame;
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

  #readFrames(fields: SchemeFields): readonly Frame[] {
    const field = "cross_frames";
    const reader = new VarintReader(fields.reader(field).binary(field), { file: this.#file, field });
    const frames: Frame[] = [];
    let offset = fields.reader("cross_offset").unsigned("cross_offset");
    while (reader.remaining > 0) {
      const size = reader.next("stored size");
      const contentSize = reader.next("content size");
      const dictionaries = [reader.next("first dictionary"), reader.next("second dictionary")]
        .filter((dictionary) => dictionary !== 0)
        .map((dictionary) => dictionary - 1);
      frames.push({ extent: { offset, size }, contentSize, dictionaries });
      offset += size;
    }
    frames.forEach(({ dictionaries }, index) => {
      for (const dictionary of dictionaries) {
        if (dictionary > index && dictionary < frames.length) continue;
        const expected =
          index + 1 < frames.length ? `a frame from ${index + 1} to ${frames.length - 1}` : "none";
        throw this.#wrong(
          "FRAME_GRAPH",
          `${field}[${index}]`,
          "there is no such dictionary behind the frame",
          expected,
          dictionary,
        );
      }
    });
    return frames;
  }

  #readKernels(fields: SchemeFields): readonly (readonly Slice[])[] {
    const field = "cross_kernels";
    const reader = new VarintReader(fields.reader(field).binary(field), { file: this.#file, field });
    const kernels: (readonly Slice[])[] = [];
    while (reader.remaining > 0) {
      const count = reader.next("number of slices");
      const slices: Slice[] = [];
      for (let index = 0; index < count; index++) {
        const slice = {
          frame: reader.next("frame"),
          offset: reader.next("offset"),
          size: reader.next("size"),
        };
        this.#checkSlice(slice, `${field}[${kernels.length}][${index}]`);
        slices.push(slice);
      }
      kernels.push(slices);
    }
    return kernels;
  }

  #checkSlice({ frame, offset, size }: Slice, field: string): void {
    const content = this.frames[frame]?.contentSize;
    if (content === undefined) {
      throw this.#wrong(
        "FRAME_GRAPH",
        `${field}.frame`,
        "there is no such frame",
        `below ${this.frames.length}`,
        frame,
      );
    }
    if (offset + size > content) {
      throw this.#wrong(
        "OUT_OF_BOUNDS",
        field,
        "the slice reaches past its frame's content",
        `at most ${content}`,
        offset + size,
      );
    }
  }

  #checkDepth(): void {
    this.kernels.forEach((slices, ordinal) => {
      const needed = this.closure(slices.map(({ frame }) => frame)).size;
      if (needed <= this.depth) return;
      const field = `frames of kernel ${ordinal}`;
      throw this.#wrong(
        "FRAME_GRAPH",
        field,
        "more frames than the archive states",
        `at most ${this.depth}`,
        needed,
      );
    });
  }

  #wrong(
    code: FormatErrorCode,
    field: string,
    summary: string,
    expected: string,
    found: number,
  ): FormatError {
    return new FormatError(code, summary, { file: this.#file, field, expected, found });
  }
}
