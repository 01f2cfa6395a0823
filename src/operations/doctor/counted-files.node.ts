import { FilePool } from "../../source/file-pool.node.ts";
import type { ReadOptions, Source } from "../../source/source.ts";

/** Files of which it is counted how many bytes are read: a survey must not read what it surveys. */
export class CountedFiles implements AsyncDisposable {
  readonly #pool = new FilePool();
  bytesRead = 0;

  /** A source for the file; {@link CountedFiles} closes it. */
  async source(path: string): Promise<Source> {
    const inner = await this.#pool.source(path);
    const count = (length: number): void => void (this.bytesRead += length);
    return {
      name: path,
      size: inner.size,
      async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
        count(length);
        return await inner.read(offset, length, options);
      },
      async [Symbol.asyncDispose](): Promise<void> {},
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]();
  }
}
