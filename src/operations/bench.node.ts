import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeArchive } from "../archive/archive-writer.ts";
import { normalizeBinaryKey } from "../archive/binary-key.ts";
import { defaultFamily } from "../archive/naming.ts";
import { bytesEqual } from "../bytes/extent.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnProgress } from "../errors/progress.ts";
import { createFile } from "../sink/file-sink.node.ts";
import { type ComparedTime, openWritten, timeAccess, type WrittenArchive } from "./bench-access.node.ts";
import { type BenchKernel, BenchKernels, type BenchKernelOptions } from "./bench-kernels.node.ts";
import { BENCH_LAYOUTS, type BenchLayout, layOut } from "./bench-layouts.ts";
import {
  BASELINE,
  BENCH_SETTINGS,
  benchSettingName,
  type BenchSetting,
  schemeOfSetting,
} from "./bench-settings.node.ts";
import { defaultJobs } from "./jobs.node.ts";

/** What is compared, on which kernels. */
export interface BenchOptions extends BenchKernelOptions {
  /** What is compared; zstd-per-kernel at level 3 is always among it. @default {@link BENCH_SETTINGS} */
  readonly settings?: readonly BenchSetting[] | undefined;
  /**
   * With what archives are laid out by target, family and all in one; "none": not at all.
   * @default zstd-cross-kernel at default effort
   */
  readonly layoutSetting?: BenchSetting | "none" | undefined;
  /** How often reading is timed. @default 3 */
  readonly rounds?: number | undefined;
  readonly jobs?: number | undefined;
  /** Where the temporary files go; they take the kernels' uncompressed size and more. @default the system's folder */
  readonly temporaryFolder?: string | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/** What the comparison found. Sizes are bytes; ratios have zstd-per-kernel at level 3 as their whole. */
export interface BenchReport {
  readonly inputs: readonly string[];
  readonly targets: readonly string[];
  readonly entries: number;
  /** Different kernels: entries that share one count once. */
  readonly kernels: number;
  /** Uncompressed, of all entries. */
  readonly originalSize: number;
  readonly jobs: number;
  readonly rounds: number;
  readonly runs: readonly BenchRun[];
  /** Name of the setting that the layouts are written with. */
  readonly layoutSetting: string | undefined;
  readonly layouts: readonly BenchLayoutResult[];
}

/** One setting's figures. Times of reading stand beside the baseline's, taken in turn with them. */
export interface BenchRun {
  /** `zstd-per-kernel:19` */
  readonly name: string;
  readonly setting: BenchSetting;
  /** Of the archive: dictionaries, tables and TOC included. */
  readonly size: number;
  readonly ratio: number;
  readonly packSeconds: number;
  /** Median time to one kernel, in random order. */
  readonly kernel: ComparedTime;
  readonly kernelsTimed: number;
  /** The first kernel of an archive that was just opened. */
  readonly first: ComparedTime;
  /** All kernels in archive order. */
  readonly all: ComparedTime;
  /** Uncompressed bytes in a second, in archive order. */
  readonly throughput: number;
}

/** What the kernels take when they are spread over archives in one way. */
export interface BenchLayoutResult {
  readonly layout: BenchLayout;
  readonly size: number;
  readonly ratio: number;
  readonly archives: readonly {
    readonly name: string;
    readonly targets: readonly string[];
    readonly size: number;
  }[];
}

/**
 * Packs the kernels of archives, fat binaries or folders with each of several schemes and efforts, and times reading.
 * Every kernel is compared with the original after each run. All files are temporary and removed at the end.
 *
 * @throws NotFoundError `NOTHING_FOUND` when there is no kernel
 * @throws FormatError `CHECKSUM_MISMATCH` when a kernel comes back as other bytes
 * @example
 * ```ts
 * import { bench } from "rocm-kpack/node";
 * async function main(): Promise<void> {
 *   const { runs } = await bench({ inputs: ["torch.kpack"], onFinding: () => undefined });
 *   for (const { name, ratio } of runs) console.log(name, ratio);
 * }
 * ```
 */
export async function bench(options: BenchOptions): Promise<BenchReport> {
  const { signal, rounds = 3, layoutSetting = { scheme: "zstd-cross-kernel", effort: "default" } } = options;
  const jobs = options.jobs ?? defaultJobs();
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(options.temporaryFolder ?? tmpdir(), "kpack-bench-"));
  cleanup.defer(async () => await rm(folder, { recursive: true, force: true }));
  const unpacked = cleanup.use(await BenchKernels.unpack(folder, options));
  const { kernels, originalSize } = unpacked;
  const settings = withBaselineFirst(options.settings ?? BENCH_SETTINGS);
  const steps = settings.length + (layoutSetting === "none" ? 0 : BENCH_LAYOUTS.length);
  const progress = new StepProgress(options.onProgress, originalSize, steps);
  const write = new ArchiveWriter(folder, { jobs, signal, progress });

  const baseline = await write.archive("baseline", kernels, BASELINE);
  await compareKernels(baseline, kernels, jobs, signal);
  const runs: BenchRun[] = [];
  for (const setting of settings) {
    const name = benchSettingName(setting);
    const isBaseline = name === benchSettingName(BASELINE);
    const written = isBaseline ? baseline : await write.archive("run", kernels, setting);
    if (!isBaseline) await compareKernels(written, kernels, jobs, signal);
    const times = await timeAccess(written, baseline, { rounds, jobs, signal });
    const { size, packSeconds } = written;
    const throughput = (originalSize * 1000) / times.all.milliseconds;
    runs.push({ name, setting, size, ratio: size / baseline.size, packSeconds, ...times, throughput });
    if (!isBaseline) await rm(written.path);
    progress.next();
  }

