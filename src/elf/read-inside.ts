import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";

/**
 * Reads bytes whose place a file's own numbers give. Each of them may be as large as a number can be, their sum
 * larger: that is the file's fault, while a source calls it its caller's.
 * @throws FormatError `OUT_OF_BOUNDS` when the bytes are not inside the file
 */
export async function readInside(
  source: Source,
  extent: { readonly offset: number; readonly size: number },
  field: string,
  options: { readonly signal?: AbortSignal | undefined },
): Promise<Uint8Array> {
  const { offset, size } = extent;
  if (offset > source.size || size > source.size - offset) {
    throw new FormatError("OUT_OF_BOUNDS", "the bytes end behind the end of the file", {
      file: source.name,
      field,
      offset,
      expected: `at most ${source.size}`,
      found: offset + size,
    });
  }
  return await source.read(offset, size, options);
}
