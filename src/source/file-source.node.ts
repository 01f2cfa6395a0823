import { fstatSync } from "node:fs";
import { constants, type FileHandle, open } from "node:fs/promises";
import { AccessError } from "../errors/errors.ts";
import { checkRange, type ReadOptions, shortRead, type Source } from "./source.ts";

/** Node aborts the process when one call is asked for 2^31 bytes or more. */
const LARGEST_CALL = 2 ** 30;

/** Opening a named pipe must not wait for somebody who writes to it; systems without pipes lack the flag. */
const NON_BLOCKING: number = constants.O_NONBLOCK ?? 0;

/**
 * Opens a regular file as a source. Reads are positioned and may run at the same time.
 *
 * @throws AccessError `READ_FAILED` when the path is no readable regular file.
 * @example
 * ```ts
 * import { openFile } from "rocm-kpack/node";
 * await using source = await openFile("package.json");
 * console.log(source.size > 0);
 * ```
 */
export async function openFile(path: string): Promise<Source> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, constants.O_RDONLY | NON_BLOCKING);
    const stat = fstatSync(handle.fd); // of an open file this waits for nothing
    if (!stat.isFile()) throw new Error(stat.isDirectory() ? "it is a folder" : "it is no regular file");
    return new FileSource(path, stat.size, handle);
  } catch (cause) {
    await handle?.close();
    throw readFailed(path, undefined, cause);
  }
}

class FileSource implements Source {
  readonly name: string;
  readonly size: number;
  readonly #handle: FileHandle;

  constructor(name: string, size: number, handle: FileHandle) {
    this.name = name;
    this.size = size;
    this.#handle = handle;
  }

  async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
    options?.signal?.throwIfAborted();
    checkRange(this, offset, length);
    const given = options?.buffer;
    // allocUnsafeSlow: not zeroed first, and not a slice of a shared pool, since callers may keep it for long.
    const bytes = given && given.length >= length ? given.subarray(0, length) : uninitialised(length);
    let done = 0;
    while (done < length) {
      let bytesRead: number;
      try {
        const wanted = Math.min(length - done, LARGEST_CALL);
        ({ bytesRead } = await this.#handle.read(bytes, done, wanted, offset + done));
      } catch (cause) {
        throw readFailed(this.name, offset + done, cause);
      }
      if (bytesRead === 0) throw shortRead(this, offset, length, done);
      done += bytesRead;
      options?.signal?.throwIfAborted();
    }
    return bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

function uninitialised(length: number): Uint8Array {
  const buffer = Buffer.allocUnsafeSlow(length);
  return new Uint8Array(buffer.buffer, buffer.byteOffset, length);
}

function readFailed(file: string, offset: number | undefined, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("READ_FAILED", `cannot be read: ${reason}`, { file, offset, cause });
}
