import { makeFolder } from "../sink/make-folder.node.ts";
import {
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readdir,
  rename,
  rm,
  rmdir,
  symlink,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { openArchive } from "../archive/open-archive.node.ts";
import { AccessError, isKpackError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { createFile, temporaryPath } from "../sink/file-sink.node.ts";
import { openFile } from "../source/file-source.node.ts";
import { convertArchive } from "./convert.node.ts";
import { planShrink, type ShrinkItem, type ShrinkPlan } from "./shrink-plan.node.ts";

/** What {@link shrink} is to keep, and where the copy goes. */
export interface ShrinkOptions {
  /** Archives, and folders that hold archives or files for single targets. */
  readonly inputs: readonly string[];
  /** Targets to keep: `gfx90a` keeps every flag variant of it and the generic targets that it runs. */
  readonly keep: readonly string[];
  /** A file for one archive; for one folder its copy; for several inputs the folder for their copies. */
  readonly output: string;
  /** Write all archives in this scheme. @default those that lose targets in their own scheme, the others as they are */
  readonly scheme?: CompressionScheme | undefined;
  readonly jobs?: number | undefined;
  /** Told of the plan before anything is written. */
  readonly onPlan?: ((plan: ShrinkPlan) => void) | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What {@link shrink} wrote. */
export interface ShrinkResult {
  readonly plan: ShrinkPlan;
  /** Of the files written, in bytes. */
  readonly sizeAfter: number;
}

/**
 * Copies archives and trees without what other GPUs need. The inputs are not touched; the copy gets its name when it is
 * whole, and modes and links stay as they are.
 *
 * @throws NotFoundError `NOTHING_FOUND` when nothing of any target would stay
 * @throws AccessError `WRITE_FAILED` when the output exists and is no empty folder, or lies inside of an input
 */
export async function shrink(options: ShrinkOptions): Promise<ShrinkResult> {
  const { output } = options;
  await requireFree(output);
  const plan = await planShrink(options);
  options.onPlan?.(plan);
  const path = resolve(output);
  const temporary = temporaryPath(dirname(path));
  try {
    await makeFolder(dirname(path));
    // Inputs side by side have no folder of their own around them.
    if (options.inputs.length > 1) await mkdir(temporary);
    const sizeAfter = await new Copier(plan, path, temporary, options).run();
    await rmdir(path).catch(() => undefined); // an empty folder makes room; anything else makes the next step fail
    await rename(temporary, path);
    return { plan, sizeAfter };
  } catch (cause) {
    await removeTree(temporary);
    options.signal?.throwIfAborted();
    if (isKpackError(cause) || cause instanceof RangeError || cause instanceof TypeError) throw cause;
    throw notWritten(output, cause);
  }
}

class Copier {
  readonly #plan: ShrinkPlan;
  readonly #output: string;
  readonly #temporary: string;
  readonly #options: ShrinkOptions;
  #sizeAfter = 0;

  constructor(plan: ShrinkPlan, output: string, temporary: string, options: ShrinkOptions) {
    this.#plan = plan;
    this.#output = output;
    this.#temporary = temporary;
    this.#options = options;
  }

  async run(): Promise<number> {
    const items = this.#plan.items.filter(({ action }) => action !== "drop");
    const total = items.reduce((sum, { size }) => sum + size, 0);
    let done = 0;
    for (const item of items) {
      this.#options.signal?.throwIfAborted();
      await this.#copy(item);
      done += item.size;
      this.#options.onProgress?.({ stage: "shrink", done, total, unit: "bytes" });
    }
    // Last, and inner ones first: a folder may be read-only.
    for (const { kind, output, mode } of items.toReversed()) {
      if (kind === "folder") await chmod(this.#place(output), mode & 0o7777);
    }
    return this.#sizeAfter;
  }

  #place(output: string): string {
    const path = resolve(output);
    return path === this.#output ? this.#temporary : join(this.#temporary, path.slice(this.#output.length));
  }

  async #copy(item: ShrinkItem): Promise<void> {
    const place = this.#place(item.output);
    if (item.kind === "folder") {
      await mkdir(place);
      return;
    }
    if (item.kind === "link") return await symlink(item.linkTarget ?? "", place);
    if (item.action === "rewrite") await this.#rewrite(item, place);
    else await copyFile(item.path, place, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await chmod(place, item.mode & 0o7777);
    this.#sizeAfter += (await lstat(place)).size;
  }

  async #rewrite(item: ShrinkItem, place: string): Promise<void> {
    const { signal, jobs, scheme } = this.#options;
    await using archive = await openArchive(await openFile(item.path), { signal });
    await using sink = await createFile(place);
    const kept = new Set(item.targets);
    await convertArchive(archive, sink, {
      scheme: scheme ?? archive.scheme,
      targets: (target) => kept.has(target),
      jobs,
      verify: true, // the original may be deleted for the sake of the copy
      signal,
    });
    await sink.commit();
  }
}

async function requireFree(output: string): Promise<void> {
  const info = await lstat(output).catch(() => undefined); // not there: free
  if (!info) return;
  if (info.isDirectory() && (await readdir(output)).length === 0) return;
  throw new AccessError("WRITE_FAILED", "the output exists already", {
    file: output,
    hint: "Choose a name that is free, or an empty folder.",
  });
}

async function removeTree(path: string): Promise<void> {
  // Whatever keeps it from going, the first failure is the one to tell.
  await rm(path, { recursive: true, force: true }).catch(() => undefined);
}

function notWritten(file: string, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("WRITE_FAILED", `cannot be written: ${reason}`, { file, cause });
}
