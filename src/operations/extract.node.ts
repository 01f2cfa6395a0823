import { makeFolder } from "../sink/make-folder.node.ts";
import { mkdir, open, realpath, rename, rm } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { safeRelativePath, targetFolderName } from "../archive/safe-path.ts";
import { AccessError, isKpackError } from "../errors/errors.ts";
import { findingOfError, type OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { defaultJobs } from "./jobs.node.ts";
import { pathInside } from "./find-inputs.node.ts";

/** Which kernels are extracted, and how. */
export interface ExtractOptions {
  readonly entries: readonly ArchiveEntry[];
  readonly jobs?: number | undefined;
  /** Receives kernels that cannot be read; the others are extracted all the same. */
  readonly onFinding: OnFinding;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A kernel that was written to a file. */
export interface ExtractedFile {
  readonly binaryKey: string;
  readonly target: string;
  readonly path: string;
  /** In bytes. */
  readonly size: number;
}

/** Where an entry's kernel goes below the output folder: `TARGET/KEY.hsaco`, with `_` for the `:` of a target. */
export function extractedPath(binaryKey: string, target: string): string {
  return `${targetFolderName(target)}/${safeRelativePath(binaryKey)}.hsaco`;
}

/**
 * Writes kernels into a folder, each as `TARGET/KEY.hsaco`. Names from an archive never lead out of the folder.
 * Hashes are checked; files that exist are replaced.
 */
export async function extractKernels(
  archive: Archive,
  folder: string,
  options: ExtractOptions,
): Promise<readonly ExtractedFile[]> {
  const { signal } = options;
  const writer = await FolderWriter.create(folder);
  const extract = async (entry: ArchiveEntry): Promise<ExtractedFile | undefined> => {
    try {
      const bytes = await archive.readKernel(entry, { checkHash: true, signal });
      const path = await writer.write(extractedPath(entry.binaryKey, entry.target), bytes);
      return { binaryKey: entry.binaryKey, target: entry.target, path, size: bytes.length };
    } catch (error) {
      if (!isKpackError(error) || error.name === "AccessError") throw error;
      options.onFinding(findingOfError(error));
      return undefined;
    }
  };
  const files: ExtractedFile[] = [];
  let done = 0;
  for await (const file of mapOrdered(options.entries, options.jobs ?? defaultJobs(), extract, signal)) {
    if (file) files.push(file);
    done += 1;
    options.onProgress?.({ stage: "extract", done, total: options.entries.length, unit: "kernels" });
  }
  return files;
}

/** Writes files below one folder and nowhere else, also when links in it point elsewhere. */
export class FolderWriter {
  readonly #root: string;
  readonly #realRoot: string;

  private constructor(root: string, realRoot: string) {
    this.#root = root;
    this.#realRoot = realRoot;
  }

  static async create(folder: string): Promise<FolderWriter> {
    try {
      await makeFolder(folder);
      return new FolderWriter(folder, await realpath(folder));
    } catch (cause) {
      throw notWritten(folder, cause);
    }
  }

  /** @param relativePath safe, with `/` as separator */
  async write(relativePath: string, bytes: Uint8Array): Promise<string> {
    const parts = relativePath.split("/");
    const path = join(this.#root, ...parts);
    const name = parts.pop() ?? "";
    let temporary: string | undefined;
    try {
      const parent = await this.#makeFolders(parts);
      temporary = join(parent, `.${randomBytes(8).toString("hex")}.tmp`);
      // A new file, renamed: a link under the file's own name is replaced, not followed.
      const handle = await open(temporary, "wx", 0o666);
      try {
        await handle.writeFile(bytes);
      } finally {
        await handle.close();
      }
      await rename(temporary, join(parent, name));
      return path;
    } catch (cause) {
      if (temporary !== undefined) await rm(temporary, { force: true }).catch(() => undefined); // the first failure is the one to tell
      throw notWritten(path, cause);
    }
  }

  /** One folder after another, so that a link that leads out is noticed before anything is made behind it. */
  async #makeFolders(names: readonly string[]): Promise<string> {
    let folder = this.#realRoot;
    for (const name of names) {
      const next = join(folder, name);
      await mkdir(next).catch((cause: unknown) => {
        if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause;
      });
      folder = await realpath(next);
      if (folder !== this.#realRoot && pathInside(this.#realRoot, folder) === undefined)
        throw new Error(`a link leads out of ${this.#root}`);
    }
    return folder;
  }
}

function notWritten(file: string, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("WRITE_FAILED", `cannot be written: ${reason}`, { file, cause });
}
