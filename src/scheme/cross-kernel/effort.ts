/** How much time packing may take: `default` about a seventh of zstd level 19 for each kernel alone, `max` about as much. */
export type Effort = "fast" | "default" | "max";

export const EFFORTS: readonly Effort[] = ["fast", "default", "max"];

/** What zstd is told for one class of frames. */
export interface FrameLevel {
  readonly level: number;
  readonly hashLog?: number | undefined;
  readonly chainLog?: number | undefined;
  readonly searchLog?: number | undefined;
  readonly strategy?: number | undefined;
}

/** The parameters of an effort; docs/compression.md has the measurements behind them. */
export interface EffortParameters {
  /** For frames of `SMALL_FRAME` bytes and more. */
  readonly large: FrameLevel;
  /** For smaller ones. Digested dictionary tables are copied for each frame, so theirs are small. */
  readonly small: FrameLevel;
  /** Level of the dictionary's own frame, by whether most kernels are small. */
  readonly dictionaryLevel: { readonly smallKernels: number; readonly largeKernels: number };
  /** Most bytes of the dictionary, likewise: decoding takes it in anew for each frame. */
  readonly dictionarySize: { readonly smallKernels: number; readonly largeKernels: number };
  /** The part of its own size that a window of the dictionary has to save. */
  readonly leastGain: number;
  /** How often dictionary and groups are planned, each time knowing the other from before. */
  readonly passes: number;
}

/** Frames with less content than this are small ones. */
export const SMALL_FRAME: number = 128 * 1024;
/** When half of the kernels are smaller than this, most kernels are small. */
export const SMALL_KERNEL: number = 64 * 1024;

const MIB = 1024 * 1024;
/** btopt: two thirds of btultra2's time, level 19's own, for small frames, which then are 1% larger. */
const BTOPT = 7;

export const EFFORT_PARAMETERS: Readonly<Record<Effort, EffortParameters>> = {
  fast: {
    large: { level: 9 },
    small: { level: 9, hashLog: 20 },
    dictionaryLevel: { smallKernels: 12, largeKernels: 12 },
    dictionarySize: { smallKernels: MIB, largeKernels: MIB },
    leastGain: 0.5,
    passes: 1,
  },
  default: {
    large: { level: 12, hashLog: 21, chainLog: 21 },
    small: { level: 9, hashLog: 20 },
    dictionaryLevel: { smallKernels: 12, largeKernels: 16 },
    dictionarySize: { smallKernels: 1.5 * MIB, largeKernels: 2 * MIB },
    leastGain: 0.25,
    passes: 1,
  },
  max: {
    large: { level: 19, chainLog: 22, hashLog: 20 },
    small: { level: 19, hashLog: 20, chainLog: 22, searchLog: 5, strategy: BTOPT },
    dictionaryLevel: { smallKernels: 19, largeKernels: 19 },
    dictionarySize: { smallKernels: 2.5 * MIB, largeKernels: 2 * MIB },
    leastGain: 0.12,
    passes: 2,
  },
};
