import { VarintWriter } from "../../bytes/varint.ts";
import type { NewSchemeFields } from "../scheme.ts";
import type { Slice } from "./frame-graph.ts";

/** A frame while an archive is written, when its place is not known yet. */
export interface NewFrame {
  readonly storedSize: number;
  readonly contentSize: number;
  /** Indexes of frames that come later. */
  readonly dictionaries: readonly number[];
}

/** Collects frames, in the order of the file, and kernels. */
export class FrameGraphBuilder {
  readonly #frames: NewFrame[] = [];
  readonly #kernels: (readonly Slice[])[] = [];

  /** Adds the next frame and returns its index. */
  addFrame(frame: NewFrame): number {
    return this.#frames.push(frame) - 1;
  }

  setKernel(ordinal: number, slices: readonly Slice[]): void {
    this.#kernels[ordinal] = slices;
  }

  /** @param offset absolute offset of the first frame */
  finish(offset: number): NewSchemeFields {
    const frames = new VarintWriter();
    for (const { storedSize, contentSize, dictionaries } of this.#frames) {
      const [first = -1, second = -1] = dictionaries;
      for (const value of [storedSize, contentSize, first + 1, second + 1]) frames.add(value);
    }
    const kernels = new VarintWriter();
    for (const slices of this.#kernels) {
      kernels.add(slices.length);
      for (const { frame, offset: start, size } of slices)
        for (const value of [frame, start, size]) kernels.add(value);
    }
    return {
      cross_offset: offset,
      cross_frames: frames.finish(),
      cross_kernels: kernels.finish(),
      cross_depth: this.#depth(),
    };
  }

  #depth(): number {
    return this.#kernels.reduce((depth, slices) => {
      const needed = new Set<number>();
      for (const { frame } of slices) this.#addClosure(frame, needed);
      return Math.max(depth, needed.size);
    }, 0);
  }

  #addClosure(frame: number, needed: Set<number>): void {
    if (needed.has(frame)) return;
    needed.add(frame);
    for (const dictionary of this.#frames[frame]?.dictionaries ?? []) this.#addClosure(dictionary, needed);
  }
}
