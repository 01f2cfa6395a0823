import { type ArchiveSearch, type LoaderBehaviour, searchArchives } from "../../loader/archive-search.ts";
import { parseLoaderEnvironment } from "../../loader/environment.ts";
import type { LoaderFileSystem } from "../../loader/loader-file-system.ts";
import type { LoaderStatus } from "../../loader/loader-status.ts";
import { findKernel, type FindOptions, type KernelAnswer } from "../../loader/resolve.ts";
import type { HostFacts } from "./doctor-facts.ts";

/** A row of the matrix wrapper × target × archive: one binary on one GPU. */
export interface CoverageRow {
  readonly binary: string;
  /** A target that an archive has, taken as the agent's ISA; or an ISA that was asked about. */
  readonly isa: string;
  /** All ISAs of that agent, in its order. */
  readonly isas: readonly string[];
  readonly wrappers: number;
  /** Positions of wrappers that get no kernel from today's loader, those without metadata included. */
  readonly missing: readonly number[];
  /** Positions of wrappers that got none from loaders up to ROCm 7.14. */
  readonly missingBefore: readonly number[];
  /** Which archive serves which wrappers today, by their positions. */
  readonly archives: readonly { readonly path: string; readonly wrappers: readonly number[] }[];
}

export interface CoverageAnswer extends CoverageRow {
  /** Today's search, which is the same for all wrappers. */
  readonly search: ArchiveSearch;
  /** Whether an archive ends the process with loaders up to ROCm 7.14: then nothing is said by what they miss. */
  readonly endedBefore: boolean;
  /** Today's answer for the first wrapper without a kernel that has its metadata. */
  readonly failed: KernelAnswer | undefined;
  /** By position, what today's loader says of wrappers without a kernel that have their metadata. */
  readonly statuses: ReadonlyMap<number, LoaderStatus>;
}

export type CoverOptions = Pick<FindOptions, "knownFailure" | "signal">;

/** Asks the loader, old and new, for each wrapper of a converted binary. Nothing is decoded. */
export async function coverBinary(
  host: HostFacts,
  agent: { readonly isa: string; readonly isas: readonly string[] },
  fileSystem: LoaderFileSystem,
  options: CoverOptions,
): Promise<CoverageAnswer | undefined> {
  const { signal } = options;
  const { metadata } = host;
  if (metadata === undefined) return undefined;
  const ask = async (behaviour: LoaderBehaviour): Promise<Asked> => {
    const environment = parseLoaderEnvironment({}, host.format === "coff" ? "windows" : "posix");
    const request = {
      binaryPath: host.path,
      metadata,
      isas: agent.isas,
      behaviour,
      environment,
      workingFolder: "/",
    };
    const search = await searchArchives(request, fileSystem, { signal });
    return { search, answers: await answersOf(host, metadata.kernelName, search, options) };
  };
  const now = await ask("current");
  const before = await ask("before-2026-08");
  const missing = missingIn(host, now);
  const served = new Map<string, number[]>();
  const statuses = new Map<number, LoaderStatus>();
  for (const { index, reserved1 } of host.wrappers) {
    if (host.lost.has(index)) continue;
    const answer = now.answers.get(reserved1);
    if (answer?.kernel) push(served, answer.kernel.archive, index);
    else if (answer?.failure) statuses.set(index, answer.failure.status);
  }
  const first = missing.find((position) => !host.lost.has(position));
  const failed = host.wrappers.find(({ index }) => index === first);
  return {
    binary: host.path,
    isa: agent.isa,
    isas: agent.isas,
    wrappers: host.wrappers.length,
    missing,
    missingBefore: missingIn(host, before),
    archives: Array.from(served, ([path, wrappers]) => ({ path, wrappers })),
    search: now.search,
    endedBefore: before.search.failure?.status.name === "PROCESS_ENDS",
    failed: failed && now.answers.get(failed.reserved1),
    statuses,
  };
}

interface Asked {
  readonly search: ArchiveSearch;
  /** By the index that is asked for. */
  readonly answers: ReadonlyMap<number, KernelAnswer>;
}

async function answersOf(
  host: HostFacts,
  kernelName: string,
  search: ArchiveSearch,
  options: CoverOptions,
): Promise<ReadonlyMap<number, KernelAnswer>> {
  const answers = new Map<number, KernelAnswer>();
  for (const { reserved1: index } of host.wrappers) {
    if (answers.has(index)) continue;
    options.signal?.throwIfAborted();
    answers.set(index, await findKernel(search, { kernelName, index }, { ...options, readKernels: false }));
  }
  return answers;
}

function missingIn(host: HostFacts, { answers }: Asked): readonly number[] {
  return host.wrappers
    .filter(({ index, reserved1 }) => host.lost.has(index) || answers.get(reserved1)?.kernel === undefined)
    .map(({ index }) => index);
}

function push(lists: Map<string, number[]>, key: string, item: number): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
