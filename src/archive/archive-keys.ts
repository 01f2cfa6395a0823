import { splitBinaryKey } from "./binary-key.ts";
import type { Archive } from "./archive.ts";

/** The indexes that an archive has for a binary and target; undefined stands for a key without an index. */
export type KeyIndexes = ReadonlyMap<string, ReadonlySet<number | undefined>>;

/** The keys of an archive by the path of their binary, then by target. */
export type ArchiveKeys = ReadonlyMap<string, KeyIndexes>;

const cache = new WeakMap<Archive, ArchiveKeys>();

/** One walk over the entries, remembered for as long as the archive lives. */
export function keysOf(archive: Archive): ArchiveKeys {
  const known = cache.get(archive);
  if (known) return known;
  const keys = new Map<string, Map<string, Set<number | undefined>>>();
  for (const { binaryKey, target } of archive.entries) {
    const { path, index } = splitBinaryKey(binaryKey);
    const targets = keys.get(path) ?? new Map<string, Set<number | undefined>>();
    keys.set(path, targets);
    const indexes = targets.get(target) ?? new Set<number | undefined>();
    targets.set(target, indexes);
    indexes.add(index);
  }
  cache.set(archive, keys);
  return keys;
}
