/** Upper bounds for sizes that a file declares. A size over its limit is refused before anything is allocated. */
export interface Limits {
  /** Decompressed size of one kernel in bytes. @default 2 GiB */
  readonly kernelSize: number;
  /** Decompressed size of one compressed bundle, or of all frames that one kernel needs, in bytes. @default 4 GiB */
  readonly bundleSize: number;
  /** Size of an archive's table of contents in bytes. @default 256 MiB */
  readonly tocSize: number;
  /**
   * Stored kernels, and entries of the table of contents, of an archive that `verifyArchive` goes through; frames, kernels
   * and slices that the tables of `zstd-cross-kernel` may have.
   * @default 4 Mi (4,194,304)
   */
  readonly kernelCount: number;
}

/**
 * Elements of an archive's `gfx_arches`, and different targets of its entries. Fixed: there are some hundred targets
 * with all variants, and what goes through them keeps each as text.
 */
export const TARGET_COUNT_LIMIT = 65_536;

const MIB = 1024 * 1024;

/** The limits where none are given. */
export const DEFAULT_LIMITS: Limits = {
  kernelSize: 2048 * MIB,
  bundleSize: 4096 * MIB,
  tocSize: 256 * MIB,
  kernelCount: 4 * MIB,
};

export function withDefaultLimits(limits: Partial<Limits> | undefined): Limits {
  return { ...DEFAULT_LIMITS, ...limits };
}
