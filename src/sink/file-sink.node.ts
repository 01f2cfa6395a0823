import { makeFolder } from "./make-folder.node.ts";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
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
 * @throws AccessError `WRITE_FAILED`
 */
export async function createFile(path: string): Promise<Sink> {
  const temporary = join(dirname(path), temporaryName(path));
  try {
    await makeFolder(dirname(path));
    return new FileSink(path, temporary, await open(temporary, "wx+", 0o666));
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

/** A name beside `path` that is not in use; opening it fails if it is. */
function temporaryName(path: string): string {
  return `.${basename(path)}.${process.pid}-${Math.random().toString(36).slice(2, 12)}.tmp`;
}

class FileSink implements Sink {
  readonly name: string;
  readonly #temporary: string;
  readonly #handle: FileHandle;
  readonly #buffer = new Uint8Array(BUFFER_SIZE);
  #buffered = 0;
  #flushed = 0;
  #state: "open" | "committed" | "discarded" = "open";

  constructor(name: string, temporary: string, handle: FileHandle) {
    this.name = name;
    this.#temporary = temporary;
    this.#handle = handle;
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
    return await openFile(this.#temporary);
  }

  async commit(): Promise<void> {
    await this.#flush();
    try {
      await this.#handle.close();
      await rename(this.#temporary, this.name);
      this.#state = "committed";
    } catch (cause) {
      throw writeFailed(this.name, cause);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "discarded";
    await this.#handle.close();
    await rm(this.#temporary, { force: true });
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
        const { bytesWritten } = await this.#handle.write(bytes, done, size, offset + done);
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
