import { candidatesOf } from "../../loader/candidates.ts";
import { formatStatus } from "../../loader/loader-status.ts";
import { formatIndexes } from "../../loader/miss-reason.ts";
import { fileNameOf } from "../../loader/search-paths.ts";
import { keysOf } from "../../archive/archive-keys.ts";
import type { CoverageAnswer } from "./coverage.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";
import type { Reach } from "./doctor-facts.ts";

/** What the archives that a binary reaches have for it. */
export interface BinaryKeys {
  /** By target, the indexes over all archives. */
  readonly targets: ReadonlyMap<string, ReadonlySet<number>>;
  /** Archives with keys of the binary that have no index. */
  readonly withoutIndex: readonly string[];
}

/** Gathers the keys of one binary from the archives that it reaches. */
export function gatherKeys({ host, archives }: Reach): BinaryKeys {
  const targets = new Map<string, Set<number>>();
  const withoutIndex: string[] = [];
  for (const { path, archive } of archives) {
    const keys = archive && keysOf(archive).get(host.metadata?.kernelName ?? "");
    for (const [target, indexes] of keys ?? []) {
      for (const index of indexes) {
        if (index === undefined) {
          if (!withoutIndex.includes(path)) withoutIndex.push(path);
          continue;
        }
        const known = targets.get(target) ?? new Set<number>();
        targets.set(target, known.add(index));
      }
    }
  }
  return { targets, withoutIndex };
}

/** Whether the binary and the archives that it reaches belong together, for all targets at once. */
export function pairingFindings(reach: Reach, keys: BinaryKeys): readonly DoctorFinding[] {
  const { host, archives, patterns } = reach;
  const { metadata } = host;
  if (metadata === undefined || host.wrappers.length === 0) return [];
  const opened = archives.filter(({ archive }) => archive !== undefined).map(({ path }) => path);
  if (archives.length === 0) {
    const evidence = [
      `it asks for the kernels of ${metadata.kernelName}`,
      ...patterns.map((path) => `nothing at ${path}`),
    ];
    return [doctorFinding("KP303", [host.path], evidence)];
  }
  if (opened.length === 0) return []; // each of them is said to be broken
  if (keys.withoutIndex.length > 0 && keys.targets.size === 0) {
    return [
      doctorFinding(
        "KP206",
        [host.path, ...keys.withoutIndex],
        [`the key is ${metadata.kernelName}, without #N`],
      ),
    ];
  }
  if (keys.targets.size === 0) {
    const evidence = [
      `no archive has a key ${metadata.kernelName}#N`,
      ...opened.slice(0, 5).map(describeKeys(reach)),
    ];
    return [doctorFinding("KP207", [host.path, ...opened.slice(0, 5)], evidence)];
  }
  return [...unkeyedWrappers(reach, keys), ...unwrappedKeys(reach, keys)];
}

/** Whether any wrapper asks for an index that any target has; if not, KP201 says so for all of them. */
export function hasCommonIndex({ host }: Reach, { targets }: BinaryKeys): boolean {
  const indexes = [...targets.values()];
  return host.wrappers.some(({ reserved1 }) => indexes.some((has) => has.has(reserved1)));
}

/** What an archive has instead: the binaries whose names it knows. */
function describeKeys({ archives }: Reach): (path: string) => string {
  return (path) => {
    const archive = archives.find((shelved) => shelved.path === path)?.archive;
    const names = archive ? [...keysOf(archive).keys()] : [];
    const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
    return `${fileNameOf(path)} has ${names.slice(0, 3).join(", ") || "no keys"}${more}`;
  };
}

function unkeyedWrappers({ host }: Reach, { targets }: BinaryKeys): readonly DoctorFinding[] {
  const known = new Set([...targets.values()].flatMap((indexes) => [...indexes]));
  const unkeyed = host.wrappers
    .filter(({ reserved1 }) => !known.has(reserved1))
    .map(({ reserved1 }) => reserved1);
  if (unkeyed.length === 0) return [];
  const evidence = [
    `${host.metadata?.kernelName}: no target has ${runs(unkeyed)}`,
    ...[...targets].slice(0, 5).map(([target, indexes]) => `${target} has ${runs(indexes)}`),
  ];
  return [doctorFinding("KP201", [host.path], evidence)];
}

function unwrappedKeys({ host, archives }: Reach, { targets }: BinaryKeys): readonly DoctorFinding[] {
  const asked = new Set(host.wrappers.map(({ reserved1 }) => reserved1));
  const lines: string[] = [];
  for (const [target, indexes] of targets) {
    const extra = [...indexes].filter((index) => !asked.has(index));
    if (extra.length > 0)
      lines.push(`${target}: ${runs(extra)}, and the library has ${host.wrappers.length} wrapper(s)`);
  }
  const paths = archives.map(({ path }) => path).slice(0, 5);
  return lines.length > 0 ? [doctorFinding("KP203", [host.path, ...paths], lines.slice(0, 5))] : [];
}

/** Holes and shadowing, from what the loader answers for the GPUs. */
export function coverageFindings(
  reach: Reach,
  keys: BinaryKeys,
  rows: readonly CoverageAnswer[],
): readonly DoctorFinding[] {
  const { host } = reach;
  const known = new Set([...keys.targets.values()].flatMap((indexes) => [...indexes]));
  const asked = new Map(host.wrappers.map(({ index, reserved1 }) => [index, reserved1]));
  // What no target has, and what has lost its metadata, is said once, for all targets.
  const isHole = (position: number): boolean =>
    known.has(asked.get(position) ?? -1) && !host.lost.has(position);
  const holes: string[] = [];
  const shadows: string[] = [];
  const hiding = new Set<string>();
  for (const row of rows) {
    const missingNow = new Set(row.missing);
    const shadowed = row.missingBefore.filter((position) => !missingNow.has(position));
    if (shadowed.length > 0 && !row.endedBefore) {
      shadows.push(
        `for ${row.isa}: ${shadowed.length} wrapper(s) are found in a later archive only, at ${positions(shadowed)}`,
      );
      const [first] = candidatesOf(row.search); // the one whose miss was final
      if (first) hiding.add(first.found.path);
    }
    const missing = row.missing.filter(isHole);
    if (row.missing.length === row.wrappers) continue;
    const failed = missing.filter((position) => row.statuses.has(position));
    for (const [, group] of Map.groupBy(failed, (position) => row.statuses.get(position)?.name)) {
      const status = row.statuses.get(group[0] ?? -1);
      if (status === undefined) continue;
      const count = `${group.length} of ${row.wrappers} wrappers`;
      holes.push(`for ${row.isa}: ${count} get ${formatStatus(status)}, at ${positions(group)}`);
    }
  }
  return [
    ...(holes.length > 0 ? [doctorFinding("KP202", [host.path], holes)] : []),
    ...(shadows.length > 0 ? [doctorFinding("KP208", [host.path, ...hiding], shadows)] : []),
  ];
}

/** Positions of wrappers: `#` stands in front of indexes only. */
function positions(numbers: readonly number[]): string {
  return formatIndexes(numbers).replaceAll("#", "");
}

function runs(numbers: Iterable<number>): string {
  return formatIndexes([...new Set(numbers)].toSorted((a, b) => a - b));
}
