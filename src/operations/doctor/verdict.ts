import type { CoverageRow } from "./coverage.ts";
import type { HostFacts } from "./doctor-facts.ts";
import { isJudged, unservedWrappers } from "./fat-coverage.ts";

/** Whether one GPU gets its kernels from the binaries that were looked at. */
export interface IsaVerdict {
  readonly isa: string;
  /** All ISAs that its agent is taken to list, in order. */
  readonly isas: readonly string[];
  /** `partly`: some wrappers get none. `unknown`: there is nothing that could be judged. */
  readonly loads: "yes" | "partly" | "no" | "unknown";
  readonly wrappers: number;
  /** With today's loader. */
  readonly found: number;
  /** With loaders up to ROCm 7.14. */
  readonly foundBefore: number;
  /** Binaries of which some wrappers get no kernel. */
  readonly lacking: readonly string[];
  /** Binaries with compressed bundles, which were not looked into. */
  readonly notJudged: readonly string[];
}

/** Sums the rows of one agent up, together with the binaries that hold their kernels themselves. */
export function judgeIsa(
  agent: { readonly isa: string; readonly isas: readonly string[] },
  rows: readonly CoverageRow[],
  hosts: readonly HostFacts[],
): IsaVerdict {
  const own = rows.filter(({ isa }) => isa === agent.isa);
  const fat = hosts.filter(({ state }) => state === "fat");
  const judged = fat.filter(isJudged);
  const served = new Map(
    judged.map((host) => [host, host.wrapperCount - unservedWrappers(host, agent).length]),
  );
  const add = (count: (row: CoverageRow) => number): number => own.reduce((sum, row) => sum + count(row), 0);
  const inFat = judged.reduce((sum, { wrapperCount }) => sum + wrapperCount, 0);
  const inServed = [...served.values()].reduce((sum, count) => sum + count, 0);
  const broken = hosts.filter(
    ({ state, metadata, findings }) =>
      (state === "converted" && metadata === undefined) || findings.some(({ code }) => code === "KP102"),
  );
  const inBroken = broken.reduce((sum, { wrapperCount }) => sum + Math.max(1, wrapperCount), 0);
  const wrappers = add((row) => row.wrappers) + inFat + inBroken;
  const found = add((row) => row.wrappers - row.missing.length) + inServed;
  const lacking = [
    ...broken.map(({ path }) => path),
    ...own.filter(({ missing }) => missing.length > 0).map(({ binary }) => binary),
    ...judged.filter((host) => served.get(host) !== host.wrapperCount).map(({ path }) => path),
  ];
  return {
    isa: agent.isa,
    isas: agent.isas,
    loads: wrappers === 0 ? "unknown" : found === wrappers ? "yes" : found === 0 ? "no" : "partly",
    wrappers,
    found,
    foundBefore: add((row) => row.wrappers - row.missingBefore.length) + inServed,
    lacking,
    notJudged: fat.filter(({ targets }) => targets === undefined).map(({ path }) => path),
  };
}
