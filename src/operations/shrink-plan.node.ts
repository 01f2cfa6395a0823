import { lstat, readdir, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { openArchive } from "../archive/open-archive.node.ts";
import { AccessError, NotFoundError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { openFile } from "../source/file-source.node.ts";
import { type ArchiveSizes, measureArchive } from "./shrink-sizes.ts";
import { isOfUseFor, targetInPath } from "../target/target-in-path.ts";

/** What {@link planShrink} is to keep, and where. */
export interface PlanShrinkOptions {
  /** Archives, and folders that hold archives or files for single targets. */
  readonly inputs: readonly string[];
  /** Targets to keep, with what their GPUs can use beside them: base and generic targets. */
  readonly keep: readonly string[];
  /** Where the copy will be. Without it nothing but the plan can be had. */
  readonly output?: string | undefined;
  /** Write archives anew in this scheme, even when they lose nothing. @default those that lose targets in their own */
  readonly scheme?: CompressionScheme | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What would go and what would stay, in bytes. */
export interface ShrinkPlan {
  readonly items: readonly ShrinkItem[];
  /** By target, in the order of their names; `undefined` stands for files that belong to no target. */
  readonly shares: readonly TargetShare[];
  /** Of all files, in bytes. */
  readonly sizeBefore: number;
  /**
   * Estimated: archives that are written anew may turn out smaller or larger. Undefined where only compressing would
   * tell: for a rewrite across kernels, and in another scheme than `none`.
   */
  readonly sizeAfter: number | undefined;
}

/** Bytes of one target, kept or not. */
export interface TargetShare {
  readonly target: string | undefined;
  readonly stays: boolean;
  readonly files: number;
  /** Kernels in archives. */
  readonly kernels: number;
  /** Of its files, and stored in archives; where kernels share frames, its part of them. */
  readonly size: number;
}

/** What happens with a file, folder or link of the input. */
export interface ShrinkItem {
  readonly kind: "folder" | "link" | "file" | "archive";
  readonly action: "copy" | "rewrite" | "drop";
  readonly path: string;
  /** Where its copy goes. */
  readonly output: string;
  readonly mode: number;
  /** In bytes; 0 for folders and links. */
  readonly size: number;
  /** For links. */
  readonly linkTarget: string | undefined;
  /** The file's target, or exactly those of the archive that stay. */
  readonly targets: readonly string[];
  /** For archives. */
  readonly droppedTargets: readonly string[];
}

/** Files that libraries keep for one target each, when a target stands in the name or a folder's. */
const DATABASE_FILE = /\.(?:co|hsaco|dat|kdb|model|aks2|u?f?db\.txt)$/i;

/**
 * Finds out what a copy for certain targets would hold. Reads folders and the tables of contents of archives.
 *
 * @throws NotFoundError `NOTHING_FOUND` when nothing of any target would stay
 * @throws AccessError for inputs that cannot be read, and for a place of the output that would harm them
 */
export async function planShrink(options: PlanShrinkOptions): Promise<ShrinkPlan> {
  return await new Planner(options).run();
}

interface MutableShare {
  files: number;
  kernels: number;
  size: number;
}

class Planner {
  readonly #options: PlanShrinkOptions;
  readonly #items: ShrinkItem[] = [];
  readonly #shares = new Map<string | undefined, MutableShare>();
  #rewrittenSize: number | undefined = 0;

  constructor(options: PlanShrinkOptions) {
    this.#options = options;
  }

  async run(): Promise<ShrinkPlan> {
    const { inputs, output } = this.#options;
    const outputs = new Set<string>();
    for (const input of inputs) {
      const path = await realpath(input).catch((cause: unknown) => {
        throw unreadable(input, cause);
      });
      const info = await lstat(path);
      if (output !== undefined && isInside(path, await realOutput(output))) {
        throw new AccessError("WRITE_FAILED", "the output lies inside of the input, or is the same", {
          file: output,
          expected: `a path outside of ${input}`,
        });
      }
      const target = inputs.length === 1 ? (output ?? "") : join(output ?? "", basename(path));
      if (outputs.has(target))
        throw new AccessError("WRITE_FAILED", "two inputs have one name, so their copies would too", {
          file: path,
          hint: "Shrink them one by one.",
        });
      outputs.add(target);
      if (info.isDirectory()) await this.#walk(path, target, "");
      else await this.#file(path, target, basename(path), info);
    }
    const items = withoutOrphans(this.#items);
    this.#requireSomething(items);
    const copied = sum(items.filter(({ action }) => action === "copy"));
    return {
      items,
      shares: this.#targetShares(),
      sizeBefore: sum(items),
      sizeAfter: this.#rewrittenSize === undefined ? undefined : copied + this.#rewrittenSize,
    };
  }

  /** @param inside path below the input, with `/`: what stands above it says nothing about the files */
  async #walk(path: string, output: string, inside: string): Promise<void> {
    this.#options.signal?.throwIfAborted();
    const info = await lstat(path);
    this.#add({ kind: "folder", action: "copy", path, output, mode: info.mode });
    const names = await readdir(path).catch((cause: unknown) => {
      throw unreadable(path, cause);
    });
    for (const name of names.toSorted()) {
      const child = join(path, name);
      const childInfo = await lstat(child);
      const childInside = inside === "" ? name : `${inside}/${name}`;
      const childOutput = join(output, name);
      if (childInfo.isDirectory()) await this.#walk(child, childOutput, childInside);
      else if (childInfo.isFile()) await this.#file(child, childOutput, childInside, childInfo);
      else if (childInfo.isSymbolicLink()) await this.#link(child, childOutput, childInside, childInfo.mode);
      else {
        const message = "it is neither a file, a folder nor a link, and is left out";
        this.#options.onFinding?.({ severity: "warning", code: "SKIPPED_FILE", message, file: child });
      }
    }
  }

  async #link(path: string, output: string, inside: string, mode: number): Promise<void> {
    const linkTarget = await readlink(path);
    const target = databaseTarget(inside);
    const action = target === undefined || this.#isKept(target) ? "copy" : "drop";
    this.#add({ kind: "link", action, path, output, mode, linkTarget });
  }

  async #file(
    path: string,
    output: string,
    inside: string,
    { mode, size }: { readonly mode: number; readonly size: number },
  ): Promise<void> {
    if (inside.endsWith(".kpack")) return await this.#archive(path, output, { mode, size });
    const target = databaseTarget(inside);
    const share = this.#share(target);
    share.files += 1;
    share.size += size;
    const action = target === undefined || this.#isKept(target) ? "copy" : "drop";
    this.#add({
      kind: "file",
      action,
      path,
      output,
      mode,
      size,
      targets: target === undefined ? [] : [target],
    });
  }

  async #archive(
    path: string,
    output: string,
    info: { readonly mode: number; readonly size: number },
  ): Promise<void> {
    const { signal } = this.#options;
    await using archive = await openArchive(await openFile(path), { signal });
    const all = [...new Set([...archive.targets, ...archive.toc.entries.targetNames])];
    const targets = all.filter((target) => this.#isKept(target));
    const droppedTargets = all.filter((target) => !targets.includes(target));
    const isKept = (target: string): boolean => targets.includes(target);
    const sizes = await measureArchive(archive, { isKept, scheme: this.#options.scheme, signal });
    this.#addShares(sizes);
    const hasKept = [...archive.entries].some(({ target }) => targets.includes(target));
    const losesKernels = archive.toc.entries.targetNames.some((target) => !targets.includes(target));
    const action =
      all.length > 0 && !hasKept && (losesKernels || targets.length === 0)
        ? "drop"
        : hasKept && (droppedTargets.length > 0 || this.#options.scheme !== undefined)
          ? "rewrite"
          : "copy";
    if (action === "rewrite") this.#addRewritten(sizes.rewrittenSize);
    this.#add({ kind: "archive", action, path, output, ...info, targets, droppedTargets });
  }

  #addShares({ targets }: ArchiveSizes): void {
    for (const [target, { kernels, size }] of targets) {
      const share = this.#share(target);
      share.kernels += kernels;
      share.size += size;
    }
  }

  #addRewritten(size: number | undefined): void {
    this.#rewrittenSize =
      this.#rewrittenSize === undefined || size === undefined ? undefined : this.#rewrittenSize + size;
  }

  #add(item: Pick<ShrinkItem, "kind" | "action" | "path" | "output" | "mode"> & Partial<ShrinkItem>): void {
    this.#items.push({ size: 0, linkTarget: undefined, targets: [], droppedTargets: [], ...item });
  }

  #share(target: string | undefined): MutableShare {
    const share = this.#shares.get(target) ?? { files: 0, kernels: 0, size: 0 };
    this.#shares.set(target, share);
    return share;
  }

  #isKept(target: string): boolean {
    return this.#options.keep.some((wanted) => isOfUseFor(target, wanted));
  }

  #targetShares(): readonly TargetShare[] {
    return [...this.#shares]
      .toSorted(([a = "~"], [b = "~"]) => (a < b ? -1 : 1))
      .map(([target, share]) => ({ target, stays: target === undefined || this.#isKept(target), ...share }));
  }

  #requireSomething(items: readonly ShrinkItem[]): void {
    if (items.some(({ action, targets }) => action !== "drop" && targets.length > 0)) return;
    const found = [...this.#shares.keys()].filter((target) => target !== undefined);
    throw new NotFoundError("NOTHING_FOUND", "nothing for these targets would stay", {
      file: this.#options.inputs.join(", "),
      field: "--keep",
      expected: this.#options.keep.join(", "),
      found: found.toSorted().join(", ") || "nothing that is for one target",
      hint: "Choose from the targets that were found.",
    });
  }
}

function databaseTarget(inside: string): string | undefined {
  return DATABASE_FILE.test(inside) ? targetInPath(inside) : undefined;
}

/** Folders of which nothing stays go too, and links to what goes. */
function withoutOrphans(items: readonly ShrinkItem[]): readonly ShrinkItem[] {
  const dropped = new Set(items.filter(({ action }) => action === "drop").map(({ path }) => path));
  const parents = new Map<string, ShrinkItem[]>();
  for (const item of items) {
    const siblings = parents.get(dirname(item.path)) ?? [];
    siblings.push(item);
    parents.set(dirname(item.path), siblings);
  }
  // Links may hang on one another, and folders on links: again until nothing more goes.
  for (let before = -1; before !== dropped.size; ) {
    before = dropped.size;
    for (const item of items.toReversed()) {
      const { kind, path, linkTarget } = item;
      if (kind === "link" && linkTarget !== undefined && dropped.has(resolve(dirname(path), linkTarget)))
        dropped.add(path);
      const children = kind === "folder" ? (parents.get(path) ?? []) : [];
      if (children.length > 0 && children.every((child) => dropped.has(child.path))) dropped.add(path);
    }
  }
  return items.map((item) => (dropped.has(item.path) ? { ...item, action: "drop" } : item));
}

/** The output's path with the links of its existing part followed. */
async function realOutput(output: string): Promise<string> {
  const path = resolve(output);
  try {
    return await realpath(path);
  } catch {
    // It does not exist yet; its folder may.
    const parent = dirname(path);
    return parent === path ? path : join(await realOutput(parent), basename(path));
  }
}

function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function sum(items: readonly ShrinkItem[]): number {
  return items.reduce((total, { size }) => total + size, 0);
}

function unreadable(file: string, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("READ_FAILED", `cannot be read: ${reason}`, { file, cause });
}
