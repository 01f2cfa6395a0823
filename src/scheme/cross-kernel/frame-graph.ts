import type { Extent } from "../../bytes/extent.ts";
import { VarintReader } from "../../bytes/varint.ts";
import { FormatError, type FormatErrorCode, LimitError } from "../../errors/errors.ts";
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

/** The archive that the tables are from. */
export interface GraphPlace {
  readonly file: string;
  readonly mostKernels: number;
}

const NO_DICTIONARIES: readonly number[] = [];
const NO_SLICES: readonly Slice[] = [];

/** The tables of an archive, checked as a whole when they are read. */
export class FrameGraph {
  readonly frames: readonly Frame[];
  /** By ordinal, the slices that make the kernel, in order. */
  readonly kernels: readonly (readonly Slice[])[];
  readonly depth: number;
  readonly #place: GraphPlace;

  /** By frame, once it was asked for: see `decodedSize`. */
  readonly #decodedSizes = new Map<number, number>();

  /**
   * @throws FormatError, also for graphs that no writer may make: `FRAME_GRAPH`
   * @throws LimitError for more than `mostKernels` frames, kernels or slices: each takes far more memory than the few bytes
   * of its entry
   */
  constructor(fields: SchemeFields, place: GraphPlace) {
    this.#place = place;
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

  /** Decoded bytes of the largest frame. */
  get largestContent(): number {
    return this.frames.reduce((most, { contentSize }) => Math.max(most, contentSize), 0);
  }

  /**
   * The most bytes that are decoded and joined to get at slices: contents of their frames, of the dictionaries and
   * those' dictionaries, and once more what is joined of two.
   */
  decodedSize(slices: readonly Slice[]): number {
    const frames =
      slices.length === 1 ? slices : slices.filter(({ frame }, at) => frame !== slices[at - 1]?.frame);
    return frames.reduce((sum, { frame }) => sum + this.#decodedSize(frame), 0);
  }

  #decodedSize(frame: number): number {
    const known = this.#decodedSizes.get(frame);
    if (known !== undefined) return known;
    const { contentSize, dictionaries } = this.frame(frame);
    let size = contentSize;
    for (const dictionary of dictionaries) {
      const joined = dictionaries.length > 1 ? this.frame(dictionary).contentSize : 0;
      size += this.#decodedSize(dictionary) + joined;
    }
    this.#decodedSizes.set(frame, size);
    return size;
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
    const reader = new VarintReader(fields.reader(field).binary(field), { file: this.#place.file, field });
    const frames: Frame[] = [];
    let offset = fields.reader("cross_offset").unsigned("cross_offset");
    while (reader.remaining > 0) {
      const size = reader.next("stored size");
      const contentSize = reader.next("content size");
      const first = reader.next("first dictionary");
      const second = reader.next("second dictionary");
      const dictionaries =
        first + second === 0
          ? NO_DICTIONARIES
          : [first, second].filter((dictionary) => dictionary !== 0).map((dictionary) => dictionary - 1);
      this.#checkCount(frames.length, "frames", field);
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
    const reader = new VarintReader(fields.reader(field).binary(field), { file: this.#place.file, field });
    const kernels: (readonly Slice[])[] = [];
    let sliceCount = 0;
    while (reader.remaining > 0) {
      this.#checkCount(kernels.length, "kernels", field);
      const count = reader.next("number of slices");
      if (count === 0) {
        kernels.push(NO_SLICES);
        continue;
      }
      const slices: Slice[] = [];
      for (let index = 0; index < count; index++) {
        const slice = {
          frame: reader.next("frame"),
          offset: reader.next("offset"),
          size: reader.next("size"),
        };
        this.#checkCount(sliceCount++, "slices", field);
        this.#checkSlice(slice, `${field}[${kernels.length}][${index}]`, count > 1);
        slices.push(slice);
      }
      kernels.push(slices);
    }
    return kernels;
  }

  #checkCount(count: number, what: string, field: string): void {
    const { file, mostKernels } = this.#place;
    if (count < mostKernels) return;
    throw new LimitError("LIMIT_EXCEEDED", `the archive has more ${what} than are read`, {
      file,
      field,
      expected: `at most ${mostKernels} ${what}`,
      hint: "Raise the limit (option limits.kernelCount) if the archive is trusted.",
    });
  }

  #checkSlice({ frame, offset, size }: Slice, field: string, isOneOfSeveral: boolean): void {
    if (size === 0 && isOneOfSeveral) {
      // Millions of them would take no byte of a kernel, and all the time.
      throw this.#wrong("FRAME_GRAPH", field, "a slice among others is empty", "at least 1", 0);
    }
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
    return new FormatError(code, summary, { file: this.#place.file, field, expected, found });
  }
}
