import { readdir } from "node:fs/promises";
import { folderOf, joinPath, resolveEmbeddedPath, TARGET_PLACEHOLDER } from "../../loader/search-paths.ts";
import { parseTargetId } from "../../target/target-id.ts";
import { keysOf } from "../../archive/archive-keys.ts";
import type { ArchiveShelf } from "./archive-shelf.node.ts";
import type { BrokenLink, HostFacts, NamedArchive, Reach, ShelvedArchive } from "./doctor-facts.ts";

/** Looks into the folders that the binary's search paths name, also outside of the tree that was surveyed. */
export async function findReach(host: HostFacts, shelf: ArchiveShelf): Promise<Reach> {
  const archives = new Map<string, ShelvedArchive>();
  const patterns = new Set<string>();
  const named: NamedArchive[] = [];
  const brokenLinks: BrokenLink[] = [];
  for (const searchPath of host.metadata?.searchPaths ?? []) {
    const { pattern, places } = await expand(host.path, searchPath, shelf);
    patterns.add(pattern);
    for (const { path, target } of places) {
      const kind = await shelf.kind(path);
      if (kind === "missing" && (target === undefined || isTargetName(target))) {
        const leadsTo = await shelf.linkTarget(path);
        if (leadsTo !== undefined) brokenLinks.push({ path, leadsTo });
      }
      if (kind !== "file") continue;
      const realPath = await shelf.realPath(path);
      if (realPath === undefined) continue;
      const shelved = await shelf.take(realPath);
      if (target === undefined || isTargetName(target) || hasKeysFor(host, shelved))
        archives.set(realPath, shelved);
      if (target !== undefined) named.push({ path, target, archive: shelved });
    }
  }
  return { host, archives: [...archives.values()], patterns: [...patterns], named, brokenLinks };
}

/** Whether a target, or one in the spelling of names of files (`gfx90a-xnack+`), stands for the placeholder. */
function isTargetName(text: string): boolean {
  return parseTargetId(text.replaceAll(/[_-](?=(?:xnack|sramecc)[+-])/g, ":")) !== undefined;
}

/**
 * With the group `g`, `g_extra_gfx1100.kpack` is an archive of the group `g_extra`; but one with the binary's own
 * kernels is meant for it, whatever its name.
 */
function hasKeysFor({ metadata }: HostFacts, { archive }: ShelvedArchive): boolean {
  return archive !== undefined && keysOf(archive).has(metadata?.kernelName ?? "");
}

interface Expansion {
  /** Where it looks, with the placeholder. */
  readonly pattern: string;
  /** What is there, and what stands for the placeholder in its name. */
  readonly places: readonly { readonly path: string; readonly target: string | undefined }[];
}

/** A placeholder in the name of the file is looked up in the folder; one in a folder's name in that folder's parent. */
async function expand(binaryPath: string, searchPath: string, shelf: ArchiveShelf): Promise<Expansion> {
  const folder = folderOf(binaryPath);
  const start = searchPath.indexOf(TARGET_PLACEHOLDER);
  if (start < 0) {
    const path = await resolveEmbeddedPath(folder, searchPath, shelf);
    return { pattern: path, places: [{ path, target: undefined }] };
  }
  const before = searchPath.slice(0, start);
  const parent = await resolveEmbeddedPath(folder, before === "" ? "." : folderOf(`${before}x`), shelf);
  const rest = searchPath.slice(before.lastIndexOf("/") + 1);
  const [part = "", ...inner] = rest.split("/");
  const [head = "", tail = ""] = splitOnce(part, TARGET_PLACEHOLDER);
  const names = await readdir(parent).catch(() => []);
  const places = names
    .filter((name) => name.startsWith(head) && name.endsWith(tail) && name.length > head.length + tail.length)
    .map((name) => ({
      path: joinPath(parent, [name, ...inner].join("/")),
      target: name.slice(head.length, name.length - tail.length),
    }));
  return { pattern: joinPath(parent, rest), places };
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator);
  return [text.slice(0, at), text.slice(at + separator.length)];
}