  const layouts: BenchLayoutResult[] = [];
  const known = new Map<string, number>();
  if (layoutSetting !== "none") {
    const run = runs.find(({ name }) => name === benchSettingName(layoutSetting));
    if (run) known.set(targetsKey(unpacked.targets), run.size);
    for (const layout of BENCH_LAYOUTS) {
      const result = await writeLayout(layout, kernels, layoutSetting, write, known);
      layouts.push({ ...result, ratio: result.size / baseline.size });
      progress.next();
    }
  }
  return {
    inputs: options.inputs,
    targets: unpacked.targets,
    entries: kernels.length,
    kernels: baseline.kernels,
    originalSize,
    jobs,
    rounds,
    runs,
    layoutSetting: layoutSetting === "none" ? undefined : benchSettingName(layoutSetting),
    layouts,
  };
}

function withBaselineFirst(settings: readonly BenchSetting[]): readonly BenchSetting[] {
  const byName = new Map([BASELINE, ...settings].map((setting) => [benchSettingName(setting), setting]));
  return [...byName.values()];
}

async function writeLayout(
  layout: BenchLayout,
  kernels: readonly BenchKernel[],
  setting: BenchSetting,
  write: ArchiveWriter,
  known: Map<string, number>,
): Promise<Omit<BenchLayoutResult, "ratio">> {
  const archives: { name: string; targets: readonly string[]; size: number }[] = [];
  for (const [name, part] of layOut(kernels, layout)) {
    const targets = [...new Set(part.map(({ target }) => target))];
    const key = targetsKey(targets);
    let size = known.get(key);
    if (size === undefined) {
      const written = await write.archive("layout", part, setting);
      size = written.size;
      await rm(written.path);
      known.set(key, size);
    }
    archives.push({ name, targets, size });
  }
  return { layout, archives, size: archives.reduce((sum, archive) => sum + archive.size, 0) };
}

/** What goes into an archive follows from its targets. */
function targetsKey(targets: readonly string[]): string {
  return targets.toSorted().join("\n");
}

interface TimedArchive extends WrittenArchive {
  readonly size: number;
  readonly kernels: number;
  readonly packSeconds: number;
}

/** Writes archives into a folder and takes the time. */
class ArchiveWriter {
  readonly #folder: string;
  readonly #options: {
    readonly jobs: number;
    readonly signal: AbortSignal | undefined;
    readonly progress: StepProgress;
  };

  constructor(
    folder: string,
    options: {
      readonly jobs: number;
      readonly signal: AbortSignal | undefined;
      readonly progress: StepProgress;
    },
  ) {
    this.#folder = folder;
    this.#options = options;
  }

  async archive(
    fileName: string,
    kernels: readonly BenchKernel[],
    setting: BenchSetting,
  ): Promise<TimedArchive> {
    const { jobs, signal, progress } = this.#options;
    const path = join(this.#folder, `${fileName}.kpack`);
    await using sink = await createFile(path);
    const originalSize = kernels.reduce((sum, { kernel }) => sum + kernel.size, 0);
    const start = performance.now();
    const summary = await writeArchive(sink, kernels, {
      groupName: "bench",
      family: defaultFamily([...new Set(kernels.map(({ target }) => target))]),
      scheme: schemeOfSetting(setting),
      jobs,
      onProgress: progress.within(benchSettingName(setting), originalSize),
      signal,
    });
    const packSeconds = (performance.now() - start) / 1000;
    await sink.commit();
    progress.wrote(originalSize);
    return { path, setting, size: summary.archiveSize, kernels: summary.kernels, packSeconds };
  }
}

/** Reads every kernel and compares it with the original. */
async function compareKernels(
  written: WrittenArchive,
  kernels: readonly BenchKernel[],
  jobs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  await using archive = await openWritten(written, signal);
  const compare = async ({ kernel, binaryKey, target }: BenchKernel): Promise<void> => {
    const [wanted, found] = await Promise.all([
      kernel.read({ signal }),
      archive.readKernel(normalizeBinaryKey(binaryKey), target, { signal, checkHash: true }),
    ]);
    if (bytesEqual(wanted, found)) return;
    throw new FormatError("CHECKSUM_MISMATCH", "a kernel comes back as other bytes than the original", {
      field: `${binaryKey} ${target}, ${benchSettingName(written.setting)}`,
      hint: "Check the memory and disk of this machine, then try again.",
    });
  };
  for await (const _ of mapOrdered(kernels, jobs, compare)) signal?.throwIfAborted();
}

/** Progress over equal steps, each of which writes all kernels, in one archive or several, in one or two passes. */
class StepProgress {
  readonly #onProgress: OnProgress | undefined;
  readonly #size: number;
  readonly #steps: number;
  #step = 0;
  /** Bytes done before the archive that is being written. */
  #base = 0;

  constructor(onProgress: OnProgress | undefined, size: number, steps: number) {
    this.#onProgress = onProgress;
    this.#size = size;
    this.#steps = steps;
  }

  next(): void {
    this.#step += 1;
    this.#base = this.#step * this.#size;
  }

  wrote(size: number): void {
    this.#base += size;
  }

  /** @param size of the kernels of the archive */
  within(stage: string, size: number): OnProgress {
    return (progress) => {
      const passed = progress.stage === "pack" ? progress.done / 2 : (size + progress.done) / 2;
      const done = Math.floor(this.#base + Math.min(size, passed));
      this.#onProgress?.({ stage, done, total: this.#steps * this.#size, unit: "bytes" });
    };
  }
}
