import { type EffortParameters, SMALL_KERNEL } from "./effort.ts";
import { coverFingerprints, type DictionaryWindow } from "./dictionary-windows.ts";
import { countGroups, type FingerprintTable } from "./fingerprint-table.ts";
import { type GroupOptions, groupSiblings } from "./sibling-groups.ts";

/** What a planner knows of the kernels: identical ones are left out before. */
export interface PlannerInput {
  readonly table: FingerprintTable;
  /** By kernel, in bytes. */
  readonly sizes: readonly number[];
}

/** What is to be stored: a frame for each group, and perhaps a dictionary for all of them. */
export interface Plan {
  /** Kernels of each frame, in the order of their bytes. */
  readonly groups: readonly (readonly number[])[];
  /** Windows of the shared dictionary, best first; none: no dictionary. */
  readonly windows: readonly DictionaryWindow[];
  /** About how many bytes of the kernels stand in the dictionary too. */
  readonly gain: number;
}

/** A strategy that decides what to store. */
export interface Planner {
  readonly name: PlannerName;
  plan(input: PlannerInput, effort: EffortParameters): Plan;
}

/** How the scheme across kernels chooses what a kernel is compressed against. */
export type PlannerName = "auto" | "dictionary" | "siblings" | "blocks";

export const PLANNER_NAMES: readonly PlannerName[] = ["auto", "dictionary", "siblings", "blocks"];

/** Four kernels of one size may be a group: one for each of four sibling targets. */
const GROUPING: GroupOptions = { spread: 4.25, floor: 48 * 1024 };

/** Which kernels are packed into blocks, in bytes, and how large these get. */
interface BlockOptions {
  readonly below: number;
  readonly blockSize: number;
}

const SMALL: BlockOptions = { below: GROUPING.floor / 4, blockSize: GROUPING.floor };
/** A frame of its own and its entry take more than a hundredth of such a kernel. */
const TINY: BlockOptions = { below: 2048, blockSize: 16 * 1024 };

/** A dictionary may be this part of all kernels at most. */
const DICTIONARY_SHARE = 0.25;

const alone = (sizes: readonly number[]): readonly (readonly number[])[] =>
  sizes.map((_, kernel) => [kernel]);

/** A dictionary of what many kernels share; each kernel a frame of its own. */
const dictionary: Planner = {
  name: "dictionary",
  plan({ table, sizes }, effort) {
    const groups = alone(sizes);
    const { windows, gain } = coverFingerprints(
      table,
      sizes,
      countGroups(table, groups),
      coverage(sizes, effort),
    );
    return { groups, windows, gain };
  },
};

/** Kernels that resemble each other in common frames; no dictionary. */
const siblings: Planner = {
  name: "siblings",
  plan({ table, sizes }) {
    const counts = countGroups(table, alone(sizes));
    return { groups: groupSiblings(table, sizes, counts, undefined, GROUPING), windows: [], gain: 0 };
  },
};

/**
 * Both: the dictionary holds what many share, groups what only few do. Each further pass counts a fingerprint once for
 * a group, so that the dictionary leaves out what siblings have in common anyway. Kernels that share nothing come out
 * alone, without a dictionary.
 */
const auto: Planner = {
  name: "auto",
  plan({ table, sizes }, effort) {
    const options = coverage(sizes, effort);
    const kernelCounts = countGroups(table, alone(sizes));
    let { windows, covered, gain } = coverFingerprints(table, sizes, kernelCounts, options);
    let groups = groupSiblings(table, sizes, kernelCounts, covered, GROUPING);
    for (let pass = 1; pass < effort.passes; pass++) {
      ({ windows, covered, gain } = coverFingerprints(table, sizes, countGroups(table, groups), options));
      groups = groupSiblings(table, sizes, kernelCounts, covered, GROUPING);
    }
    return { groups: packLone(groups, sizes, TINY), windows, gain };
  },
};

/** As `auto`, and small kernels that found no sibling are put together too, in ordinal order. */
const blocks: Planner = {
  name: "blocks",
  plan(input, effort) {
    const plan = auto.plan(input, effort);
    return { ...plan, groups: packLone(plan.groups, input.sizes, SMALL) };
  },
};

export const PLANNERS: Readonly<Record<PlannerName, Planner>> = { auto, dictionary, siblings, blocks };

/** Puts kernels that are alone and small into common frames, in ordinal order. */
function packLone(
  groups: readonly (readonly number[])[],
  sizes: readonly number[],
  { below, blockSize }: BlockOptions,
): readonly (readonly number[])[] {
  const isLoneAndSmall = (group: readonly number[]): boolean =>
    group.length === 1 && (sizes[group[0] ?? 0] ?? 0) < below;
  const others = groups.filter((group) => !isLoneAndSmall(group));
  const packed = fillBlocks(groups.filter(isLoneAndSmall).flat(), sizes, blockSize);
  return [...others, ...packed].toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
}

function fillBlocks(
  kernels: readonly number[],
  sizes: readonly number[],
  limit: number,
): readonly (readonly number[])[] {
  const filled: number[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const kernel of kernels) {
    const added = sizes[kernel] ?? 0;
    if (size + added > limit) {
      filled.push([]);
      size = 0;
    }
    filled.at(-1)?.push(kernel);
    size += added;
  }
  return filled;
}

/** Whether half of the kernels or more are small. */
export function areMostlySmall(sizes: readonly number[]): boolean {
  const sorted = sizes.toSorted((a, b) => a - b);
  return (sorted[sorted.length >>> 1] ?? 0) < SMALL_KERNEL;
}

function coverage(
  sizes: readonly number[],
  effort: EffortParameters,
): { capacity: number; leastGain: number } {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const most = areMostlySmall(sizes)
    ? effort.dictionarySize.smallKernels
    : effort.dictionarySize.largeKernels;
  return { capacity: Math.min(most, Math.floor(total * DICTIONARY_SHARE)), leastGain: effort.leastGain };
}
