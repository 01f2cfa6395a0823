import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { normalizeBinaryKey } from "../archive/binary-key.ts";
import { writeArchive, type WriteSummary } from "../archive/archive-writer.ts";
import { HASH_FIELD_NAMES } from "../archive/kernel-hashes.ts";
import type { KernelToWrite } from "../archive/kernel-to-write.ts";
import { bytesEqual } from "../bytes/extent.ts";
import type { Limits } from "../bytes/limits.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { FormatError, NotFoundError } from "../errors/errors.ts";
import type { OnProgress } from "../errors/progress.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { builtInSchemes } from "../scheme/built-in-schemes.node.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import type { Sink } from "../sink/sink.ts";
import { matchesAnySelection } from "../target/target-id.ts";
import { defaultJobs } from "./jobs.node.ts";

/** What is to be changed, and how an archive is written anew. */
export interface ConvertOptions {
  /** The scheme to write. @default the archive's own, at its default settings: an archive does not state a level */
  readonly scheme?: CompressionScheme | undefined;
  /**
   * Targets to keep: `gfx90a` keeps every flag variant of it, `gfx90a:xnack-` just that one; a function is asked for
   * each target as it stands in the archive. @default all
   */
  readonly targets?: readonly string[] | ((target: string) => boolean) | undefined;
  readonly groupName?: string | undefined;
  readonly family?: string | undefined;
  readonly jobs?: number | undefined;
  /** Read the result back and compare every kernel with the original. @default false */
  readonly verify?: boolean | undefined;
  readonly shareIdentical?: boolean | undefined;
  readonly extraFields?: boolean | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes the kernels of an open archive anew, in another scheme, level or set of targets. Kernels stay as they are, the
 * TOC keeps its order, and keys that are not known keep their values. The sink is not committed.
 *
 * Damage is not carried along: a kernel that cannot be decoded, or whose size is not the TOC's, stops the work.
 *
 * @throws NotFoundError `NOTHING_FOUND` when no kernel is for the wanted targets
 */
export async function convertArchive(
  archive: Archive,
  sink: Sink,
  options: ConvertOptions = {},
): Promise<WriteSummary> {
  const jobs = options.jobs ?? defaultJobs();
  const scheme = options.scheme ?? archive.scheme;
  const groups = await inStoredOrder(archive, chosenKernels(archive, options.targets), options.signal);
  const total =
    groups.reduce((sum, [first]) => sum + (first?.originalSize ?? 0), 0) * (options.verify ? 2 : 1);
  let base = 0;
  const onProgress: OnProgress = (progress) =>
    options.onProgress?.({ ...progress, done: base + progress.done, total });
  const known = new Set([...archive.scheme.fieldNames, ...scheme.fieldNames, ...HASH_FIELD_NAMES]);
  const summary = await writeArchive(sink, decodedKernels(archive, groups, jobs, options.signal), {
    ...options,
    scheme,
    jobs,
    groupName: options.groupName ?? archive.groupName,
    family: options.family ?? archive.family,
    targets: chosenTargets(archive, groups, options.targets),
    carriedFields: archive.toc.fields
      .filter(({ name }) => !known.has(name))
      .map(({ name, start, end }) => ({ name, value: archive.toc.bytes.subarray(start, end) })),
    onProgress,
  });
  if (options.verify) {
    base = total / 2;
    const { limits, signal } = options;
    await compareWritten(sink, storedKernels(archive, groups), { scheme, jobs, limits, signal, onProgress });
  }
  return summary;
}

/** Contents of so many bytes stay in a reader's cache, in whatever order they are asked for. */
const KEPT_WHILE_READING = 64 * 1024 * 1024;

/**
 * Where kernels share frames, those of one frame come one after another, so that it is decoded once and need not be kept.
 * The new archive numbers its kernels in this order. What the reader can keep in any case stays in its own order.
 */
async function inStoredOrder(
  archive: Archive,
  groups: readonly (readonly ArchiveEntry[])[],
  signal: AbortSignal | undefined,
): Promise<readonly (readonly ArchiveEntry[])[]> {
  const size = groups.reduce((sum, [first]) => sum + (first?.originalSize ?? 0), 0);
  if (!archive.decompressor.frameOf || size <= KEPT_WHILE_READING) return groups;
  const placed: { readonly group: readonly ArchiveEntry[]; readonly offset: number }[] = [];
  for (const group of groups) {
    const [extent] = await archive.decompressor.storedExtents(group[0]?.ordinal ?? 0, { signal });
    placed.push({ group, offset: extent?.offset ?? 0 });
  }
  return placed.toSorted((a, b) => a.offset - b.offset).map(({ group }) => group);
}

/** The wanted entries, grouped by stored kernel, in ordinal order. */
function chosenKernels(
  archive: Archive,
  targets: ConvertOptions["targets"],
): readonly (readonly ArchiveEntry[])[] {
  const entries = [...archive.entries].filter(({ target }) => isChosen(target, targets));
  if (entries.length === 0 && (targets !== undefined || archive.entries.length > 0)) {
    throw new NotFoundError("NOTHING_FOUND", "the archive has no kernel for these targets", {
      file: archive.source.name,
      field: "targets",
      expected: typeof targets === "function" ? undefined : targets?.join(", "),
      found: archive.toc.entries.targetNames.join(", "),
      hint: "Choose other targets (--targets), or leave them out to keep all.",
    });
  }
  const groups = Map.groupBy(entries, (entry) => entry.ordinal);
  return [...groups].toSorted(([a], [b]) => a - b).map(([, group]) => group);
}

function isChosen(target: string, choice: ConvertOptions["targets"]): boolean {
  return typeof choice === "function" ? choice(target) : matchesAnySelection(target, choice);
}

/** `gfx_arches` as it was, without what was left out and with what it lacked. */
function chosenTargets(
  archive: Archive,
  groups: readonly (readonly ArchiveEntry[])[],
  choice: ConvertOptions["targets"],
): readonly string[] {
  const used = groups.flatMap((entries) => entries.map((entry) => entry.target));
  const listed = archive.targets.filter((target) => isChosen(target, choice));
  return [...new Set([...listed, ...used])];
}

/** Kernels in the order of the groups, decoded ahead in parallel; one that is asked for again is read from the archive again. */
async function* decodedKernels(
  archive: Archive,
  groups: readonly (readonly ArchiveEntry[])[],
  jobs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<KernelToWrite> {
  const firsts = groups.flatMap(([first]) => (first ? [first] : []));
  let index = 0;
  const reading = archive.readKernels({
    entries: firsts,
    // Compressing takes longer than decoding: more readers would only take memory and the processor's cache from it.
    jobs: Math.max(1, jobs - 1),
    reuseMemory: true,
    checkHash: true,
    signal,
  });
  for await (const { entry: first, bytes } of reading) {
    const entries = groups[index++] ?? [];
    const size = bytes.length;
    for (const { originalSize, id } of entries) {
      if (originalSize !== undefined && originalSize !== size)
        throw wrongSize(archive, id, originalSize, size);
    }
    // The writer keeps `read` to the end, so what it refers to has to be given up.
    let decoded: Uint8Array | undefined = bytes;
    yield {
      kernel: {
        size,
        read: async (options) => {
          if (!decoded) return await archive.readKernel(first, { signal: options?.signal, checkHash: true });
          const buffer = options?.buffer;
          if (!buffer || buffer.length < size) return decoded.slice();
          buffer.set(decoded);
          return buffer.subarray(0, size);
        },
      },
      entries: entries.map((entry) => ({
        binaryKey: entry.binaryKey,
        target: entry.target,
        position: entry.index,
        fields: entry.encodedFields(),
      })),
    };
    decoded = undefined; // its memory may be used for the next kernel
  }
}

/** Kernels to compare with: each is read from the archive when it is asked for. */
function storedKernels(
  archive: Archive,
  groups: readonly (readonly ArchiveEntry[])[],
): readonly KernelToWrite[] {
  return groups.flatMap((entries) => {
    const [first] = entries;
    if (!first) return [];
    const size = first.originalSize ?? 0; // old archives do not state it; reading does not need it
    return [
      {
        kernel: {
          size,
          read: async (options) => await archive.readKernel(first, { signal: options?.signal }),
        },
        entries: entries.map(({ binaryKey, target }) => ({ binaryKey, target })),
      },
    ];
  });
}

/**
 * Reads an archive back that has not got its name yet, and compares the kernel of every entry with what was to be
 * written.
 *
 * @throws FormatError `CHECKSUM_MISMATCH`
 */
export async function compareWritten(
  sink: Sink,
  kernels: Iterable<KernelToWrite>,
  options: {
    readonly scheme: CompressionScheme;
    readonly jobs: number;
    readonly limits?: Partial<Limits> | undefined;
    readonly onProgress: OnProgress;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const { scheme, jobs, limits, onProgress, signal } = options;
  await using written = await openArchive(await sink.reopen(), {
    schemes: [scheme, ...builtInSchemes],
    signal,
    ...(limits && { limits }),
  });
  const compare = async ({ kernel, entries }: KernelToWrite): Promise<number> => {
    const wanted = await kernel.read({ signal });
    for (const { binaryKey, target } of entries) {
      const found = await written.readKernel(normalizeBinaryKey(binaryKey), target, {
        signal,
        checkHash: true,
      });
      if (!bytesEqual(wanted, found)) throw readsBackOtherwise(sink.name, `${binaryKey} ${target}`);
    }
    return wanted.length;
  };
  let done = 0;
  for await (const size of mapOrdered(kernels, jobs, compare, signal)) {
    done += size;
    onProgress({ stage: "verify", done, unit: "bytes" });
  }
}

function readsBackOtherwise(file: string, field: string): FormatError {
  return new FormatError("CHECKSUM_MISMATCH", "what was written reads back as other bytes than its input", {
    file,
    field,
    hint: "Nothing was left behind. Check the memory and disk of this machine, then try again.",
  });
}

function wrongSize(archive: Archive, field: string, expected: number, found: number): FormatError {
  return new FormatError("SIZE_MISMATCH", "the kernel's size is not the one that the TOC states", {
    file: archive.source.name,
    field: `original_size of ${field}`,
    expected,
    found,
    hint: '"kpack verify" lists everything that is wrong with the archive.',
  });
}
