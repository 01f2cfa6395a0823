import type { Archive } from "../archive/archive.ts";
import { isKpackError, type KpackError } from "../errors/errors.ts";
import type { HipkMetadata } from "../host/hipk-metadata.ts";
import type { LoaderEnvironment } from "./environment.ts";
import { featureFlags } from "./isa.ts";
import type { LoaderBehaviour } from "./loader-behaviour.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { type LoaderStatus, loaderStatus } from "./loader-status.ts";
import {
  expandSearchPaths,
  folderOf,
  isAbsolutePath,
  joinPath,
  resolveEmbeddedPath,
  type SearchPath,
} from "./search-paths.ts";

export { LOADER_BEHAVIOURS, type LoaderBehaviour } from "./loader-behaviour.ts";

/** What stands at a path at which the loader looks. */
export type PathFate = "opened" | "missing" | "no-regular-file" | "cannot-be-opened";

export interface PathStep extends SearchPath {
  /** The path that the loader opens. */
  readonly path: string;
  readonly fate: PathFate;
  /** Without symbolic links, where something is there. */
  readonly realPath: string | undefined;
  /** An earlier path led to the same file, which is opened once. */
  readonly openedBefore: boolean;
  /**
   * Why it cannot be opened, and under which status the loader's debug output says so. Of what is missing: where a link
   * leads that stands there.
   */
  readonly status: LoaderStatus | undefined;
  readonly reason: string | undefined;
}

/** An archive that was opened, once for each path that leads to it. */
export interface FoundArchive {
  readonly path: string;
  readonly realPath: string;
  readonly archive: Archive;
}

/** The archives that the loader has for a binary and an agent, whatever kernel is asked for. */
export interface ArchiveSearch {
  readonly behaviour: LoaderBehaviour;
  readonly isas: readonly string[];
  readonly paths: readonly PathStep[];
  readonly archives: readonly FoundArchive[];
  /** The search was given up: no kernel is found. */
  readonly failure: { readonly status: LoaderStatus; readonly reason: string } | undefined;
}

export interface SearchRequest {
  /** Path of the host binary; its folder is where embedded paths count from. */
  readonly binaryPath: string;
  readonly metadata: HipkMetadata;
  /** In the agent's order of preference. */
  readonly isas: readonly string[];
  readonly behaviour: LoaderBehaviour;
  readonly environment: LoaderEnvironment;
  /** Where relative paths of the environment count from. */
  readonly workingFolder: string;
}

export const HRX_LIMITS = { archives: 64, searchPaths: 32, featureFlags: 4 } as const;

