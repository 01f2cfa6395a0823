import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { decodeUtf8, encodeUtf8 } from "../bytes/text.ts";
import { bytesEqual } from "../bytes/extent.ts";
import type { EntryColumns } from "./toc-columns.ts";

/** A key of the TOC and where its encoded value lies in the TOC's bytes. */
export interface TocField {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/**
 * A decoded table of contents. The fields of an archive are few and decoded; its entries may be 100,000 and stay
 * in columns of numbers beside the TOC's bytes, from which names are taken when they are asked for.
 */
export interface Toc {
  readonly formatVersion: number | undefined;
  readonly groupName: string | undefined;
  readonly family: string | undefined;
  /** `gfx_arches`, in file order. */
  readonly targets: readonly string[] | undefined;
  /** Undefined when the key is missing: the archive is then read as `none`. */
  readonly schemeName: string | undefined;
  readonly entries: EntryColumns;
  /** All other keys of the TOC, in file order: a scheme's fields, ours, and unknown ones. */
  readonly fields: readonly TocField[];
  readonly bytes: Uint8Array;
  /** Size of the TOC's map; bytes of `bytes` behind it belong to nothing. */
  readonly size: number;
  /** Deepest nesting of the TOC, counting its outer map as 1. */
  readonly depth: number;
  /** Names of the keys that were there. */
  readonly presentKeys: ReadonlySet<string>;
  /** A reader over the TOC's bytes that stands at `position`. */
  readerAt(position: number): MessagePackReader;
}

/** The text of a MessagePack string that begins at `position` and was checked to be valid UTF-8. */
export function stringAt(toc: Toc, position: number): string {
  return toc.readerAt(position).string("toc");
}

/** Index of the binary with this key, or -1. */
export function findBinary(toc: Toc, key: string): number {
  const wanted = encodeUtf8(key);
  const { table, mask, keyPositions } = toc.entries.binaries;
  if (table.length === 0) return -1;
  for (let slot = hashBytes(wanted, 0, wanted.length) & mask; ; slot = (slot + 1) & mask) {
    const index = (table[slot] ?? 0) - 1;
    if (index < 0) return -1;
    const reader = toc.readerAt(keyPositions[index] ?? 0);
    const size = reader.stringSize("toc");
    if (bytesEqual(toc.bytes.subarray(reader.position, reader.position + size), wanted)) return index;
  }
}

/** Another one in each process, so that no file can be made whose keys all fall into one slot of the hash table. */
const HASH_BASIS = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;

/**
 * FNV-1a, 32 bits, from a random basis; only for tables in memory. The low bits of FNV-1a depend on the low bits of its
 * basis alone, and a table takes the low ones: the last steps, MurmurHash3's, let every bit of the basis reach them.
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = HASH_BASIS;
  for (let index = start; index < end; index++) hash = Math.imul(hash ^ (bytes[index] ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Whether the bytes are valid UTF-8; in the common case of ASCII they are just looked at. */
export function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  let all = 0;
  for (let index = start; index < end; index++) all |= bytes[index] ?? 0;
  return all < 0x80 || decodeUtf8(bytes.subarray(start, end)) !== undefined;
}

/** Whether two runs of `size` bytes are the same. */
export function equalRuns(
  a: Uint8Array,
  aStart: number,
  b: Uint8Array,
  bStart: number,
  size: number,
): boolean {
  for (let index = 0; index < size; index++) if (a[aStart + index] !== b[bStart + index]) return false;
  return true;
}
