import type { Archive } from "../archive/archive.ts";
import { HEADER_SIZE } from "../archive/header.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { entryShares } from "./info-shares.ts";
import { StoredSizes } from "./stored-sizes.ts";

/** What the kernels of an archive take, and what they would take in a copy for fewer targets. Sizes are bytes. */
export interface ArchiveSizes {
  /** Of every target that has kernels. */
  readonly targets: ReadonlyMap<string, { readonly kernels: number; readonly size: number }>;
  /** Estimated, of an archive with the kept targets' kernels alone; undefined where only compressing would tell. */
  readonly rewrittenSize: number | undefined;
}

/**
 * Adds up what the targets of an archive take. Where kernels share frames, shared bytes are divided among them;
 * elsewhere a kernel that targets share counts for each of them.
 *
 * @param options.scheme what the copy is to be written in, where it is not the archive's own
 */
export async function measureArchive(
  archive: Archive,
  options: {
    readonly isKept: (target: string) => boolean;
    readonly scheme: CompressionScheme | undefined;
    readonly signal: AbortSignal | undefined;
  },
): Promise<ArchiveSizes> {
  const storedSizes = new StoredSizes(archive, options.signal);
  const shareOf = entryShares(archive);
  const targets = new Map<string, { kernels: number; size: number }>();
  const seen = new Set<string>();
  /** By ordinal: what each kept kernel takes in the copy. */
  const kept = new Map<number, number | undefined>();
  let keptEntries = 0;
  for (const { target, ordinal, originalSize } of archive.entries) {
    const part = targets.get(target) ?? { kernels: 0, size: 0 };
    targets.set(target, part);
    part.kernels += 1;
    const storedSize = await storedSizes.of(ordinal);
    const name = `${ordinal} ${target}`;
    if (shareOf) part.size += shareOf(ordinal);
    else if (!seen.has(name)) part.size += storedSize;
    seen.add(name);
    if (!options.isKept(target)) continue;
    keptEntries += 1;
    kept.set(ordinal, sizeInCopy(archive, options.scheme, { storedSize, originalSize }));
  }
  for (const part of targets.values()) part.size = Math.round(part.size);
  // The table of contents shrinks with the entries, more or less.
  const tocSize = Math.round((archive.toc.size * keptEntries) / Math.max(1, archive.entries.length));
  let rewrittenSize: number | undefined = HEADER_SIZE + tocSize;
  for (const size of kept.values())
    rewrittenSize = rewrittenSize === undefined || size === undefined ? undefined : rewrittenSize + size;
  return { targets, rewrittenSize };
}

/** A kernel that is compressed by itself, again as before, takes what it did; uncompressed, what it is. */
function sizeInCopy(
  archive: Archive,
  scheme: CompressionScheme | undefined,
  kernel: { readonly storedSize: number; readonly originalSize: number | undefined },
): number | undefined {
  if (scheme?.name === "none") return kernel.originalSize;
  const isLikeBefore = scheme === undefined && archive.decompressor.describeFrames === undefined;
  return isLikeBefore ? kernel.storedSize : undefined;
}
