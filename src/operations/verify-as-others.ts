import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { schemeFields } from "../archive/scheme-fields.ts";
import { HASH_FIELD_NAMES } from "../archive/kernel-hashes.ts";
import { type Limits, withDefaultLimits } from "../bytes/limits.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { type Finding, findingOrThrow } from "../errors/finding.ts";
import { KernelReaders } from "../scheme/kernel-readers.ts";
import type { KernelDecompressor } from "../scheme/scheme.ts";
import { type CheckedKernel, KernelCheck } from "./kernel-check.ts";

/** Optional TOC fields that other readers do not know, and so skip. */
const OWN_FIELDS: readonly string[] = ["zstd_frame_offsets", ...HASH_FIELD_NAMES];

/** What the entries' kernels are for a reader that knows no field of ours. */
export interface OthersView {
  readonly findings: readonly Finding[];
  /** By ordinal; kernels that cannot be read have none. */
  readonly sizes: ReadonlyMap<number, number>;
  readonly storedCount: number;
}

/** Whether a finding is about an optional field that only we write and read. */
export function isAboutOwnField({ field }: Finding): boolean {
  return OWN_FIELDS.some((name) => field === name || field?.startsWith(`${name}[`) === true);
}

/**
 * Reads all kernels of entries once more, without our fields: where those are damaged, kernels are looked for in the
 * wrong places, and what is found there says nothing about what others find.
 */
export async function readAsOthers(
  archive: Archive,
  options: {
    readonly jobs: number;
    readonly limits: Partial<Limits> | undefined;
    readonly signal: AbortSignal | undefined;
  },
): Promise<OthersView> {
  const { signal } = options;
  const findings: Finding[] = [];
  const sizes = new Map<number, number>();
  let storedCount = 0;
  try {
    const decompressor = openAsOthers(archive, options.limits);
    storedCount = await decompressor.kernelCount({ signal });
    const byOrdinal = Map.groupBy(archive.entries, ({ ordinal }) => ordinal);
    using readers = new KernelReaders(decompressor);
    const check = ([ordinal, entries]: [number, ArchiveEntry[]]): Promise<CheckedKernel> =>
      readers.use((reader) => new KernelCheck(archive, ordinal, entries, signal, reader).run());
    const kernels = mapOrdered(byOrdinal, options.jobs, check, signal);
    for await (const kernel of kernels) {
      for (const finding of kernel.findings) findings.push(finding);
      if (kernel.size !== undefined) sizes.set(kernel.ordinal, kernel.size);
    }
  } catch (error) {
    findings.push(findingOrThrow(error));
  }
  return { findings, sizes, storedCount };
}

function openAsOthers(archive: Archive, limits: Partial<Limits> | undefined): KernelDecompressor {
  const { scheme, source, toc, tocOffset } = archive;
  const fields = schemeFields(toc, source.name, tocOffset, OWN_FIELDS);
  const context = { source, tocOffset, limits: withDefaultLimits(limits), onFinding: () => undefined };
  return scheme.openDecompressor(fields, context);
}