/** Looks at all paths in order and opens the archives that are there. */
export async function searchArchives(
  request: SearchRequest,
  fileSystem: LoaderFileSystem,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ArchiveSearch> {
  const { behaviour, isas, metadata, environment } = request;
  const given = { behaviour, isas };
  if (environment.disabled) {
    const reason = `ROCM_KPACK_DISABLE is ${environment.variables.ROCM_KPACK_DISABLE ?? ""}`;
    const status = loaderStatus("KPACK_ERROR_NOT_IMPLEMENTED");
    return { ...given, paths: [], archives: [], failure: { status, reason } };
  }
  const limit = behaviour === "hrx" ? hrxLimitBefore(request) : undefined;
  if (limit !== undefined) return { ...given, paths: [], archives: [], failure: hrxLimit(limit) };
  const paths: PathStep[] = [];
  const archives: FoundArchive[] = [];
  const opened = new Set<string>();
  for (const { expanded, ...searchPath } of expandSearchPaths(metadata, environment, isas)) {
    options.signal?.throwIfAborted();
    const path = await locate(request, searchPath, expanded, fileSystem);
    const { step, archive } = await look({ ...searchPath, path }, opened, behaviour, fileSystem);
    paths.push(step);
    if (step.status?.name === "PROCESS_ENDS") {
      const reason = `${step.path}: ${step.reason ?? ""}`;
      return { ...given, paths, archives, failure: { status: step.status, reason } };
    }
    if (archive !== undefined && step.realPath !== undefined) {
      opened.add(step.realPath);
      archives.push({ path, realPath: step.realPath, archive });
    }
  }
  const isOver = behaviour === "hrx" && archives.length > HRX_LIMITS.archives;
  const failure = isOver
    ? hrxLimit(`there are ${archives.length} archives, and HRX takes ${HRX_LIMITS.archives} at most`)
    : undefined;
  return { ...given, paths, archives, failure };
}

async function locate(
  request: SearchRequest,
  { origin }: SearchPath,
  expanded: string,
  fileSystem: LoaderFileSystem,
): Promise<string> {
  if (origin !== "embedded") {
    return isAbsolutePath(expanded) ? expanded : joinPath(request.workingFolder, expanded);
  }
  const folder = folderOf(request.binaryPath);
  if (request.behaviour !== "hrx") return await resolveEmbeddedPath(folder, expanded, fileSystem);
  return isAbsolutePath(expanded) ? expanded : joinPath(folder, expanded); // `..` is left to the kernel
}

async function look(
  place: SearchPath & { readonly path: string },
  opened: ReadonlySet<string>,
  behaviour: LoaderBehaviour,
  fileSystem: LoaderFileSystem,
): Promise<{ readonly step: PathStep; readonly archive: Archive | undefined }> {
  const nothing = { realPath: undefined, openedBefore: false, status: undefined, reason: undefined };
  const kind = await fileSystem.kind(place.path);
  const realPath = kind === "missing" ? undefined : await fileSystem.realPath(place.path);
  if (kind === "missing" || realPath === undefined) {
    const link = await fileSystem.linkTarget?.(place.path);
    const reason = link === undefined ? undefined : brokenLink(link);
    return { step: { ...place, ...nothing, fate: "missing", reason }, archive: undefined };
  }
  if (kind !== "file") {
    const reason = kind === "folder" ? "it is a folder" : "it is no regular file";
    return { step: { ...place, ...nothing, realPath, fate: "no-regular-file", reason }, archive: undefined };
  }
  const openedBefore = opened.has(realPath);
  try {
    const archive = await fileSystem.openArchive(realPath, behaviour);
    const refusal = behaviour === "hrx" ? hrxRefusal(archive) : undefined;
    if (refusal === undefined) {
      return { step: { ...place, ...nothing, realPath, openedBefore, fate: "opened" }, archive };
    }
    const status = loaderStatus("KPACK_ERROR_INVALID_FORMAT");
    const step: PathStep = {
      ...place,
      realPath,
      openedBefore,
      fate: "cannot-be-opened",
      status,
      reason: refusal,
    };
    return { step, archive: undefined };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    const status = statusOfOpening(error, behaviour);
    const reason = error.summary + moreOnOpening(error, behaviour);
    return {
      step: { ...place, realPath, openedBefore, fate: "cannot-be-opened", status, reason },
      archive: undefined,
    };
  }
}

/** What is said of a symbolic link behind which nothing is. */
export function brokenLink(target: string): string {
  return `a symbolic link to ${target} is there, which leads to no file`;
}

/** Schemes that ROCm's readers and HRX know. ROCm's take every other name for `none`, and find no kernel. */
export const ROCM_SCHEMES: readonly string[] = ["none", "zstd-per-kernel"];

/** What ROCm's readers do not look at when they open an archive; what they find in it cannot be foretold. */
const OVERLOOKED: ReadonlySet<string> = new Set([
  "DUPLICATE_KEY",
  "MISSING_KEY",
  "OVERLAP",
  "MALFORMED_TEXT",
]);

const HRX_DEPTH_LIMIT = 32;

function hrxRefusal(archive: Archive): string | undefined {
  if (!ROCM_SCHEMES.includes(archive.schemeName)) return `HRX does not know the scheme ${archive.schemeName}`;
  if (archive.toc.depth > HRX_DEPTH_LIMIT) return `the TOC nests deeper than ${HRX_DEPTH_LIMIT} levels`;
  return undefined;
}

function hrxLimitBefore({ metadata, environment, isas }: SearchRequest): string | undefined {
  const count = environment.override?.length ?? environment.prefix.length + metadata.searchPaths.length;
  if (count > HRX_LIMITS.searchPaths) {
    return `there are ${count} paths to search, and HRX takes ${HRX_LIMITS.searchPaths} at most`;
  }
  const isa = isas.find((candidate) => featureFlags(candidate).length > HRX_LIMITS.featureFlags);
  return (
    isa &&
    `${isa} has ${featureFlags(isa).length} feature flags, and HRX takes ${HRX_LIMITS.featureFlags} at most`
  );
}

function hrxLimit(reason: string): ArchiveSearch["failure"] {
  return { status: loaderStatus("HRX_LIMIT"), reason };
}

/** What the runtime makes of an archive that our reader refuses. */
function moreOnOpening(error: KpackError, behaviour: LoaderBehaviour): string {
  if (behaviour === "hrx") return OVERLOOKED.has(error.code) ? "; HRX may open it all the same" : "";
  if (endsProcess(error, behaviour)) return "; this runtime ends the process when it meets it";
  return OVERLOOKED.has(error.code) ? "; ROCm's runtime would open it all the same" : "";
}

/** A value of the wrong type throws what the older runtime does not catch. A TOC that is no map it looks out for. */
function endsProcess(error: KpackError, behaviour: LoaderBehaviour): boolean {
  return behaviour === "before-2026-08" && error.code === "WRONG_TYPE" && error.field !== "TOC";
}

/** The status under which ROCm's reader refuses to open what ours refuses. */
function statusOfOpening(error: KpackError, behaviour: LoaderBehaviour): LoaderStatus {
  if (endsProcess(error, behaviour)) return loaderStatus("PROCESS_ENDS");
  switch (error.code) {
    case "UNSUPPORTED_VERSION":
      return loaderStatus("KPACK_ERROR_UNSUPPORTED_VERSION");
    case "EMPTY_FILE":
    case "READ_FAILED":
    case "SOURCE_CHANGED":
      return loaderStatus("KPACK_ERROR_IO_ERROR");
    case "MALFORMED_MSGPACK":
    case "COUNT_TOO_LARGE":
    case "WRONG_TYPE":
      return loaderStatus("KPACK_ERROR_MSGPACK_PARSE_FAILED");
    case "LIMIT_EXCEEDED":
      return loaderStatus("KPACK_ERROR_OUT_OF_MEMORY");
    default:
      return loaderStatus("KPACK_ERROR_INVALID_FORMAT");
  }
}
