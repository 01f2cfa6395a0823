import { join } from "node:path";
import { openArchive } from "../archive/open-archive.node.ts";
import { writeArchive, type WriteSummary } from "../archive/archive-writer.ts";
import { normalizeBinaryKey } from "../archive/binary-key.ts";
import { archiveFileName, defaultFamily, defaultGroupName } from "../archive/naming.ts";
import { bytesEqual } from "../bytes/extent.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnProgress, Progress } from "../errors/progress.ts";
import { builtInSchemes } from "../scheme/built-in-schemes.node.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { createFile } from "../sink/file-sink.node.ts";
import type { Sink } from "../sink/sink.ts";
import { FilePool } from "../source/file-pool.node.ts";
import { defaultJobs } from "./jobs.node.ts";
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
 * names when all of them are written: a failure leaves nothing behind.
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
      scheme: options.scheme ?? defaultScheme(),
      jobs: options.jobs ?? defaultJobs(),
      onProgress: report,
    });
    base += totalSize(kernels);
    if (options.verify) {
      await compareWithInputs(sink, kernels, options, report);
      base += totalSize(kernels);
    }
    sinks.push(sink);
    archives.push({ ...summary, path, groupName, family });
  }
  for (const sink of sinks) await sink.commit();
  return { archives, plan };
}

function totalSize(kernels: readonly PlannedKernel[]): number {
  return kernels.reduce((sum, { kernel }) => sum + kernel.size, 0);
}

function defaultScheme(): CompressionScheme {
  const scheme = builtInSchemes.find(({ name }) => name === "zstd-per-kernel");
  if (!scheme) throw new TypeError("the built-in schemes lack zstd-per-kernel");
  return scheme;
}

/** Reads the written archive back and compares every entry's kernel with its input. */
async function compareWithInputs(
  sink: Sink,
  kernels: readonly PlannedKernel[],
  options: PackOptions,
  onProgress: OnProgress,
): Promise<void> {
  const { signal } = options;
  await using archive = await openArchive(await sink.reopen(), {
    signal,
    ...(options.scheme && { schemes: [options.scheme, ...builtInSchemes] }),
    ...(options.limits && { limits: options.limits }),
  });
  let done = 0;
  const compare = async (kernel: PlannedKernel): Promise<number> => {
    const wanted = await kernel.kernel.read({ signal });
    for (const { binaryKey, target } of kernel.entries) {
      const found = await archive.readKernel(normalizeBinaryKey(binaryKey), target, {
        signal,
        checkHash: true,
      });
      if (!bytesEqual(wanted, found)) throw differs(sink.name, `${binaryKey} ${target}`);
    }
    return kernel.kernel.size;
  };
  for await (const size of mapOrdered(kernels, options.jobs ?? defaultJobs(), compare, signal)) {
    done += size;
    onProgress({ stage: "verify", done, unit: "bytes" });
  }
}

function differs(file: string, field: string): FormatError {
  return new FormatError("CHECKSUM_MISMATCH", "what was written reads back as other bytes than its input", {
    file,
    field,
    hint: "Nothing was left behind. Check the memory and disk of this machine, then try again.",
  });
}
