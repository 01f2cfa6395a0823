import { checkRange, type ReadOptions, type Source } from "./source.ts";

/**
 * A source over bytes in memory. Reads are views, nothing is copied.
 *
 * @example
 * ```ts
 * import { memorySource } from "rocm-kpack";
 * const source = memorySource(new Uint8Array([1, 2, 3]), "example");
 * console.log(await source.read(1, 2)); // Uint8Array [2, 3]
 * ```
 */
export function memorySource(bytes: Uint8Array, name = "memory"): Source {
  return {
    name,
    size: bytes.length,
    async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      options?.signal?.throwIfAborted();
      checkRange(this, offset, length);
      return bytes.subarray(offset, offset + length);
    },
    async [Symbol.asyncDispose](): Promise<void> {},
  };
}
