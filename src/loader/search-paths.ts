import type { HipkMetadata } from "../host/hipk-metadata.ts";
import type { LoaderEnvironment } from "./environment.ts";
import { compatibleTargets } from "./isa.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";

/** Where a path comes from: `ROCM_KPACK_PATH`, `ROCM_KPACK_PATH_PREFIX`, or the binary's metadata. */
export type PathOrigin = "override" | "prefix" | "embedded";

/** One path at which the loader looks for an archive. */
export interface SearchPath {
  readonly origin: PathOrigin;
  /** As it stands in the variable or the metadata. */
  readonly text: string;
  /** The ISA and the target that `@GFXARCH@` was replaced for; undefined where there is none. */
  readonly isa: string | undefined;
  readonly target: string | undefined;
}

export const TARGET_PLACEHOLDER = "@GFXARCH@";

/** All paths in the order in which the loader looks at them, with the placeholder replaced. */
export function expandSearchPaths(
  metadata: HipkMetadata,
  environment: LoaderEnvironment,
  isas: readonly string[],
): readonly (SearchPath & { readonly expanded: string })[] {
  const listed = (origin: PathOrigin, texts: readonly string[]): (SearchPath & { expanded: string })[] =>
    texts.map((text) => ({ origin, text, isa: undefined, target: undefined, expanded: text }));
  if (environment.override) return listed("override", environment.override);
  const paths = listed("prefix", environment.prefix);
  for (const text of metadata.searchPaths) {
    if (!text.includes(TARGET_PLACEHOLDER)) {
      paths.push(...listed("embedded", [text]));
      continue;
    }
    for (const isa of isas) {
      for (const target of compatibleTargets(isa)) {
        // A function, so that `$&` in a name means itself; only the first occurrence counts.
        const expanded = text.replace(TARGET_PLACEHOLDER, () => target);
        paths.push({ origin: "embedded", text, isa, target, expanded });
      }
    }
  }
  return paths;
}

export function isAbsolutePath(path: string): boolean {
  return path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path);
}

/** The folder of a path. */
export function folderOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end < 0 ? "." : end === 0 ? "/" : path.slice(0, end);
}

/** The last part of a path. */
export function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/**
 * Resolves an embedded path as C++'s `weakly_canonical` does: symbolic links of the part that exists are followed, so
 * that `..` behind a linked folder is the parent of its target; the rest is put together as text.
 */
export async function resolveEmbeddedPath(
  folder: string,
  path: string,
  fileSystem: LoaderFileSystem,
): Promise<string> {
  const absolute = isAbsolutePath(path);
  let current = absolute ? "/" : ((await fileSystem.realPath(folder)) ?? folder);
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      current = folderOf(current);
      continue;
    }
    const next = joinPath(current, part);
    current = (await fileSystem.realPath(next)) ?? next;
  }
  return current;
}

/** Both parts with one `/` between them, and nothing else changed. */
export function joinPath(folder: string, path: string): string {
  return folder.endsWith("/") ? folder + path : `${folder}/${path}`;
}
