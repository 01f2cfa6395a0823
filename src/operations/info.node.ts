import { openArchive } from "../archive/open-archive.node.ts";
import type { Finding } from "../errors/finding.ts";
import { openFile } from "../source/file-source.node.ts";

/** What an archive is, summed up. */
export interface ArchiveInfo {
  readonly file: string;
  /** In bytes, as are all sizes here. */
  readonly fileSize: number;
  readonly tocSize: number;
  readonly groupName: string;
  readonly family: string;
  readonly scheme: string;
  readonly binaryCount: number;
  readonly entryCount: number;
  /** Stored kernels that an entry points to: entries that share one count once. */
  readonly kernelCount: number;
  /** Uncompressed size of all entries' kernels, where the archive says it. */
  readonly originalSize: number;
  /** Bytes that hold the kernels; those that entries share count once. */
  readonly storedSize: number;
  /** TOC fields beyond those of the format's first definition, and of the scheme. */
  readonly extraFields: readonly string[];
  readonly targets: readonly TargetInfo[];
  readonly findings: readonly Finding[];
}

/** What an archive has for one target. */
export interface TargetInfo {
  readonly target: string;
  readonly kernels: number;
  readonly originalSize: number;
  /** Bytes of its kernels; those shared with another target count for both. */
  readonly storedSize: number;
  /** Whether `gfx_arches` has it, so that ROCm's runtime finds its kernels. */
  readonly listed: boolean;
}

const FIRST_DEFINITION = ["blobs", "zstd_offset", "zstd_size"];

/** Sums an archive up. Reads the TOC and, where it has no frame offsets, the sizes of the frames. */
export async function describeArchive(
  path: string,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ArchiveInfo> {
  const { signal } = options;
  await using archive = await openArchive(await openFile(path), { signal });
  const targets = new Map<string, { kernels: number; originalSize: number; ordinals: Set<number> }>();
  const storedSizes = new Map<number, number>();
  let originalSize = 0;
  for (const entry of archive.entries) {
    if (!storedSizes.has(entry.ordinal)) {
      const extents = await archive.decompressor.storedExtents(entry.ordinal, { signal });
      storedSizes.set(entry.ordinal, sum(extents.map(({ size }) => size)));
    }
    const target = targets.get(entry.target) ?? { kernels: 0, originalSize: 0, ordinals: new Set() };
    target.kernels += 1;
    target.originalSize += entry.originalSize ?? 0;
    target.ordinals.add(entry.ordinal);
    targets.set(entry.target, target);
    originalSize += entry.originalSize ?? 0;
  }
  return {
    file: path,
    fileSize: archive.source.size,
    tocSize: archive.toc.size,
    groupName: archive.groupName,
    family: archive.family,
    scheme: archive.schemeName,
    binaryCount: archive.toc.entries.binaries.count,
    entryCount: archive.entries.length,
    kernelCount: storedSizes.size,
    originalSize,
    storedSize: sum(storedSizes.values()),
    extraFields: archive.toc.fields
      .map(({ name }) => name)
      .filter((name) => !FIRST_DEFINITION.includes(name)),
    targets: [...targets].map(([target, { kernels, originalSize: size, ordinals }]) => ({
      target,
      kernels,
      originalSize: size,
      storedSize: sum([...ordinals].map((ordinal) => storedSizes.get(ordinal) ?? 0)),
      listed: archive.targets.includes(target),
    })),
    findings: archive.findings,
  };
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
