import { openArchive } from "../archive/open-archive.node.ts";
import type { Finding } from "../errors/finding.ts";
import { openFile } from "../source/file-source.node.ts";
import { describeGraph, type GraphInfo } from "./graph.ts";
import { entryShares } from "./info-shares.ts";
import { StoredSizes } from "./stored-sizes.ts";

/** What an archive is, summed up. */
export interface ArchiveInfo {
  readonly file: string;
  /** In bytes, as are all sizes here. */
  readonly fileSize: number;
  readonly tocSize: number;
  readonly groupName: string;
  readonly family: string;
  readonly scheme: string;
  /** Binary keys that have entries. */
  readonly binaryCount: number;
  readonly entryCount: number;
  /** Stored kernels that an entry points to: entries that share one count once. */
  readonly kernelCount: number;
  /** Uncompressed size of all entries' kernels, where the archive says it. */
  readonly originalSize: number;
  /** Bytes that hold the kernels; those that entries share count once. */
  readonly storedSize: number;
  /** TOC fields beyond those that the format and the scheme need. */
  readonly extraFields: readonly string[];
  readonly targets: readonly TargetInfo[];
  readonly binaries: readonly BinaryInfo[];
  /** Frames and what depends on what; left out for schemes that store each kernel by itself. */
  readonly graph: GraphInfo | undefined;
  readonly findings: readonly Finding[];
}

/** What some of an archive's entries take. */
export interface PartInfo {
  readonly kernels: number;
  readonly originalSize: number;
  /** Bytes of the frames that hold its kernels; those shared with another part count for both. */
  readonly storedSize: number;
  /**
   * Its part of all stored bytes, rounded: dictionaries and shared frames are divided among the kernels that need
   * them, and a kernel's part among its entries. Left out for schemes that store each kernel by itself.
   */
  readonly attributedSize: number | undefined;
}

/** What an archive has for one target. */
export interface TargetInfo extends PartInfo {
  readonly target: string;
  /** Whether `gfx_arches` has it, so that ROCm's runtime finds its kernels. */
  readonly listed: boolean;
}

/** What an archive has for one binary key, over all targets. */
export interface BinaryInfo extends PartInfo {
  readonly binaryKey: string;
}

/** A scheme's field that only some writers add. */
const OPTIONAL_FIELD = "zstd_frame_offsets";

/** Sums an archive up. Reads the TOC and, where it has no frame offsets, the sizes of the frames. */
export async function describeArchive(
  path: string,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ArchiveInfo> {
  const { signal } = options;
  await using archive = await openArchive(await openFile(path), { signal });
  const map = archive.decompressor.describeFrames?.();
  const sizes = new StoredSizes(archive, signal);
  const storedSizes = new Map<number, number>();
  for (const { ordinal } of archive.entries) storedSizes.set(ordinal, await sizes.of(ordinal));
  const shareOf = entryShares(archive);
  const targets = new Map<string, Part>();
  const binaries = new Map<string, Part>();
  for (const { target, binaryKey, ordinal, originalSize = 0 } of archive.entries) {
    const share = shareOf?.(ordinal) ?? 0;
    addEntry(targets, target, { ordinal, originalSize, share });
    addEntry(binaries, binaryKey, { ordinal, originalSize, share });
  }
  const describe = ({ kernels, originalSize, ordinals, attributedSize }: Part): PartInfo => ({
    kernels,
    originalSize,
    storedSize: sum([...ordinals].map((ordinal) => storedSizes.get(ordinal) ?? 0)),
    attributedSize: map && Math.round(attributedSize),
  });
  return {
    file: path,
    fileSize: archive.source.size,
    tocSize: archive.toc.size,
    groupName: archive.groupName,
    family: archive.family,
    scheme: archive.schemeName,
    binaryCount: binaries.size,
    entryCount: archive.entries.length,
    kernelCount: storedSizes.size,
    originalSize: sum([...targets.values()].map(({ originalSize }) => originalSize)),
    storedSize: map ? sum(map.frames.map(({ extent }) => extent.size)) : sum(storedSizes.values()),
    extraFields: archive.toc.fields
      .map(({ name }) => name)
      .filter((name) => name === OPTIONAL_FIELD || !archive.scheme.fieldNames.includes(name)),
    targets: [...targets].map(([target, part]) => ({
      target,
      ...describe(part),
      listed: archive.targets.includes(target),
    })),
    binaries: [...binaries].map(([binaryKey, part]) => ({ binaryKey, ...describe(part) })),
    graph: map && describeGraph(map),
    findings: archive.findings,
  };
}

interface Part {
  kernels: number;
  originalSize: number;
  attributedSize: number;
  readonly ordinals: Set<number>;
}

function addEntry(
  parts: Map<string, Part>,
  name: string,
  entry: { readonly ordinal: number; readonly originalSize: number; readonly share: number },
): void {
  const part = parts.get(name) ?? { kernels: 0, originalSize: 0, attributedSize: 0, ordinals: new Set() };
  part.kernels += 1;
  part.originalSize += entry.originalSize;
  part.attributedSize += entry.share;
  part.ordinals.add(entry.ordinal);
  parts.set(name, part);
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
