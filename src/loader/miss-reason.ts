import type { Archive } from "../archive/archive.ts";
import { keysOf } from "../archive/archive-keys.ts";
import { splitBinaryKey } from "../archive/binary-key.ts";
import { findBinary } from "../archive/toc.ts";

/** What the archive has instead of a key for a target, which tells causes apart. */
export function missReason(archive: Archive, key: string, target: string): string {
  const others = targetsOf(archive, key);
  if (others.length > 0) return `it has the key for ${others.join(", ")}, not for ${target}`;
  const { path } = splitBinaryKey(key);
  const indexes = keysOf(archive).get(path)?.get(target);
  if (indexes === undefined) return `it has no kernel of ${path} for ${target}`;
  if (indexes.has(undefined)) return `it has the key ${path} without an index, as older tools wrote it`;
  return `of ${path} for ${target} it has ${describe(indexes)} only`;
}

/** Some of the targets that have the key. */
function targetsOf({ toc, entries }: Archive, key: string): readonly string[] {
  const binary = findBinary(toc, key);
  return binary < 0
    ? []
    : entries
        .ofBinary(binary)
        .slice(0, 4)
        .map(({ target }) => target);
}

/** Thousands of wrappers may miss the same set, which is sorted once. */
const described = new WeakMap<ReadonlySet<number | undefined>, string>();

function describe(indexes: ReadonlySet<number | undefined>): string {
  const known = described.get(indexes);
  if (known !== undefined) return known;
  const numbers = [...indexes].filter((index) => index !== undefined).toSorted((a, b) => a - b);
  const text = formatIndexes(numbers);
  described.set(indexes, text);
  return text;
}

/** `#0–#4, #7` of sorted numbers. */
export function formatIndexes(numbers: readonly number[]): string {
  const runs: string[] = [];
  for (let start = 0; start < numbers.length; ) {
    let end = start;
    while ((numbers[end + 1] ?? Number.NaN) === (numbers[end] ?? 0) + 1) end++;
    runs.push(start === end ? `#${numbers[start]}` : `#${numbers[start]}–#${numbers[end]}`);
    start = end + 1;
  }
  return runs.length > 6 ? `${runs.slice(0, 6).join(", ")} and more` : runs.join(", ");
}
