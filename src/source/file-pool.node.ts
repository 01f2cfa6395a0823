import { AccessError } from "../errors/errors.ts";
import { openFile } from "./file-source.node.ts";
import { checkRange, type ReadOptions, type Source } from "./source.ts";

/** Files kept open at once: far below the usual limit of 1024 for a process. */
const OPEN_LIMIT = 64;

/** Small files are read once and kept, up to so many bytes in all: opening them again costs more than reading them. */
const SMALL_FILE = 64 * 1024;
const KEPT_BYTES = 64 * 1024 * 1024;

interface OpenFile {
  readonly source: Promise<Source>;
  users: number;
}

/**
 * Opens files when they are read and closes those that were not read for the longest time, so that any number of
 * files can be inputs of one job.
 */
export class FilePool implements AsyncDisposable {
  #room = KEPT_BYTES;
  /** In order of last use. */
  readonly #open = new Map<string, OpenFile>();

  /** A source for the file, whose size is taken now. Disposing of it closes nothing; the pool does. */
  async source(path: string): Promise<Source> {
    const { size, content } = await this.#use(path, async (file) => {
      const isSmall = file.size <= SMALL_FILE && file.size <= this.#room;
      if (isSmall) this.#room -= file.size;
      return { size: file.size, content: isSmall ? await file.read(0, file.size) : undefined };
    });
    const use = this.#use.bind(this);
    const source: Source = {
      name: path,
      size,
      async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
        checkRange(source, offset, length);
        options?.signal?.throwIfAborted();
        if (content) return content.subarray(offset, offset + length);
        return await use(path, async (file) => {
          if (file.size !== size) {
            throw new AccessError("SOURCE_CHANGED", "the file changed while it was used", {
              file: path,
              expected: `${size} bytes`,
              found: file.size,
              hint: "Run the command again when nothing writes to the file.",
            });
          }
          return await file.read(offset, length, options);
        });
      },
      async [Symbol.asyncDispose](): Promise<void> {},
    };
    return source;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    for (const file of files) await dispose(file);
  }

  async #use<Result>(path: string, task: (source: Source) => Promise<Result>): Promise<Result> {
    const file = this.#open.get(path) ?? { source: openFile(path), users: 0 };
    this.#open.delete(path);
    this.#open.set(path, file); // now the one used last
    file.users += 1;
    try {
      return await task(await file.source);
    } catch (error) {
      if (await failed(file.source)) this.#open.delete(path); // a later try opens it anew
      throw error;
    } finally {
      file.users -= 1;
      await this.#closeSome();
    }
  }

  async #closeSome(): Promise<void> {
    for (const [path, file] of this.#open) {
      if (this.#open.size <= OPEN_LIMIT) return;
      if (file.users > 0) continue;
      this.#open.delete(path);
      await dispose(file);
    }
  }
}

async function failed(source: Promise<Source>): Promise<boolean> {
  return await source.then(
    () => false,
    () => true,
  );
}

async function dispose(file: OpenFile): Promise<void> {
  if (await failed(file.source)) return;
  await (await file.source)[Symbol.asyncDispose]();
}
