import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Archive } from "../archive/archive.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { AccessError, NotFoundError } from "../errors/errors.ts";
import { type Finding, findingOrThrow } from "../errors/finding.ts";
import { openFile } from "../source/file-source.node.ts";
import { diffKernels, type DiffOptions, type KernelDifferences, kernelId } from "./diff-kernels.ts";
import { findInputs, pathInside } from "./find-inputs.node.ts";
import { defaultJobs } from "./jobs.node.ts";

/** All differences between two archives or trees. */
export interface DiffReport {
  readonly before: string;
  readonly after: string;
  /** Archives that differ, or could not be compared; of single archives always the one pair. */
  readonly archives: readonly ArchiveDiff[];
  /** Archives in which nothing differs. */
  readonly sameArchives: number;
  readonly isSame: boolean;
  /** Something could not be read: the answer is incomplete. */
  readonly hasTrouble: boolean;
  readonly findings: readonly Finding[];
}

/** Differences between two archives of one name. */
export interface ArchiveDiff extends KernelDifferences {
  /** Relative to the two trees; of single archives empty. */
  readonly path: string;
  /** `added` and `removed`: the archive is in one of the two trees only. */
  readonly state: "both" | "added" | "removed" | "unreadable";
  /** Targets that had kernels, or stood in `gfx_arches`, and no longer do; one of the two is enough. */
  readonly lostTargets: readonly string[];
  readonly newTargets: readonly string[];
  /** Targets, and wrappers (binary keys), left with fewer kernels than before; those of lost targets do not count. */
  readonly fewerKernels: readonly FewerKernels[];
}

/** A binary key or target with fewer kernels than before. */
export interface FewerKernels {
  readonly kind: "target" | "binaryKey";
  readonly name: string;
  readonly before: number;
  readonly after: number;
}

/** How {@link diffPaths} compares. */
export interface DiffPathsOptions extends Omit<DiffOptions, "onFinding"> {
  readonly onFinding?: DiffOptions["onFinding"] | undefined;
}

const NOTHING: KernelDifferences = { added: [], removed: [], changed: [], same: 0 };

/**
 * Compares two archives, or two trees of archives paired by their relative paths. What cannot be read is a finding of
 * severity `error`, and the rest is compared all the same.
 *
 * Kernels whose hash both archives hold are not decoded unless they differ.
 *
 * @throws AccessError when a path cannot be read at all, or one is a folder and the other is not
 * @throws NotFoundError `NOTHING_FOUND` when neither tree has an archive
 */
export async function diffPaths(
  before: string,
  after: string,
  options: DiffPathsOptions = {},
): Promise<DiffReport> {
  const findings: Finding[] = [];
  const how: DiffOptions = {
    ...options,
    jobs: options.jobs ?? defaultJobs(),
    onFinding: (finding) => {
      findings.push(finding);
      options.onFinding?.(finding);
    },
  };
  const archives: ArchiveDiff[] = [];
  let sameArchives = 0;
  const pairs = await pairArchives(before, after);
  for (const { path, old, now } of pairs) {
    options.signal?.throwIfAborted();
    const diff = await diffPair(path, old, now, how);
    if (pairs.length > 1 && isUnchanged(diff)) sameArchives += 1;
    else archives.push(diff);
  }
  return {
    before,
    after,
    archives,
    sameArchives,
    isSame: archives.every(isUnchanged),
    hasTrouble: findings.some(({ severity }) => severity === "error"),
    findings,
  };
}

interface ArchivePair {
  readonly path: string;
  readonly old: string | undefined;
  readonly now: string | undefined;
}

async function pairArchives(before: string, after: string): Promise<readonly ArchivePair[]> {
  const [oldIsFolder, nowIsFolder] = [await isFolder(before), await isFolder(after)];
  if (oldIsFolder !== nowIsFolder) {
    throw new AccessError(
      "READ_FAILED",
      "a folder can only be compared with a folder, an archive with an archive",
      {
        file: oldIsFolder ? before : after,
        found: "a folder",
        expected: "an archive",
      },
    );
  }
  if (!oldIsFolder) return [{ path: "", old: before, now: after }];
  const [old, now] = [await archivesBelow(before), await archivesBelow(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])].toSorted();
  if (paths.length === 0) {
    throw new NotFoundError("NOTHING_FOUND", "neither folder has an archive (*.kpack)", {
      file: `${before}, ${after}`,
    });
  }
  return paths.map((path) => ({ path, old: old.get(path), now: now.get(path) }));
}

