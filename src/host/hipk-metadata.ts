import type { Extent } from "../bytes/extent.ts";
import { readInside } from "../elf/read-inside.ts";
import { FormatError } from "../errors/errors.ts";
import { decodeBytes } from "../msgpack/message-pack-decode.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import type { Source } from "../source/source.ts";

/**
 * The metadata of a converted host binary, by which ROCm's runtime finds its kernels: one MessagePack map in the
 * section `.rocm_kpack_ref` (ELF) or `.kpackrf` (COFF).
 *
 * | key | value |
 * | --- | --- |
 * | `kernel_name` | the binary key without `#N` |
 * | `kpack_search_paths` | array of paths relative to the binary's folder; `@GFXARCH@` stands for the target |
 */
export interface HipkMetadata {
  /** For example `lib/librocsparse.so.0.1`. */
  readonly kernelName: string;
  /** For example `../.kpack/blas_lib_@GFXARCH@.kpack`. Elements that are no text are left out, as the runtime does. */
  readonly searchPaths: readonly string[];
}

/** The runtime reads from memory and stops at the map's end; sections are small, a larger one is damage. */
const MOST_BYTES = 1 << 20;

/**
 * Decodes the metadata; bytes behind the map do not matter.
 * @throws FormatError where ROCm's runtime fails with error 12: no map, no text in `kernel_name`, or no text in
 *   `kpack_search_paths`.
 */
export function decodeHipkMetadata(
  bytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base?: number } = {},
): HipkMetadata {
  const value = decodeBytes(bytes, "HIPK metadata", place);
  const details = { file: place.file, offset: place.base };
  if (!(value instanceof Map)) {
    throw new FormatError("WRONG_TYPE", "the HIPK metadata is no map", {
      ...details,
      field: "HIPK metadata",
    });
  }
  const map: ReadonlyMap<MessagePackValue, MessagePackValue> = value;
  const kernelName = map.get("kernel_name");
  if (typeof kernelName !== "string") {
    const code = kernelName === undefined ? "MISSING_KEY" : "WRONG_TYPE";
    throw new FormatError(code, "the HIPK metadata has no kernel_name", { ...details, field: "kernel_name" });
  }
  const paths = map.get("kpack_search_paths");
  const texts = Array.isArray(paths)
    ? paths.filter((path: MessagePackValue) => typeof path === "string")
    : [];
  if (texts.length === 0) {
    const code = paths === undefined ? "MISSING_KEY" : "WRONG_TYPE";
    throw new FormatError(code, "the HIPK metadata has no path to search", {
      ...details,
      field: "kpack_search_paths",
    });
  }
  return { kernelName, searchPaths: texts };
}

/**
 * Reads the metadata of a converted ELF or COFF binary: one small read.
 * @throws FormatError as {@link decodeHipkMetadata}, and `MISSING_KEY` when the binary has none.
 */
export async function readHipkMetadata(
  source: Source,
  binary: { readonly metadata: Extent | undefined },
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<HipkMetadata> {
  const { metadata } = binary;
  if (metadata === undefined) {
    throw new FormatError("MISSING_KEY", "the binary has no HIPK metadata", {
      file: source.name,
      field: "HIPK metadata",
    });
  }
  const extent = { offset: metadata.offset, size: Math.min(metadata.size, MOST_BYTES) };
  const bytes = await readInside(source, extent, "HIPK metadata", options);
  return decodeHipkMetadata(bytes, { file: source.name, base: metadata.offset });
}
