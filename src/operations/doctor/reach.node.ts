import { readdir } from "node:fs/promises";
import {
  fileNameOf,
  folderOf,
  joinPath,
  resolveEmbeddedPath,
  TARGET_PLACEHOLDER,
} from "../../loader/search-paths.ts";
import type { ArchiveShelf } from "./archive-shelf.node.ts";
import type { HostFacts, Reach, ShelvedArchive } from "./doctor-facts.ts";

/** Looks into the folders that the binary's search paths name, also outside of the tree that was surveyed. */
export async function findReach(host: HostFacts, shelf: ArchiveShelf): Promise<Reach> {
  const archives = new Map<string, ShelvedArchive>();
  const patterns: string[] = [];
  const namedTargets = new Set<string>();
  for (const searchPath of host.metadata?.searchPaths ?? []) {
    for (const { path, target, pattern } of await expand(host.path, searchPath, shelf)) {
      if (!patterns.includes(pattern)) patterns.push(pattern);
      if (path === undefined || (await shelf.kind(path)) !== "file") continue;
      const realPath = await shelf.realPath(path);
      if (realPath === undefined) continue;
      archives.set(realPath, await shelf.take(realPath));
      if (target !== undefined) namedTargets.add(target);
    }
  }
  return { host, archives: [...archives.values()], patterns, namedTargets: [...namedTargets] };
}

interface Expansion {
  readonly pattern: string;
  readonly path: string | undefined;
  readonly target: string | undefined;
}

/** A placeholder in the name of the file is looked up in the folder; one in a folder's name in that folder's parent. */
async function expand(
  binaryPath: string,
  searchPath: string,
  shelf: ArchiveShelf,
): Promise<readonly Expansion[]> {
  const folder = folderOf(binaryPath);
  const start = searchPath.indexOf(TARGET_PLACEHOLDER);
  if (start < 0) {
    const path = await resolveEmbeddedPath(folder, searchPath, shelf);
    return [{ pattern: path, path, target: undefined }];
  }
  const before = searchPath.slice(0, start);
  const parent = await resolveEmbeddedPath(folder, before === "" ? "." : folderOf(`${before}x`), shelf);
  const rest = searchPath.slice(before.lastIndexOf("/") + 1);
  const [part = "", ...inner] = rest.split("/");
  const pattern = joinPath(parent, rest);
  const [head = "", tail = ""] = splitOnce(part, TARGET_PLACEHOLDER);
  const expansions: Expansion[] = [];
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.startsWith(head) || !name.endsWith(tail) || name.length <= head.length + tail.length) continue;
    const target = name.slice(head.length, name.length - tail.length);
    expansions.push({ pattern, path: joinPath(parent, [name, ...inner].join("/")), target });
  }
  return expansions.length > 0 ? expansions : [{ pattern, path: undefined, target: undefined }];
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator);
  return [text.slice(0, at), text.slice(at + separator.length)];
}

/** For messages: the pattern's folder, and its name. */
export function describePattern(pattern: string): string {
  return `${fileNameOf(pattern)} in ${folderOf(pattern)}`;
}
