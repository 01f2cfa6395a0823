import { splitBinaryKey } from "../archive/binary-key.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { toHex } from "../bytes/text.ts";
import { isKpackError, type KpackError } from "../errors/errors.ts";
import type { Finding } from "../errors/finding.ts";
import { formatXxh64, loadXxh64 } from "../hash/xxh64.ts";
import {
  type ArchiveSearch,
  type FoundArchive,
  ROCM_SCHEMES,
  searchArchives,
  type SearchRequest,
} from "./archive-search.ts";
import { type Candidate, candidatesOf } from "./candidates.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { type LoaderStatus, loaderStatus, type RocmStatusName } from "./loader-status.ts";

/** What the runtime is asked to load, and for which GPU. */
export interface ResolveRequest extends SearchRequest {
  /** The code object index: a wrapper's `reserved1`. */
  readonly index: number;
}

/** How {@link resolveKernel} goes about it. */
export interface ResolveOptions {
  /** False: look the kernel up, but do not decode it, so that damage is not noticed. @default true */
  readonly readKernels?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What became of one candidate. */
export interface CandidateStep {
  readonly isa: string;
  readonly target: string;
  /** Path of the archive, as the search reached it. */
  readonly archive: string;
  readonly outcome: "found" | "failed" | "not-tried";
  readonly status: LoaderStatus | undefined;
  readonly reason: string | undefined;
}

/** The kernel that the loader hands to HIP. */
export interface ResolvedKernel {
  readonly isa: string;
  readonly target: string;
  readonly archive: string;
  readonly ordinal: number;
  /** Uncompressed, in bytes. */
  readonly size: number;
  /** XXH64 of the bytes, in hexadecimal; undefined when they were not read. */
  readonly xxh64: string | undefined;
  readonly sha256: string | undefined;
  /** Whether the archive has a hash and it is that of the bytes; undefined where there is none to compare. */
  readonly hashMatches: boolean | undefined;
}

/** How the loader answers for one kernel. */
export interface KernelAnswer {
  /** `kernel_name#index`. */
  readonly key: string;
  readonly index: number;
  readonly candidates: readonly CandidateStep[];
  readonly kernel: ResolvedKernel | undefined;
  readonly failure: { readonly status: LoaderStatus; readonly reason: string } | undefined;
}

/** The search and its answer, with every step. */
export interface Resolution extends ArchiveSearch {
  readonly answer: KernelAnswer;
}

/**
 * What ROCm's or HRX's loader does when a program asks for a kernel of a converted binary, step by step.
 * A failure of the loader is an answer, no error. Reads tables of contents and the one kernel.
 *
 * @throws AccessError when the file system fails in a way that the loader would not survive either
 */
export async function resolveKernel(
  request: ResolveRequest,
  fileSystem: LoaderFileSystem,
  options: ResolveOptions = {},
): Promise<Resolution> {
  const search = await searchArchives(request, fileSystem, options);
  const key = { kernelName: request.metadata.kernelName, index: request.index };
  return { ...search, answer: await findKernel(search, key, options) };
}

/** Looks for one kernel in archives that were searched before. */
export async function findKernel(
  search: ArchiveSearch,
  wanted: { readonly kernelName: string; readonly index: number },
  options: ResolveOptions = {},
): Promise<KernelAnswer> {
  const { index } = wanted;
  const key = `${wanted.kernelName}#${index}`;
  if (search.failure) return { key, index, candidates: [], kernel: undefined, failure: search.failure };
  const candidates = candidatesOf(search);
  const steps: CandidateStep[] = [];
  let kernel: ResolvedKernel | undefined;
  let isOver = false;
  for (const candidate of candidates) {
    const step = { isa: candidate.isa, target: candidate.target, archive: candidate.found.path };
    if (isOver) {
      steps.push({ ...step, outcome: "not-tried", status: undefined, reason: undefined });
      continue;
    }
    const outcome = await tryCandidate(candidate, key, search, options);
    if (outcome.kernel) {
      kernel = outcome.kernel;
      steps.push({ ...step, outcome: "found", status: undefined, reason: outcome.reason });
      isOver = true;
    } else {
      steps.push({ ...step, outcome: "failed", status: outcome.status, reason: outcome.reason });
      isOver = search.behaviour === "before-2026-08"; // a miss in the first candidate was final
    }
  }
  return { key, index, candidates: steps, kernel, failure: kernel ? undefined : failureOf(search, steps) };
}

type Outcome =
  | { readonly kernel: ResolvedKernel; readonly reason: string | undefined }
  | { readonly kernel: undefined; readonly status: LoaderStatus; readonly reason: string };

async function tryCandidate(
  { isa, target, found }: Candidate,
  key: string,
  search: ArchiveSearch,
  options: ResolveOptions,
): Promise<Outcome> {
  const { archive, path } = found;
  const failed = (name: RocmStatusName, reason: string): Outcome => ({
    kernel: undefined,
    status: loaderStatus(name),
    reason,
  });
  if (!ROCM_SCHEMES.includes(archive.schemeName)) {
    return failed(
      "KPACK_ERROR_KERNEL_NOT_FOUND",
      `the runtime does not know the scheme ${archive.schemeName}`,
    );
  }
  const entry = archive.find(key, target);
  if (entry === undefined) {
    // The reason costs a walk over all entries, which a survey of many kernels does without.
    const reason = options.readKernels === false ? "it has no such key" : missReason(found, key, target);
    return failed("KPACK_ERROR_KERNEL_NOT_FOUND", reason);
  }
  const obstacle = obstacleOf(entry, archive.schemeName, search);
  if (obstacle !== undefined) return failed("KPACK_ERROR_DECOMPRESSION_FAILED", obstacle);
  const place = { isa, target, archive: path, ordinal: entry.ordinal };
  if (options.readKernels === false) {
    const size = entry.originalSize ?? 0;
    const kernel = { ...place, size, xxh64: undefined, sha256: undefined, hashMatches: undefined };
    return { kernel, reason: undefined };
  }
  const findings: Finding[] = [];
  try {
    const onFinding = (finding: Finding): void => void findings.push(finding);
    const bytes = await archive.readKernel(entry, { onFinding, signal: options.signal });
    if (findings.some(({ code }) => code === "SKIPPABLE_FRAME")) {
      return failed("KPACK_ERROR_DECOMPRESSION_FAILED", "a skippable frame stands in front of the kernel");
    }
    const hashMatches = await archive.hashMatches(entry.ordinal, bytes);
    const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
    const kernel: ResolvedKernel = {
      ...place,
      size: bytes.length,
      xxh64: formatXxh64((await loadXxh64())(bytes)),
      sha256: toHex(new Uint8Array(digest)),
      hashMatches,
    };
    const reason =
      hashMatches === false
        ? "the bytes are not those that were packed; the loader does not look"
        : undefined;
    return { kernel, reason };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return failed(statusOfReading(error, archive.schemeName), error.summary);
  }
}

const HRX_KERNEL_LIMIT = 256 * 1024 * 1024;

/** Why a runtime does not take an entry whose kernel we would read. */
function obstacleOf(entry: ArchiveEntry, schemeName: string, search: ArchiveSearch): string | undefined {
  const { originalSize } = entry;
  if (search.behaviour === "hrx") {
    if (schemeName !== "none" && !originalSize) return "the entry has no original_size, or one of 0";
    if (schemeName === "none" && originalSize === 0) return "the kernel has 0 bytes";
    if ((originalSize ?? 0) > HRX_KERNEL_LIMIT) return "the kernel is larger than 256 MiB";
    return undefined;
  }
  return schemeName === "zstd-per-kernel" && originalSize === undefined
    ? "the entry has no original_size, which the runtime takes for the kernel's size"
    : undefined;
}

/** What the archive has instead, which tells causes apart. */
function missReason({ archive }: FoundArchive, key: string, target: string): string {
  const { path } = splitBinaryKey(key);
  const indexes: (number | undefined)[] = [];
  const others: string[] = [];
  for (const entry of archive.entries) {
    if (entry.binaryKey === key) others.push(entry.target);
    const split = splitBinaryKey(entry.binaryKey);
    if (split.path === path && entry.target === target) indexes.push(split.index);
  }
  if (others.length > 0) return `it has the key for ${others.slice(0, 4).join(", ")}, not for ${target}`;
  if (indexes.length === 0) return `it has no kernel of ${path} for ${target}`;
  if (indexes.includes(undefined)) return `it has the key ${path} without an index, as older tools wrote it`;
  const numbers = indexes.filter((index) => index !== undefined).toSorted((a, b) => a - b);
  return `of ${path} for ${target} it has ${formatIndexes(numbers)} only`;
}

/** `#0–#4, #7` of sorted numbers. */
export function formatIndexes(numbers: readonly number[]): string {
  const runs: string[] = [];
  for (let start = 0; start < numbers.length; ) {
    let end = start;
    while ((numbers[end + 1] ?? Number.NaN) === (numbers[end] ?? 0) + 1) end++;
    runs.push(start === end ? `#${numbers[start]}` : `#${numbers[start]}–#${numbers[end]}`);
    start = end + 1;
  }
  return runs.length > 6 ? `${runs.slice(0, 6).join(", ")} and more` : runs.join(", ");
}

function failureOf(
  search: ArchiveSearch,
  steps: readonly CandidateStep[],
): NonNullable<KernelAnswer["failure"]> {
  const failed = steps.filter(({ outcome }) => outcome === "failed");
  const last = failed.at(-1);
  if (search.behaviour === "hrx") {
    const damaged = failed.find(({ status }) => status?.name !== "KPACK_ERROR_KERNEL_NOT_FOUND");
    const broken = search.paths.find(({ fate }) => fate === "cannot-be-opened");
    const explained = damaged ?? broken;
    if (explained?.status) return { status: explained.status, reason: explained.reason ?? "" };
  }
  if (search.archives.length === 0) {
    const count = search.paths.length;
    const reason = `no archive can be opened at the ${count === 1 ? "one path" : `${count} paths`} that it looks at`;
    return { status: loaderStatus("KPACK_ERROR_ARCHIVE_NOT_FOUND"), reason };
  }
  if (last?.status === undefined) {
    const reason = `no archive lists a target that fits ${search.isas.join(", ")}`;
    return { status: loaderStatus("KPACK_ERROR_ARCH_NOT_FOUND"), reason };
  }
  return { status: last.status, reason: last.reason ?? "" };
}

function statusOfReading(error: KpackError, schemeName: string): RocmStatusName {
  switch (error.code) {
    case "ORDINAL_OUT_OF_RANGE":
      return "KPACK_ERROR_KERNEL_NOT_FOUND";
    case "LIMIT_EXCEEDED":
      return "KPACK_ERROR_OUT_OF_MEMORY";
    case "READ_FAILED":
    case "SOURCE_CHANGED":
      return "KPACK_ERROR_IO_ERROR";
    default:
      return schemeName === "none" ? "KPACK_ERROR_IO_ERROR" : "KPACK_ERROR_DECOMPRESSION_FAILED";
  }
}
