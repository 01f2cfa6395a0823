import { AccessError } from "../errors/errors.ts";
import { checkRange, type ReadOptions, shortRead, type Source } from "./source.ts";

/** The part of the web's `Blob` and `File` that is used. */
export interface BlobLike {
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/**
 * A source over a `Blob` or `File`, as a browser's file picker gives it.
 *
 * @example
 * ```ts
 * import { blobSource } from "rocm-kpack";
 * const source = blobSource(new Blob([new Uint8Array(64)]), "dropped.kpack");
 * console.log(source.size); // 64
 * ```
 */
export function blobSource(blob: BlobLike, name = "blob"): Source {
  return {
    name,
    size: blob.size,
    async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      options?.signal?.throwIfAborted();
      checkRange(this, offset, length);
      let bytes: Uint8Array;
      try {
        bytes = new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
      } catch (cause) {
        throw new AccessError("READ_FAILED", "the blob could not be read", { file: name, offset, cause });
      }
      options?.signal?.throwIfAborted();
      if (bytes.length !== length) throw shortRead(this, offset, length, bytes.length);
      return bytes;
    },
    async [Symbol.asyncDispose](): Promise<void> {},
  };
}
