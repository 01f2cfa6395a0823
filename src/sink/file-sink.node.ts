import { makeFolder } from "./make-folder.node.ts";
import { rmSync } from "node:fs";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { AccessError } from "../errors/errors.ts";
import { openFile } from "../source/file-source.node.ts";
import type { Source } from "../source/source.ts";
import type { Sink } from "./sink.ts";

/** Small writes are gathered up to this size. */
const BUFFER_SIZE = 1 << 20;
/** Node aborts the process when one call is given 2^31 bytes or more. */
const LARGEST_CALL = 2 ** 30;

/**
 * A sink that writes to a temporary name beside `path` and renames on commit, so that `path` never holds half a file.
 * Missing folders are made.
 *
 * @throws AccessError `WRITE_FAILED`, at once where a folder or device has the name
 */
export async function createFile(path: string): Promise<Sink> {
  await checkOutputFile(path);
  try {
    await makeFolder(dirname(path));
    return new FileSink(path, await TemporaryFile.create(dirname(path)));
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

/**
 * Refuses a path that no file can be renamed to, so that this is known before the work and not after it.
 *
 * @throws AccessError `WRITE_FAILED`
 */
export async function checkOutputFile(path: string): Promise<void> {
  if (path === "" || path.endsWith("/") || path.endsWith(sep)) throw noFile(path, "it names no file");
  const info = await stat(path).catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw writeFailed(path, cause);
  });
  if (info?.isDirectory()) throw noFile(path, "it is a folder");
  // A rename would put a file in the place of a device or pipe.
  if (info && !info.isFile()) throw noFile(path, "it is no regular file");
}

function noFile(file: string, reason: string): AccessError {
  return new AccessError("WRITE_FAILED", `cannot be written: ${reason}`, {
    file,
    hint: "Give the path of a file, new or to be replaced.",
  });
}

/** Temporary files that are neither renamed nor removed, each with the promise of its opening. */
const unfinished = new Map<string, Promise<FileHandle>>();
let isEnding = false;

/** A file that gets its right name when it is complete. */
export class TemporaryFile {
  readonly path: string;
  readonly handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.handle = handle;
  }

  static async create(folder: string): Promise<TemporaryFile> {
    if (isEnding) throw new Error("the process is about to end");
    const path = temporaryPath(folder);
    const opening = open(path, "wx+", 0o666);
    unfinished.set(path, opening);
    try {
      return new TemporaryFile(path, await opening);
    } catch (error) {
      unfinished.delete(path);
      throw error;
    }
  }

  async rename(path: string): Promise<void> {
    await this.handle.close();
    await rename(this.path, path);
    unfinished.delete(this.path);
  }

  async remove(): Promise<void> {
    await this.handle.close();
    await rm(this.path, { force: true });
    unfinished.delete(this.path);
  }
}

/** A name beside what is written; without the final name, which may have the greatest length already. */
export function temporaryPath(folder: string): string {
  const random = Math.random().toString(36).slice(2, 12);
  return join(folder, `.kpack-${process.pid}-${random}.tmp`);
}

/** Whether a file is one that is being written, or was when its process was killed. */
export function isTemporaryName(name: string): boolean {
  return /^\.kpack-\d+-[0-9a-z]*\.tmp$/.test(name);
}

/** For a process that ends without waiting for the work under way. No file can be begun afterwards. */
export async function removeUnfinishedFiles(): Promise<void> {
  isEnding = true;
  // A file that the system is just making would appear after its removal.
  await Promise.allSettled(unfinished.values());
  for (const path of unfinished.keys()) {
    try {
      rmSync(path, { force: true }); // not queued behind a compression that nobody wants to wait for
    } catch {
      // The process ends all the same, and tries the others.
    }
  }
}

class FileSink implements Sink {
  readonly name: string;
  readonly #temporary: TemporaryFile;
  readonly #buffer = new Uint8Array(BUFFER_SIZE);
  #buffered = 0;
  #flushed = 0;
  #state: "open" | "committed" | "discarded" = "open";

  constructor(name: string, temporary: TemporaryFile) {
    this.name = name;
    this.#temporary = temporary;
  }

  get position(): number {
    return this.#flushed + this.#buffered;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.length > BUFFER_SIZE - this.#buffered) await this.#flush();
    if (bytes.length > BUFFER_SIZE) {
      await this.#writeAt(bytes, this.#flushed);
      this.#flushed += bytes.length;
      return;
    }
    this.#buffer.set(bytes, this.#buffered);
    this.#buffered += bytes.length;
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (offset < 0 || offset + bytes.length > this.position)
      throw new RangeError("a patch must lie in what was written");
    await this.#flush();
    await this.#writeAt(bytes, offset);
  }

  async reopen(): Promise<Source> {
    await this.#flush();
    return await openFile(this.#temporary.path);
  }

  async commit(): Promise<void> {
    await this.#flush();
    try {
      await this.#temporary.rename(this.name);
      this.#state = "committed";
    } catch (cause) {
      throw writeFailed(this.name, cause);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "discarded";
    await this.#temporary.remove();
  }

  async #flush(): Promise<void> {
    if (this.#buffered === 0) return;
    await this.#writeAt(this.#buffer.subarray(0, this.#buffered), this.#flushed);
    this.#flushed += this.#buffered;
    this.#buffered = 0;
  }

  async #writeAt(bytes: Uint8Array, offset: number): Promise<void> {
    try {
      for (let done = 0; done < bytes.length; ) {
        const size = Math.min(bytes.length - done, LARGEST_CALL);
        const { bytesWritten } = await this.#temporary.handle.write(bytes, done, size, offset + done);
        done += bytesWritten;
      }
    } catch (cause) {
      throw writeFailed(this.name, cause);
    }
  }
}

function writeFailed(file: string, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("WRITE_FAILED", `cannot be written: ${reason}`, {
    file,
    cause,
    hint: "Check the folder's permissions and free space; nothing was left behind under this name.",
  });
}
