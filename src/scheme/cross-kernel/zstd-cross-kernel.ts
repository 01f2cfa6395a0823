import { type Codecs, requireCodec } from "../../codec/codec.ts";
import type { CompressionScheme } from "../scheme.ts";
import { CrossKernelCompressor, type SketchedKernel } from "./cross-kernel-compressor.ts";
import { CrossKernelDecompressor } from "./cross-kernel-decompressor.ts";
import { type Effort, EFFORT_PARAMETERS, EFFORTS } from "./effort.ts";
import { CROSS_KERNEL_FIELDS } from "./frame-graph.ts";
import { PLANNER_NAMES, type PlannerName, PLANNERS } from "./planner.ts";

/** How the scheme across kernels compresses. */
export interface CrossKernelOptions {
  readonly codecs: Codecs;
  /** How much time packing may take. @default "default" */
  readonly effort?: Effort | undefined;
  /** What may be stored: see {@link PlannerName}. @default "auto" */
  readonly planner?: PlannerName | undefined;
  /** Decoded dictionaries and shared frames are kept up to this many bytes while reading. @default 128 MiB */
  readonly cacheSize?: number | undefined;
}

const DEFAULT_CACHE_SIZE = 128 * 1024 * 1024;

/**
 * The scheme `zstd-cross-kernel`: frames that may name other frames as their dictionary; kernels are slices of decoded
 * frames. For transport, storage and this library: ROCm's own readers do not know it.
 * The format is in {@link FrameGraph} and docs/format.md.
 *
 * @throws RangeError for an unknown effort or planner
 */
export function zstdCrossKernel(options: CrossKernelOptions): CompressionScheme<SketchedKernel> {
  const { codecs, effort = "default", planner = "auto", cacheSize = DEFAULT_CACHE_SIZE } = options;
  if (!EFFORTS.includes(effort))
    throw new RangeError(`effort must be one of ${EFFORTS.join(", ")}, got ${effort}`);
  if (!PLANNER_NAMES.includes(planner)) {
    throw new RangeError(`planner must be one of ${PLANNER_NAMES.join(", ")}, got ${planner}`);
  }
  return {
    name: "zstd-cross-kernel",
    fieldNames: CROSS_KERNEL_FIELDS,
    createCompressor: (context) =>
      new CrossKernelCompressor(
        requireCodec(codecs, "zstd"),
        PLANNERS[planner],
        EFFORT_PARAMETERS[effort],
        context,
      ),
    openDecompressor: (fields, context) => new CrossKernelDecompressor(codecs, fields, context, cacheSize),
  };
}
