import type { Archive } from "../../archive/archive.ts";
import { readCodeObject } from "../../code-object/read-code-object.ts";
import { compatibleTargets } from "../../loader/isa.ts";
import { isKpackError } from "../../errors/errors.ts";
import { memorySource } from "../../source/memory-source.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";
import type { BinaryKeys } from "./pairing-findings.ts";
import type { Reach } from "./doctor-facts.ts";

export interface NumberingOptions {
  /** Compare every index of every target. */
  readonly deep: boolean;
  /** The targets that matter; undefined for all. Others serve for comparison. */
  readonly wanted: ReadonlySet<string> | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Larger kernels are left alone unless everything is decoded. */
const LARGEST_KERNEL = 8 * 1024 * 1024;
/** Other indexes at which a part is looked for, and other targets that are compared. */
const MOST_INDEXES = 32;
const MOST_TARGETS = 2;

/**
 * Whether targets count alike. Where a target has fewer kernels than there are wrappers, and has them at #0, #1 …
 * without a gap, its last one shows it: counted by position it has functions of the same part as the other targets'
 * kernel of that index, counted per target those of a later part.
 */
export async function numberingFindings(
  reach: Reach,
  keys: BinaryKeys,
  options: NumberingOptions,
): Promise<readonly DoctorFinding[]> {
  const { host } = reach;
  const reader = new PartReader(reach, options);
  const conflicts: string[] = [];
  const undecided: string[] = [];
  const told = new Set<string>();
  for (const [target, indexes] of keys.targets) {
    if (options.wanted?.has(target) === false) continue;
    const asked = options.deep ? [...indexes] : suspicious(indexes, host.wrappers.length);
    for (const index of asked) {
      options.signal?.throwIfAborted();
      const others = [...keys.targets].filter(([name, has]) => name !== target && has.has(index));
      const compared = await compare(reader, { target, index }, others);
      if (typeof compared === "object") {
        const { otherTarget } = compared;
        const pair = [target, otherTarget].toSorted().join(` #${index} `);
        if (told.has(pair)) continue;
        told.add(pair);
        const indexesOfOther = keys.targets.get(otherTarget) ?? new Set();
        conflicts.push(await describe(reader, { target, index }, [otherTarget, indexesOfOther]));
      }
      const isAlone = keys.targets.size === 1 || hasLargerBase(target, keys);
      if (compared === "unknown" && !isAlone && isShort(indexes, host.wrappers.length)) {
        undecided.push(`${target} has ${indexes.size} of ${host.wrappers.length}, counted without a gap`);
      }
    }
  }
  const path = [host.path];
  return [
    ...(conflicts.length > 0 ? [doctorFinding("KP209", path, conflicts.slice(0, 5))] : []),
    ...(undecided.length > 0 ? [doctorFinding("KP205", path, [...new Set(undecided)].slice(0, 5))] : []),
  ];
}

/** Fewer than the wrappers, and at 0, 1, 2 … */
function isShort(indexes: ReadonlySet<number>, wrappers: number): boolean {
  let largest = -1;
  for (const index of indexes) largest = Math.max(largest, index);
  return indexes.size < wrappers && largest === indexes.size - 1;
}

/** A flag variant takes from the base target what it lacks. */
function hasLargerBase(target: string, { targets }: BinaryKeys): boolean {
  const own = targets.get(target)?.size ?? 0;
  return compatibleTargets(target).some((base) => base !== target && (targets.get(base)?.size ?? 0) > own);
}

function suspicious(indexes: ReadonlySet<number>, wrappers: number): readonly number[] {
  return isShort(indexes, wrappers) ? [indexes.size - 1] : [];
}

interface Part {
  readonly target: string;
  readonly index: number;
}

type Others = readonly (readonly [string, ReadonlySet<number>])[];

/** `same`, `unknown`, or the target whose kernel of that index is of another part. */
async function compare(
  reader: PartReader,
  part: Part,
  others: Others,
): Promise<"same" | "unknown" | { readonly otherTarget: string }> {
  const own = await reader.functions(part);
  if (own === undefined) return "unknown";
  let answer: "same" | "unknown" = "unknown";
  // Targets with more kernels are more likely to have them all, and so to be counted right.
  const ranked = others.toSorted(([, a], [, b]) => b.size - a.size).slice(0, MOST_TARGETS);
  for (const [otherTarget] of ranked) {
    const other = await reader.functions({ target: otherTarget, index: part.index });
    if (other === undefined) continue;
    if (!haveCommon(own, other)) return { otherTarget };
    answer = "same";
  }
  return answer;
}

/** Which functions stand there, and where the other target has them. */
async function describe(
  reader: PartReader,
  { target, index }: Part,
  [otherTarget, otherIndexes]: readonly [string, ReadonlySet<number>],
): Promise<string> {
  const own = (await reader.functions({ target, index })) ?? new Set<string>();
  const there = (await reader.functions({ target: otherTarget, index })) ?? new Set<string>();
  const what = `#${index} is ${[...own][0]} for ${target}, and ${[...there][0]} for ${otherTarget}`;
  for (const place of [...otherIndexes].slice(0, MOST_INDEXES)) {
    const functions = await reader.functions({ target: otherTarget, index: place });
    if (functions && haveCommon(own, functions)) return `${what}, which has the former at #${place}`;
  }
  return what;
}

function haveCommon(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  for (const name of a) if (b.has(name)) return true;
  return false;
}

/** The names of the kernel functions of stored kernels, read once each. */
class PartReader {
  readonly #reach: Reach;
  readonly #options: NumberingOptions;
  readonly #known = new Map<string, ReadonlySet<string> | undefined>();

  constructor(reach: Reach, options: NumberingOptions) {
    this.#reach = reach;
    this.#options = options;
  }

  /** Undefined when they cannot be told. */
  async functions({ target, index }: Part): Promise<ReadonlySet<string> | undefined> {
    const id = `${index} ${target}`;
    if (!this.#known.has(id)) this.#known.set(id, await this.#read(target, index));
    return this.#known.get(id);
  }

  async #read(target: string, index: number): Promise<ReadonlySet<string> | undefined> {
    const key = `${this.#reach.host.metadata?.kernelName}#${index}`;
    const archive = this.#reach.archives.find((shelved) => shelved.archive?.find(key, target))?.archive;
    return archive && (await this.#functionsIn(archive, key, target));
  }

  async #functionsIn(
    archive: Archive,
    key: string,
    target: string,
  ): Promise<ReadonlySet<string> | undefined> {
    const { deep, signal } = this.#options;
    const entry = archive.find(key, target);
    if (entry === undefined || (!deep && (entry.originalSize ?? 0) > LARGEST_KERNEL)) return undefined;
    try {
      const bytes = await archive.readKernel(entry, { signal });
      const { functions } = await readCodeObject(memorySource(bytes, entry.id), { signal });
      const names = new Set(functions.map(({ name }) => name));
      return names.size > 0 ? names : undefined;
    } catch (error) {
      if (!isKpackError(error)) throw error;
      return undefined; // damaged, or no code object: said elsewhere
    }
  }
}
