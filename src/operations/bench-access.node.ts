import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { openFile } from "../source/file-source.node.ts";
import { type BenchSetting, schemeOfSetting } from "./bench-settings.node.ts";

/** An archive that a setting wrote. */
export interface WrittenArchive {
  readonly path: string;
  readonly setting: BenchSetting;
}

/** A time, and that of the baseline: taken in turn with it, so that a busy machine slows both alike. */
export interface ComparedTime {
  readonly milliseconds: number;
  readonly baselineMilliseconds: number;
}

/** How fast kernels come out of an archive. */
export interface AccessTimes {
  /**
   * Median time to one kernel by the library's public call: random order, one kernel of each stored frame, shared
   * dictionaries decoded before, the kernel's own frame not.
   */
  readonly kernel: ComparedTime;
  /** Kernels that the median is taken over. */
  readonly kernelsTimed: number;
  /** Median time to the first kernel of an archive that was just opened; a dictionary is decoded for it. */
  readonly first: ComparedTime;
  /** Median time to all kernels, in archive order. */
  readonly all: ComparedTime;
}

export interface AccessOptions {
  readonly rounds: number;
  readonly jobs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The order in which kernels are read is the same each time. */
const SEED = 7;
/** Kernels timed in one round, and fresh openings. */
const SAMPLE = 256;
const OPENINGS = 5;
/** Passes over all kernels in one round, fewer where they take long. */
const PASSES = 5;
const ENOUGH_MILLISECONDS = 1000;

/** Opens a written archive with empty caches. */
export async function openWritten(
  { path, setting }: WrittenArchive,
  signal: AbortSignal | undefined,
): Promise<Archive> {
  return await openArchive(await openFile(path), { schemes: [schemeOfSetting(setting)], signal });
}

/** Times an archive and the baseline, which must have the same entries. */
export async function timeAccess(
  written: WrittenArchive,
  baseline: WrittenArchive,
  options: AccessOptions,
): Promise<AccessTimes> {
  const { signal, rounds, jobs } = options;
  const own: Timings = { kernel: [], first: [], all: [] };
  const theirs: Timings = { kernel: [], first: [], all: [] };
  let kernelsTimed = 0;
  for (let round = 0; round < rounds; round++) {
    await using archive = await openWritten(written, signal);
    await using other = await openWritten(baseline, signal);
    const { warming, timed } = chooseEntries(archive);
    kernelsTimed = timed.length;
    const entriesOfOther = matching(other, [...warming, ...timed]);
    for (const entry of warming) {
      await archive.readKernel(entry, { signal });
      await other.readKernel(entriesOfOther(entry), { signal });
    }
    for (const [index, entry] of timed.entries()) {
      const turns = [
        async () =>
          theirs.kernel.push(await timeOf(() => other.readKernel(entriesOfOther(entry), { signal }))),
        async () => own.kernel.push(await timeOf(() => archive.readKernel(entry, { signal }))),
      ];
      for (const turn of index % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    for (let opening = 0; opening < OPENINGS; opening++) {
      const entry = timed[(round * OPENINGS + opening) % Math.max(1, timed.length)];
      if (!entry) break;
      await using freshOther = await openWritten(baseline, signal);
      await using fresh = await openWritten(written, signal);
      const entryOfOther = matching(freshOther, [entry])(entry);
      theirs.first.push(await timeOf(() => freshOther.readKernel(entryOfOther, { signal })));
      own.first.push(await timeOf(() => fresh.readKernel(entry, { signal })));
    }
    let spent = 0;
    for (let pass = 0; pass < PASSES && spent < ENOUGH_MILLISECONDS; pass++) {
      const times = [await timeAll(baseline, jobs, signal), await timeAll(written, jobs, signal)] as const;
      theirs.all.push(times[0]);
      own.all.push(times[1]);
      spent += times[0] + times[1];
    }
  }
  const compared = (kind: keyof Timings): ComparedTime => ({
    milliseconds: median(own[kind]),
    baselineMilliseconds: median((written === baseline ? own : theirs)[kind]),
  });
  return { kernel: compared("kernel"), kernelsTimed, first: compared("first"), all: compared("all") };
}

interface Timings {
  readonly kernel: number[];
  readonly first: number[];
  readonly all: number[];
}

/** Entries in random order, one for each stored frame; those that bring each dictionary in come apart. */
function chooseEntries(archive: Archive): {
  readonly warming: readonly ArchiveEntry[];
  readonly timed: readonly ArchiveEntry[];
} {
  const map = archive.decompressor.describeFrames?.();
  const usedFrames = new Set<number>();
  const usedDictionaries = new Set<number>();
  const warming: ArchiveEntry[] = [];
  const timed: ArchiveEntry[] = [];
  for (const entry of shuffled([...archive.entries])) {
    const frames = map ? (map.kernels[entry.ordinal] ?? []).map(({ frame }) => frame) : [entry.ordinal];
    if (frames.some((frame) => usedFrames.has(frame))) continue;
    for (const frame of frames) usedFrames.add(frame);
    const dictionaries = frames.flatMap((frame) => map?.frames[frame]?.dictionaries ?? []);
    const isWarm = dictionaries.every((dictionary) => usedDictionaries.has(dictionary));
    for (const dictionary of dictionaries) usedDictionaries.add(dictionary);
    if (!isWarm || warming.length === 0) warming.push(entry);
    else if (timed.length < SAMPLE) timed.push(entry);
  }
  return timed.length > 0 ? { warming, timed } : { warming: [], timed: warming };
}

/** The other archive's entries for the same keys and targets. */
function matching(archive: Archive, wanted: readonly ArchiveEntry[]): (entry: ArchiveEntry) => ArchiveEntry {
  const entries = new Map(wanted.map(({ id, binaryKey, target }) => [id, archive.find(binaryKey, target)]));
  return ({ id }) => {
    const entry = entries.get(id);
    if (!entry) throw new TypeError(`the archives that are compared differ in ${id}`);
    return entry;
  };
}

async function timeAll(
  written: WrittenArchive,
  jobs: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  await using archive = await openWritten(written, signal);
  return await timeOf(async () => {
    let size = 0;
    for await (const { bytes } of archive.readKernels({ jobs, signal })) size += bytes.length;
    return size;
  });
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** A linear congruential generator is random enough for an order. */
function shuffled<Item>(items: readonly Item[]): readonly Item[] {
  let state = SEED;
  const keyed = items.map((item) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return { item, key: state };
  });
  return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >>> 1;
  const upper = sorted[half] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? upper)) / 2;
}
