import { isAbsolute } from "node:path";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { FormatError, isKpackError, NotFoundError } from "../errors/errors.ts";
import type { Finding } from "../errors/finding.ts";
import { detectFile } from "../host/detect.ts";
import { type FatBinary, readFatBinary } from "../host/fat-binary.ts";
import { type HipkMetadata, readHipkMetadata } from "../host/hipk-metadata.ts";
import { type ArchiveSearch, type LoaderBehaviour, searchArchives } from "../loader/archive-search.ts";
import {
  type LoaderEnvironment,
  type LoaderVariables,
  parseLoaderEnvironment,
} from "../loader/environment.ts";
import { loaderStatus } from "../loader/loader-status.ts";
import { isaNotes, METADATA_REMEDY, remedyFor } from "../loader/remedy.ts";
import { findKernel, type KernelAnswer } from "../loader/resolve.ts";
import { NodeLoaderFileSystem } from "../loader/resolve.node.ts";
import { joinPath } from "../loader/search-paths.ts";
import { openFile } from "../source/file-source.node.ts";
import type { Source } from "../source/source.ts";

/** What {@link resolveBinary} is asked. */
export interface ResolveBinaryOptions {
  /** The ISAs of one agent in its order of preference, with or without `amdgcn-amd-amdhsa--`. */
  readonly isas: readonly string[];
  /** The position of a wrapper. @default all wrappers */
  readonly index?: number | undefined;
  /** @default "current" */
  readonly behaviour?: LoaderBehaviour | undefined;
  /** The loader's variables. Those of this process are not looked at. @default none */
  readonly variables?: LoaderVariables | undefined;
  /** Where relative paths in the variables count from. @default the current folder */
  readonly workingFolder?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the loader does for a binary: the search, which is the same for all kernels, and each kernel's answer. */
export interface ResolveReport {
  readonly binary: string;
  readonly format: "elf" | "coff";
  readonly behaviour: LoaderBehaviour;
  readonly isas: readonly string[];
  readonly environment: LoaderEnvironment;
  /** Undefined when the loader cannot read it: then every answer is error 12. */
  readonly metadata: HipkMetadata | undefined;
  /** Undefined without metadata. */
  readonly search: ArchiveSearch | undefined;
  readonly wrappers: readonly WrapperAnswer[];
  /** What is odd about the request. */
  readonly notes: readonly string[];
  /** What is odd about the binary. */
  readonly findings: readonly Finding[];
}

/** What the loader does for one wrapper of the binary. */
export interface WrapperAnswer {
  /** Position in the binary. */
  readonly wrapper: number;
  readonly answer: KernelAnswer;
  /** What to do about a failure. */
  readonly remedy: string | undefined;
}

/**
 * Answers for one or all wrappers of a converted binary what the loader would do, without a GPU.
 * @throws NotFoundError `NOTHING_FOUND` when the binary is not converted, or has no wrapper with the index
 * @throws FormatError `NO_DEVICE_CODE` for a file of another kind; `HALF_CONVERTED`
 */
export async function resolveBinary(path: string, options: ResolveBinaryOptions): Promise<ResolveReport> {
  const { isas, signal, behaviour = "current" } = options;
  const workingFolder = options.workingFolder ?? process.cwd();
  // Not normalised: behind a symbolic link `..` is another folder than the text says.
  const binaryPath = isAbsolute(path) ? path : joinPath(workingFolder, path);
  await using source = await openFile(path);
  const findings: Finding[] = [];
  const binary = await readConverted(source, (finding) => void findings.push(finding), signal);
  const chosen = binary.wrappers.filter(
    ({ index }) => options.index === undefined || index === options.index,
  );
  if (chosen.length === 0) throw noWrapper(path, binary, options.index);
  const environment = parseLoaderEnvironment(
    options.variables ?? {},
    binary.format === "coff" ? "windows" : "posix",
  );
  const common = {
    binary: path,
    format: binary.format,
    behaviour,
    isas,
    environment,
    notes: isaNotes(isas),
    findings,
  };
  const lost = new Set(findings.filter(({ code }) => code === "OUT_OF_BOUNDS").map(({ field }) => field));
  let metadata: HipkMetadata;
  try {
    metadata = await readHipkMetadata(source, binary, { signal });
  } catch (error) {
    if (!isKpackError(error) || error.name === "AccessError") throw error;
    const wrappers = chosen.map(({ index, reserved1 }) => withoutMetadata(index, reserved1, error.summary));
    return { ...common, metadata: undefined, search: undefined, wrappers };
  }
  await using fileSystem = new NodeLoaderFileSystem({ signal });
  const request = { binaryPath, metadata, isas, behaviour, environment, workingFolder };
  const search = await searchArchives(request, fileSystem, { signal });
  const wrappers: WrapperAnswer[] = [];
  // Wrappers that ask for one index get one answer.
  const answers = new Map<number, Pick<WrapperAnswer, "answer" | "remedy">>();
  for (const { index: wrapper, reserved1: index } of chosen) {
    if (lost.has(`wrapper[${wrapper}].pointer`)) {
      wrappers.push(withoutMetadata(wrapper, index, "the wrapper points to no metadata"));
      continue;
    }
    let known = answers.get(index);
    if (known === undefined) {
      signal?.throwIfAborted();
      const answer = await findKernel(search, { kernelName: metadata.kernelName, index }, { signal });
      known = { answer, remedy: await remedyFor({ ...request, search, answer }, fileSystem) };
      answers.set(index, known);
    }
    wrappers.push({ wrapper, ...known });
  }
  return { ...common, metadata, search, wrappers };
}

async function readConverted(
  source: Source,
  onFinding: (finding: Finding) => void,
  signal: AbortSignal | undefined,
): Promise<FatBinary> {
  const kind = await detectFile(source, { signal });
  if (kind !== "elf-host" && kind !== "coff-host") {
    throw new FormatError("NO_DEVICE_CODE", "this is no host binary", {
      file: source.name,
      expected: "a program or library (ELF or COFF)",
      found: kind,
      hint: 'Name the program or library that asks for the kernel; "kpack list" shows what is in an archive.',
    });
  }
  const binary = await readFatBinary(source, { codecs: nodeCodecs, onFinding, signal });
  if (binary.state === "converted") return binary;
  const isFat = binary.state === "fat";
  throw new NotFoundError(
    "NOTHING_FOUND",
    isFat ? "the binary is not converted" : "the binary asks for no kernels",
    {
      file: source.name,
      expected: "HIPK wrappers, which make the loader look for archives",
      found: isFat
        ? `${binary.wrappers.length} wrapper(s) with the kernels in the file itself`
        : "no device code",
      hint: isFat ? 'Its kernels are in it: "kpack list" shows for which targets.' : undefined,
    },
  );
}

function noWrapper(path: string, binary: FatBinary, index: number | undefined): NotFoundError {
  const { wrappers } = binary;
  return new NotFoundError("NOTHING_FOUND", "the binary has no wrapper with this index", {
    file: path,
    field: "--index",
    expected: wrappers.length === 0 ? "none: it has no wrappers" : `0 to ${wrappers.length - 1}`,
    found: index ?? "none",
  });
}

function withoutMetadata(wrapper: number, index: number, reason: string): WrapperAnswer {
  const failure = { status: loaderStatus("KPACK_ERROR_INVALID_METADATA"), reason };
  return {
    wrapper,
    answer: { key: `?#${index}`, index, candidates: [], kernel: undefined, failure },
    remedy: METADATA_REMEDY,
  };
}
