import { FormatError, LimitError } from "../../errors/errors.ts";

/**
 * Decodes a kernel's frames, and names the kernel in what is wrong with one of them: `frame 0 (lib/a.so#0 gfx942)`.
 * Decoding a frame may be shared by several kernels, so each gets an error of its own.
 */
export async function nameKernel<Result>(
  id: string | undefined,
  decode: () => Promise<Result>,
): Promise<Result> {
  try {
    return await decode();
  } catch (error) {
    if (id === undefined) throw error;
    if (error instanceof FormatError)
      throw new FormatError(error.code, error.summary, detailsWith(error, id));
    if (error instanceof LimitError) throw new LimitError(error.code, error.summary, detailsWith(error, id));
    throw error;
  }
}

type Details = NonNullable<ConstructorParameters<typeof FormatError>[2]>;

function detailsWith(error: FormatError | LimitError, id: string): Details {
  const { file, offset, expected, found, hint, cause } = error;
  const field = error.field?.replace(/^frame \d+(?! \()/, (frame) => `${frame} (${id})`);
  return { file, offset, field, expected, found, hint, cause };
}
