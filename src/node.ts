/**
 * Everything of the portable part, with Node's codecs filled in, files as sources and sinks, and whole operations.
 */
export * from "./index.ts";
export { openArchive } from "./archive/open-archive.node.ts";
export { builtInSchemes } from "./scheme/built-in-schemes.node.ts";
export { nodeCodecs } from "./codec/node-codecs.node.ts";
export { createFile } from "./sink/file-sink.node.ts";
export { openFile } from "./source/file-source.node.ts";
export { convertArchive } from "./operations/convert.node.ts";
export type { ConvertOptions } from "./operations/convert.node.ts";
export { extractKernels } from "./operations/extract.node.ts";
export type { ExtractedFile, ExtractOptions } from "./operations/extract.node.ts";
export { describeArchive } from "./operations/info.node.ts";
export type { ArchiveInfo, BinaryInfo, TargetInfo } from "./operations/info.node.ts";
export { listFile } from "./operations/list.node.ts";
export type {
  ArchiveListing,
  DeviceCodeListing,
  ListedEntry,
  ListedPayload,
  Listing,
  ListOptions,
} from "./operations/list.node.ts";
export { pack } from "./operations/pack.node.ts";
export type { PackedArchive, PackOptions, PackResult } from "./operations/pack.node.ts";
export { unbundle } from "./operations/unbundle.node.ts";
export type { UnbundledFile, UnbundleOptions } from "./operations/unbundle.node.ts";
export { bench } from "./operations/bench.node.ts";
export type { BenchLayoutResult, BenchOptions, BenchReport, BenchRun } from "./operations/bench.node.ts";
export { BENCH_SETTINGS, parseBenchSettings } from "./operations/bench-settings.node.ts";
export type { BenchSetting } from "./operations/bench-settings.node.ts";
export { resolveBinary } from "./operations/resolve.node.ts";
export type { ResolveBinaryOptions, ResolveReport, WrapperAnswer } from "./operations/resolve.node.ts";
export { diagnose } from "./operations/doctor/doctor.node.ts";
export type { DiagnoseOptions } from "./operations/doctor/doctor.node.ts";
export { inspectFile } from "./operations/inspect.node.ts";
export type {
  InspectedCodeObject,
  InspectedFunction,
  Inspection,
  InspectOptions,
} from "./operations/inspect.node.ts";
export { diffPaths } from "./operations/diff.node.ts";
export type { ArchiveDiff, DiffPathsOptions, DiffReport, FewerKernels } from "./operations/diff.node.ts";
export { planShrink } from "./operations/shrink-plan.node.ts";
export type {
  PlanShrinkOptions,
  ShrinkItem,
  ShrinkPlan,
  TargetShare,
} from "./operations/shrink-plan.node.ts";
export { shrink } from "./operations/shrink.node.ts";
export type { ShrinkOptions, ShrinkResult } from "./operations/shrink.node.ts";
export { NodeLoaderFileSystem } from "./loader/resolve.node.ts";
