import { ByteWriter } from "../bytes/byte-writer.ts";
import { memorySource } from "../source/memory-source.ts";
import type { Source } from "../source/source.ts";
import type { Sink } from "./sink.ts";

/**
 * A sink into memory.
 *
 * @example
 * ```ts
 * import { memorySink } from "rocm-kpack";
 * const sink = memorySink();
 * await sink.write(new Uint8Array([1, 2]));
 * console.log(sink.bytes().length); // 2
 * ```
 */
export function memorySink(name = "memory"): MemorySink {
  return new MemorySink(name);
}

export class MemorySink implements Sink {
  readonly name: string;
  readonly #out = new ByteWriter(4096);

  constructor(name: string) {
    this.name = name;
  }

  get position(): number {
    return this.#out.length;
  }

  /** A copy of what was written. */
  bytes(): Uint8Array {
    return this.#out.finish().slice();
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#out.append(bytes);
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (offset < 0 || offset + bytes.length > this.#out.length)
      throw new RangeError("a patch must lie in what was written");
    this.#out.finish().set(bytes, offset);
  }

  async reopen(): Promise<Source> {
    return memorySource(this.bytes(), this.name);
  }

  async commit(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