async function archivesBelow(folder: string): Promise<ReadonlyMap<string, string>> {
  const archives = new Map<string, string>();
  for await (const { path } of findInputs([folder])) {
    if (path.endsWith(".kpack")) archives.set(pathInside(resolve(folder), resolve(path)) ?? path, path);
  }
  return archives;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AccessError("READ_FAILED", `cannot be read: ${reason}`, { file: path, cause });
  }
}

async function diffPair(
  path: string,
  old: string | undefined,
  now: string | undefined,
  options: DiffOptions,
): Promise<ArchiveDiff> {
  await using before = await openOrReport(old, options);
  await using after = await openOrReport(now, options);
  const nothing = { path, ...NOTHING, lostTargets: [], newTargets: [], fewerKernels: [] };
  const [oldArchive, nowArchive] = [before.archive, after.archive];
  if ((old !== undefined && !oldArchive) || (now !== undefined && !nowArchive))
    return { ...nothing, state: "unreadable" };
  const state = old === undefined ? "added" : now === undefined ? "removed" : "both";
  const lostTargets = goneTargets(oldArchive, nowArchive);
  const kernels: KernelDifferences =
    oldArchive && nowArchive
      ? await diffKernels(oldArchive, nowArchive, options)
      : {
          ...NOTHING,
          added: [...(nowArchive?.entries ?? [])].map(kernelId),
          removed: [...(oldArchive?.entries ?? [])].map(kernelId),
        };
  return {
    path,
    state,
    ...kernels,
    lostTargets,
    newTargets: goneTargets(nowArchive, oldArchive),
    fewerKernels: fewerKernels(oldArchive, nowArchive, lostTargets),
  };
}

/** An archive to be disposed of, if there is one. */
interface Opened extends AsyncDisposable {
  readonly archive: Archive | undefined;
}

async function openOrReport(path: string | undefined, options: DiffOptions): Promise<Opened> {
  let archive: Archive | undefined;
  if (path !== undefined) {
    try {
      archive = await openArchive(await openFile(path), { signal: options.signal });
    } catch (error) {
      options.onFinding(findingOrThrow(error));
    }
  }
  return {
    archive,
    async [Symbol.asyncDispose](): Promise<void> {
      await archive?.[Symbol.asyncDispose]();
    },
  };
}

/**
 * Targets that have kernels, or stand in `gfx_arches`, in the one archive and not in the other: without either of the
 * two ROCm's loader finds nothing for them.
 */
function goneTargets(from: Archive | undefined, to: Archive | undefined): readonly string[] {
  const used = missingIn(to?.toc.entries.targetNames, from?.toc.entries.targetNames);
  const listed = missingIn(to?.targets, from?.targets);
  return [...new Set([...used, ...listed])];
}

function missingIn(others: readonly string[] = [], names: readonly string[] = []): readonly string[] {
  const has = new Set(others);
  return names.filter((name) => !has.has(name));
}

function fewerKernels(
  before: Archive | undefined,
  after: Archive | undefined,
  lostTargets: readonly string[],
): readonly FewerKernels[] {
  const [old, now] = [countKernels(before, lostTargets), countKernels(after, lostTargets)];
  const fewer: FewerKernels[] = [];
  for (const kind of ["target", "binaryKey"] as const) {
    for (const [name, count] of old[kind]) {
      const left = now[kind].get(name) ?? 0;
      if (left < count) fewer.push({ kind, name, before: count, after: left });
    }
  }
  return fewer;
}

function countKernels(
  archive: Archive | undefined,
  lostTargets: readonly string[],
): Readonly<Record<FewerKernels["kind"], ReadonlyMap<string, number>>> {
  const counts = { target: new Map<string, number>(), binaryKey: new Map<string, number>() };
  for (const { binaryKey, target } of archive?.entries ?? []) {
    if (lostTargets.includes(target)) continue; // that the whole target is gone is said once
    counts.target.set(target, (counts.target.get(target) ?? 0) + 1);
    counts.binaryKey.set(binaryKey, (counts.binaryKey.get(binaryKey) ?? 0) + 1);
  }
  return counts;
}

function isUnchanged(diff: ArchiveDiff): boolean {
  const { state, added, removed, changed, lostTargets, newTargets } = diff;
  return (
    state === "both" && [added, removed, changed, lostTargets, newTargets].every((list) => list.length === 0)
  );
}
