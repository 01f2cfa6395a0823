import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { type ArchiveSearch, ROCM_SCHEMES, searchArchives, type SearchRequest } from "./archive-search.ts";
import { type Candidate, candidatesOf } from "./candidates.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { type LoaderStatus, loaderStatus } from "./loader-status.ts";
import { missReason } from "./miss-reason.ts";
import { CandidateReader, type FailedReading, failedReading, obstacleOf } from "./read-candidate.ts";

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

/** How {@link findKernel} goes about it. */
export interface FindOptions extends ResolveOptions {
  /** What is known of an entry whose kernel cannot be read: also without reading kernels it is then not found. */
  readonly knownFailure?: ((archive: Archive, entry: ArchiveEntry) => FailedReading | undefined) | undefined;
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
  options: FindOptions = {},
): Promise<KernelAnswer> {
  const { index } = wanted;
  const key = `${wanted.kernelName}#${index}`;
  if (search.failure) return { key, index, candidates: [], kernel: undefined, failure: search.failure };
  const { candidates, reader } = workOf(search);
  const steps: CandidateStep[] = [];
  let kernel: ResolvedKernel | undefined;
  let isOver = false;
  for (const candidate of candidates) {
    const step = { isa: candidate.isa, target: candidate.target, archive: candidate.found.path };
    if (isOver) {
      steps.push({ ...step, outcome: "not-tried", status: undefined, reason: undefined });
      continue;
    }
    const outcome = await tryCandidate(candidate, key, search, reader, options);
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

/** What serves all kernels that are looked up in one search. */
interface SearchWork {
  readonly candidates: readonly Candidate[];
  readonly reader: CandidateReader;
}

const works = new WeakMap<ArchiveSearch, SearchWork>();

function workOf(search: ArchiveSearch): SearchWork {
  const work = works.get(search) ?? { candidates: candidatesOf(search), reader: new CandidateReader() };
  works.set(search, work);
  return work;
}

type Outcome =
  | { readonly kernel: ResolvedKernel; readonly reason: string | undefined }
  | ({ readonly kernel: undefined } & FailedReading);

async function tryCandidate(
  { isa, target, found }: Candidate,
  key: string,
  { behaviour }: ArchiveSearch,
  reader: CandidateReader,
  options: FindOptions,
): Promise<Outcome> {
  const { archive, path } = found;
  const { signal } = options;
  const missed = (reason: string): Outcome => ({
    kernel: undefined,
    ...failedReading("KPACK_ERROR_KERNEL_NOT_FOUND", reason),
  });
  if (!ROCM_SCHEMES.includes(archive.schemeName)) {
    return missed(`the runtime does not know the scheme ${archive.schemeName}`);
  }
  const entry = archive.find(key, target);
  if (entry === undefined) {
    // The reason costs a look at all keys, which a survey of many kernels does without.
    return missed(options.readKernels === false ? "it has no such key" : missReason(archive, key, target));
  }
  const obstacle =
    (await obstacleOf(archive, entry, behaviour, signal)) ?? options.knownFailure?.(archive, entry);
  if (obstacle !== undefined) return { kernel: undefined, ...obstacle };
  const place = { isa, target, archive: path, ordinal: entry.ordinal };
  if (options.readKernels === false) {
    const size = entry.originalSize ?? 0;
    const kernel = { ...place, size, xxh64: undefined, sha256: undefined, hashMatches: undefined };
    return { kernel, reason: undefined };
  }
  const reading = await reader.read(archive, entry, signal);
  if (reading.status !== undefined) return { kernel: undefined, ...reading };
  const { size, xxh64, sha256, hashMatches, reason } = reading;
  return { kernel: { ...place, size, xxh64, sha256, hashMatches }, reason };
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
