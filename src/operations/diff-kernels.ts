import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { bytesEqual } from "../bytes/extent.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { identifyPayload } from "../code-object/code-object.ts";
import { type CodeObject, readCodeObject } from "../code-object/read-code-object.ts";
import type { KernelFunction } from "../code-object/kernel-metadata.ts";
import { isKpackError } from "../errors/errors.ts";
import { type Finding, findingOrThrow, type OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import { memorySource } from "../source/memory-source.ts";

/** How two archives differ in their kernels. Schemes, levels and ordinals do not count: only what comes out. */

export interface DiffOptions {
  /** Compare what the kernel functions of changed kernels need. @default true */
  readonly resources?: boolean | undefined;
  readonly jobs?: number | undefined;
  /** Receives kernels that cannot be read: they are neither the same nor changed. */
  readonly onFinding: OnFinding;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface KernelId {
  readonly binaryKey: string;
  readonly target: string;
  /** Uncompressed, in bytes; undefined where the archive does not say. */
  readonly size: number | undefined;
}

export interface ChangedKernel {
  readonly binaryKey: string;
  readonly target: string;
  /** Uncompressed, in bytes; undefined where the archive does not say and the kernel was not decoded. */
  readonly sizeBefore: number | undefined;
  readonly sizeAfter: number | undefined;
  /**
   * Kernel functions whose resources differ, or that are in one of the two only; undefined when they were not compared,
   * or one of the two kernels does not say what it needs.
   */
  readonly functions: readonly ChangedFunction[] | undefined;
}

export interface ChangedFunction {
  readonly name: string;
  /** Undefined for a function that came newly. */
  readonly before: KernelResources | undefined;
  /** Undefined for a function that is gone. */
  readonly after: KernelResources | undefined;
}

/** What a kernel function needs of the machine. Sizes are bytes. */
export interface KernelResources {
  readonly vgprs: number | undefined;
  readonly sgprs: number | undefined;
  readonly agprs: number | undefined;
  readonly vgprSpills: number | undefined;
  readonly sgprSpills: number | undefined;
  readonly ldsSize: number | undefined;
  readonly scratchSize: number | undefined;
}

export const RESOURCE_NAMES = [
  "vgprs",
  "sgprs",
  "agprs",
  "vgprSpills",
  "sgprSpills",
  "ldsSize",
  "scratchSize",
] as const satisfies readonly (keyof KernelResources)[];

export interface KernelDifferences {
  readonly added: readonly KernelId[];
  readonly removed: readonly KernelId[];
  readonly changed: readonly ChangedKernel[];
  readonly same: number;
}

type Pair = readonly [ArchiveEntry, ArchiveEntry];

interface Comparison {
  readonly isSame: boolean;
  /** Of the two decoded kernels; undefined where the answer was had without decoding them. */
  readonly sizes?: readonly [number, number] | undefined;
  readonly functions?: readonly ChangedFunction[] | undefined;
}

interface ComparedGroup {
  readonly group: readonly Pair[];
  /** Undefined when one of the two kernels cannot be read. */
  readonly comparison: Comparison | undefined;
  readonly findings: readonly Finding[];
}

/** Compares the kernels of two open archives by binary key and target. */
export async function diffKernels(
  before: Archive,
  after: Archive,
  options: DiffOptions,
): Promise<KernelDifferences> {
  const [old, now] = [entriesById(before), entriesById(after)];
  const pairs: Pair[] = [];
  const removed: KernelId[] = [];
  for (const [id, entry] of old) {
    const counterpart = now.get(id);
    if (counterpart) pairs.push([entry, counterpart]);
    else removed.push(kernelId(entry));
  }
  const added = [...now].filter(([id]) => !old.has(id)).map(([, entry]) => kernelId(entry));
  // Entries may share a stored kernel: each pair of stored kernels is compared once.
  const groups = [...Map.groupBy(pairs, ([a, b]) => `${a.ordinal} ${b.ordinal}`).values()];
  // Findings wait for their turn, so that they come in the order of the archive.
  const compare = async (group: readonly Pair[]): Promise<ComparedGroup> => {
    const findings: Finding[] = [];
    const how: DiffOptions = { ...options, onFinding: (finding) => findings.push(finding) };
    const [first] = group;
    return { group, comparison: first && (await comparePair(before, after, first, how)), findings };
  };
  const changes = new Map<string, ChangedKernel>();
  let same = 0;
  let done = 0;
  for await (const { group, comparison, findings } of mapOrdered(groups, options.jobs ?? 4, compare)) {
    findings.forEach(options.onFinding);
    if (comparison?.isSame) same += group.length;
    else if (comparison) for (const pair of group) changes.set(pair[0].id, changedKernel(pair, comparison));
    done += group.length;
    options.onProgress?.({ stage: "diff", done, total: pairs.length, unit: "kernels" });
  }
  const changed = pairs.map(([entry]) => changes.get(entry.id)).filter((change) => change !== undefined);
  return { added, removed, changed, same };
}

export function kernelId({ binaryKey, target, originalSize }: ArchiveEntry): KernelId {
  return { binaryKey, target, size: originalSize };
}

function changedKernel([a, b]: Pair, { sizes, functions }: Comparison): ChangedKernel {
  const { binaryKey, target } = a;
  const [sizeBefore, sizeAfter] = sizes ?? [a.originalSize, b.originalSize];
  return { binaryKey, target, sizeBefore, sizeAfter, functions };
}

function entriesById(archive: Archive): ReadonlyMap<string, ArchiveEntry> {
  // No binary key holds a zero byte and is found by a loader.
  return new Map([...archive.entries].map((entry) => [`${entry.binaryKey}\0${entry.target}`, entry]));
}

async function comparePair(
  before: Archive,
  after: Archive,
  [a, b]: Pair,
  options: DiffOptions,
): Promise<Comparison | undefined> {
  const { onFinding, signal } = options;
  const resources = options.resources ?? true;
  const hashes = [before.kernelHash(a.ordinal), after.kernelHash(b.ordinal)];
  const sizes = [a.originalSize, b.originalSize];
  const hashed = hashes[0] !== undefined && hashes[1] !== undefined;
  const sameSize = sizes[0] !== undefined && sizes[0] === sizes[1];
  if (hashed && hashes[0] === hashes[1] && sameSize) return { isSame: true };
  const differs =
    (hashed && hashes[0] !== hashes[1]) ||
    (sizes[0] !== undefined && sizes[1] !== undefined && sizes[0] !== sizes[1]);
  if (differs && !resources) return { isSame: false };
  const old = await readOrReport(before, a, onFinding, signal);
  const now = await readOrReport(after, b, onFinding, signal);
  if (!old || !now) return undefined;
  if (bytesEqual(old, now)) return { isSame: true };
  const decodedSizes = [old.length, now.length] as const;
  if (!resources) return { isSame: false, sizes: decodedSizes };
  const functions = diffFunctions(
    await functionsOf(old, `${before.source.name}: ${a.id}`, onFinding),
    await functionsOf(now, `${after.source.name}: ${b.id}`, onFinding),
  );
  return { isSame: false, sizes: decodedSizes, functions };
}

async function readOrReport(
  archive: Archive,
  entry: ArchiveEntry,
  onFinding: OnFinding,
  signal: AbortSignal | undefined,
): Promise<Uint8Array | undefined> {
  try {
    return await archive.readKernel(entry, { checkHash: true, signal });
  } catch (error) {
    onFinding(findingOrThrow(error));
    return undefined;
  }
}

/** The functions by name; undefined when the kernel is no code object, or one that does not say what they need. */
async function functionsOf(
  bytes: Uint8Array,
  name: string,
  onFinding: OnFinding,
): Promise<ReadonlyMap<string, KernelFunction> | undefined> {
  if (identifyPayload(bytes.subarray(0, 64)) !== "code-object") return undefined;
  let codeObject: CodeObject;
  try {
    codeObject = await readCodeObject(memorySource(bytes, name));
  } catch (error) {
    if (!isKpackError(error)) throw error;
    // The archive gave the bytes that it holds: that they are odd does not keep anybody from comparing them.
    const finding: Finding = { ...findingOrThrow(error), severity: "warning" };
    onFinding(finding);
    return undefined;
  }
  if (!codeObject.metadata) return undefined;
  return new Map(codeObject.functions.map((kernel) => [kernel.name, kernel]));
}

function diffFunctions(
  before: ReadonlyMap<string, KernelFunction> | undefined,
  after: ReadonlyMap<string, KernelFunction> | undefined,
): readonly ChangedFunction[] | undefined {
  if (!before || !after) return undefined;
  const changes: ChangedFunction[] = [];
  for (const [name, old] of before) {
    const now = after.get(name);
    if (now && RESOURCE_NAMES.every((resource) => old[resource] === now[resource])) continue;
    changes.push({ name, before: resourcesOf(old), after: now && resourcesOf(now) });
  }
  for (const [name, now] of after) {
    if (!before.has(name)) changes.push({ name, before: undefined, after: resourcesOf(now) });
  }
  return changes;
}

function resourcesOf(kernel: KernelFunction): KernelResources {
  const { vgprs, sgprs, agprs, vgprSpills, sgprSpills, ldsSize, scratchSize } = kernel;
  return { vgprs, sgprs, agprs, vgprSpills, sgprSpills, ldsSize, scratchSize };
}
