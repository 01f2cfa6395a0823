/**
 * The portable part of rocm-kpack: nothing here needs Node. `rocm-kpack/node` adds files, codecs and operations.
 */
export { Archive, openArchive } from "./archive/archive.ts";
export type { OpenArchiveOptions, ReadKernelOptions, ReadKernelsOptions } from "./archive/archive.ts";
export type { ArchiveEntry, EncodedField } from "./archive/archive-entry.ts";
export { writeArchive } from "./archive/archive-writer.ts";
export type { WriteArchiveOptions, WriteSummary } from "./archive/archive-writer.ts";
export { normalizeBinaryKey, splitBinaryKey } from "./archive/binary-key.ts";
export type { EntryToWrite, KernelBytes, KernelToWrite } from "./archive/kernel-to-write.ts";
export { DEFAULT_LIMITS } from "./bytes/limits.ts";
export type { Limits } from "./bytes/limits.ts";
export type { Extent } from "./bytes/extent.ts";
export type {
  Codecs,
  FrameCompressor,
  FrameCompressorOptions,
  FrameDecompressor,
  FrameDecompressorOptions,
  ZlibCodec,
  ZstdCodec,
  ZstdCompressOptions,
  ZstdDecompressOptions,
} from "./codec/codec.ts";
export {
  AccessError,
  FormatError,
  isKpackError,
  KpackError,
  LimitError,
  NotFoundError,
} from "./errors/errors.ts";
export type {
  AccessErrorCode,
  ErrorDetails,
  FormatErrorCode,
  KpackErrorCode,
  LimitErrorCode,
  NotFoundErrorCode,
} from "./errors/errors.ts";
export type { Finding, FindingCode, FindingSeverity, OnFinding } from "./errors/finding.ts";
export type { OnProgress, Progress } from "./errors/progress.ts";
export { MessagePackExtension, MessagePackFloat } from "./msgpack/message-pack-value.ts";
export type { MessagePackValue } from "./msgpack/message-pack-value.ts";
export { verifyArchive } from "./operations/verify.ts";
export type { VerifyOptions, VerifyReport } from "./operations/verify.ts";
export type { ReaderName, ReaderVerdict } from "./operations/reader-acceptance.ts";
export { none } from "./scheme/none.ts";
export { checkOrdinal, findScheme } from "./scheme/scheme.ts";
export type {
  BlobArea,
  CompressionScheme,
  CompressorContext,
  DecompressOptions,
  DecompressorContext,
  FinalizeOptions,
  KernelCompressor,
  KernelDecompressor,
  KernelInput,
  KernelReader,
  NewSchemeFields,
  SchemeFields,
} from "./scheme/scheme.ts";
export { zstdCrossKernel } from "./scheme/cross-kernel/zstd-cross-kernel.ts";
export type { CrossKernelOptions } from "./scheme/cross-kernel/zstd-cross-kernel.ts";
export type { Effort } from "./scheme/cross-kernel/effort.ts";
export type { PlannerName } from "./scheme/cross-kernel/planner.ts";
export { zstdPerKernel } from "./scheme/zstd-per-kernel.ts";
export { memorySink } from "./sink/memory-sink.ts";
export type { Sink } from "./sink/sink.ts";
export { blobSource } from "./source/blob-source.ts";
export type { BlobLike } from "./source/blob-source.ts";
export { memorySource } from "./source/memory-source.ts";
export { sliceSource } from "./source/slice-source.ts";
export type { ReadOptions, Source } from "./source/source.ts";
export { resolveKernel } from "./loader/resolve.ts";
export type {
  CandidateStep,
  KernelAnswer,
  Resolution,
  ResolvedKernel,
  ResolveOptions,
  ResolveRequest,
} from "./loader/resolve.ts";
export type { FrameDescription, FrameMap, FrameSlice } from "./scheme/scheme.ts";
