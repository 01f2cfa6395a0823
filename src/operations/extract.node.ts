import { makeFolder } from "../sink/make-folder.node.ts";
import { TemporaryFile } from "../sink/file-sink.node.ts";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { safeRelativePath, targetFolderName } from "../archive/safe-path.ts";
import { AccessError } from "../errors/errors.ts";
import { findingOrThrow, type OnFinding } from "../errors/finding.ts";
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
 * Hashes are checked; files that exist are replaced. An abort waits for the files that are just being written, so that
 * all there are when the call ends are whole.
 */
export async function extractKernels(
  archive: Archive,
  folder: string,
  options: ExtractOptions,
): Promise<readonly ExtractedFile[]> {
  const { signal } = options;
  const writer = await FolderWriter.create(folder);
  const writes = new Set<Promise<string>>();
  const write = async (entry: ArchiveEntry, bytes: Uint8Array): Promise<string> => {
    const promise = writer.write(extractedPath(entry.binaryKey, entry.target), bytes);
    writes.add(promise);
    return await promise.finally(() => writes.delete(promise));
  };
  const files = new Map<ArchiveEntry, ExtractedFile>();
  const extract = async (group: readonly ArchiveEntry[]): Promise<number> => {
    const [first] = group;
    if (!first) return 0;
    try {
      const bytes = await archive.readKernel(first, { checkHash: true, signal });
      for (const entry of group) {
        signal?.throwIfAborted(); // nobody would wait for a file that is begun now
        const path = await write(entry, bytes);
        files.set(entry, { binaryKey: entry.binaryKey, target: entry.target, path, size: bytes.length });
      }
    } catch (error) {
      const finding = findingOrThrow(error);
      options.onFinding(finding);
      for (const { id } of group.slice(1)) {
        const message = `${id} is stored once with ${first.id}, which cannot be read`;
        options.onFinding({ ...finding, message, field: id });
      }
    }
    return group.length;
  };
  let done = 0;
  try {
    const groups = groupByKernel(options.entries);
    for await (const count of mapOrdered(groups, options.jobs ?? defaultJobs(), extract, signal)) {
      done += count;
      options.onProgress?.({ stage: "extract", done, total: options.entries.length, unit: "kernels" });
    }
  } finally {
    await Promise.allSettled(writes);
  }
  return options.entries.map((entry) => files.get(entry)).filter((file) => file !== undefined);
}

/** Entries of one stored kernel that state one size: they are all written from the same bytes. */
function groupByKernel(entries: readonly ArchiveEntry[]): readonly (readonly ArchiveEntry[])[] {
  return [...Map.groupBy(entries, ({ ordinal, originalSize }) => `${ordinal} ${originalSize}`).values()];
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
    let temporary: TemporaryFile | undefined;
    try {
      const parent = await this.#makeFolders(parts);
      // A new file, renamed: a link under the file's own name is replaced, not followed.
      temporary = await TemporaryFile.create(parent);
      await temporary.handle.writeFile(bytes);
      await temporary.rename(join(parent, name));
      return path;
    } catch (cause) {
      await temporary?.remove().catch(() => undefined); // the first failure is the one to tell
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
