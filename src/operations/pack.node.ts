import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { writeArchive, type WriteSummary } from "../archive/archive-writer.ts";
import { archiveFileName, defaultFamily, defaultGroupName } from "../archive/naming.ts";
import { AccessError, isKpackError } from "../errors/errors.ts";
import type { OnProgress, Progress } from "../errors/progress.ts";
import { builtInSchemes } from "../scheme/built-in-schemes.node.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { checkOutputFile, createFile } from "../sink/file-sink.node.ts";
import type { Sink } from "../sink/sink.ts";
import { FilePool } from "../source/file-pool.node.ts";
import { compareWritten } from "./convert.node.ts";
import { defaultJobs } from "./jobs.node.ts";
import { identityOf, LOOKED_AT_TOGETHER } from "./find-inputs.node.ts";
import { planPack, type PackPlan, type PlannedKernel, type PlanPackOptions } from "./plan-pack.node.ts";

/** What is packed, under which names, and how. */
export interface PackOptions extends PlanPackOptions {
  /** The archive, or with `splitBy` the folder for the archives. */
  readonly output: string;
  /** One archive per target, named `GROUP_TARGET.kpack`. */
  readonly splitBy?: "target" | undefined;
  /** @default from the first input's name: `librocsparse.so.0.1` gives `rocsparse` */
  readonly groupName?: string | undefined;
  /** @default from the targets: one target by itself, `gfx110X` for several that begin alike, else `mixed` */
  readonly family?: string | undefined;
  /** @default zstd-per-kernel at level 3 */
  readonly scheme?: CompressionScheme | undefined;
  readonly jobs?: number | undefined;
  /** Read each archive back and compare every kernel with its input before it gets its name. @default false */
  readonly verify?: boolean | undefined;
  readonly shareIdentical?: boolean | undefined;
  readonly extraFields?: boolean | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/** An archive that was written, and where. */
export interface PackedArchive extends WriteSummary {
  readonly path: string;
  readonly groupName: string;
  readonly family: string;
}

/** The archives that were written, and what went into them. */
export interface PackResult {
  readonly archives: readonly PackedArchive[];
  readonly plan: PackPlan;
}

/**
 * Packs the kernels of fat binaries, bundles and code objects into one archive, or one per target. Archives get their
 * names when all of them are written: a failure leaves nothing behind. Where the last step fails, the renaming, the
 * error says which older files had been replaced by then.
 *
 * @throws NotFoundError `NOTHING_FOUND` when there is nothing to pack; FormatError, LimitError, AccessError
 * @example
 * ```ts
 * import { pack } from "rocm-kpack/node";
 * async function main(): Promise<void> {
 *   const { archives } = await pack({
 *     inputs: ["rocm/lib/librocsparse.so.0.1"],
 *     output: "rocsparse.kpack",
 *     onFinding: (finding) => console.error(finding.message),
 *   });
 *   console.log(archives[0]?.archiveSize);
 * }
 * ```
 */
export async function pack(options: PackOptions): Promise<PackResult> {
  if (options.splitBy === undefined) await checkOutputFile(options.output); // before the inputs are looked through
  await using pool = new FilePool();
  const plan = await planPack(pool, options);
  const groupName = options.groupName ?? defaultGroupName((options.inputs[0] ?? "").replaceAll("\\", "/"));
  const parts =
    options.splitBy === "target"
      ? [...Map.groupBy(plan.kernels, (kernel) => kernel.target)].map(([target, kernels]) => ({
          path: join(options.output, archiveFileName(groupName, target)),
          kernels,
        }))
      : [{ path: options.output, kernels: plan.kernels }];
  for (const { path } of parts) {
    await checkOutputFile(path);
    await refuseInputs(path, plan);
  }
  const jobs = options.jobs ?? defaultJobs();
  const scheme = options.scheme ?? defaultScheme();
  const passes = options.verify ? 2 : 1;
  const total = passes * totalSize(plan.kernels);
  let base = 0;
  const report = (progress: Progress): void =>
    options.onProgress?.({ ...progress, done: base + progress.done, total });
  const archives: PackedArchive[] = [];
  const sinks: Sink[] = [];
  await using unfinished = new AsyncDisposableStack();
  for (const { path, kernels } of parts) {
    const targets = [...new Set(kernels.map((kernel) => kernel.target))];
    const family = options.family ?? defaultFamily(targets);
    const sink = unfinished.use(await createFile(path));
    const summary = await writeArchive(sink, kernels, {
      ...options,
      groupName,
      family,
      targets,
      scheme,
      jobs,
      onProgress: report,
    });
    base += totalSize(kernels);
    if (options.verify) {
      const { limits, signal } = options;
      await compareWritten(sink, kernels, { scheme, jobs, limits, signal, onProgress: report });
      base += totalSize(kernels);
    }
    sinks.push(sink);
    archives.push({ ...summary, path, groupName, family });
  }
  await commitAll(sinks);
  return { archives, plan };
}

/** An archive may not take the place of a file that is packed: for a library, the program would be gone. */
async function refuseInputs(output: string, plan: PackPlan): Promise<void> {
  const identity = await identityOf(output);
  if (identity === undefined) return;
  const files = new Set(plan.kernels.map(({ item }) => item.file));
  for await (const other of mapOrdered(files, LOOKED_AT_TOGETHER, identityOf)) {
    if (other !== identity) continue;
    throw new AccessError(
      "WRITE_FAILED",
      "the output is one of the inputs, which the archive would replace",
      {
        file: output,
        hint: "Choose another name for the archive.",
      },
    );
  }
}

function totalSize(kernels: readonly PlannedKernel[]): number {
  return kernels.reduce((sum, { kernel }) => sum + kernel.size, 0);
}

function defaultScheme(): CompressionScheme {
  const scheme = builtInSchemes.find(({ name }) => name === "zstd-per-kernel");
  if (!scheme) throw new TypeError("the built-in schemes lack zstd-per-kernel");
  return scheme;
}

/**
 * Gives all archives their names. When one cannot get its, those before it go again, except where they replaced an
 * older file: that cannot be brought back.
 */
async function commitAll(sinks: readonly Sink[]): Promise<void> {
  const added: string[] = [];
  const replaced: string[] = [];
  for (const sink of sinks) {
    const isReplacing = await lstat(sink.name).then(
      () => true,
      () => false,
    );
    try {
      await sink.commit();
    } catch (error) {
      for (const path of added) await rm(path, { force: true }).catch(() => undefined); // the first failure is the one to tell
      throw replaced.length > 0 ? partlyReplaced(sink.name, replaced, error) : error;
    }
    (isReplacing ? replaced : added).push(sink.name);
  }
}

function partlyReplaced(file: string, replaced: readonly string[], cause: unknown): AccessError {
  const reason = isKpackError(cause) ? cause.summary : String(cause);
  return new AccessError("WRITE_FAILED", reason, {
    file,
    hint: `Older files had been replaced already: ${replaced.join(", ")}. No other archive of this run is left.`,
    cause,
  });
}
