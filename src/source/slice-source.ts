import { checkRange, type ReadOptions, type Source } from "./source.ts";

/** A part of another source as a source of its own. Disposing of it leaves the other one open. */
export function sliceSource(
  source: Source,
  offset: number,
  size: number,
  name: string = source.name,
): Source {
  checkRange(source, offset, size);
  return {
    name,
    size,
    async read(at: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      checkRange(this, at, length);
      return await source.read(offset + at, length, options);
    },
    async [Symbol.asyncDispose](): Promise<void> {},
  };
}
