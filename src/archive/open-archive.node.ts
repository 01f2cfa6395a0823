import { builtInSchemes } from "../scheme/built-in-schemes.node.ts";
import type { Source } from "../source/source.ts";
import { type Archive, type OpenArchiveOptions, openArchive as openWithSchemes } from "./archive.ts";

/** Opens a .kpack archive; the schemes are {@link builtInSchemes} unless others are given. See the portable function. */
export async function openArchive(
  source: Source,
  options: Partial<OpenArchiveOptions> = {},
): Promise<Archive> {
  return await openWithSchemes(source, { schemes: builtInSchemes, ...options });
}
