import { type Limits, withDefaultLimits } from "../bytes/limits.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnProgress } from "../errors/progress.ts";
import type { BlobArea, CompressionScheme } from "../scheme/scheme.ts";
import type { Sink } from "../sink/sink.ts";
import type { EncodedField } from "./archive-entry.ts";
import { normalizeBinaryKey } from "./binary-key.ts";
import { encodeHeader, HEADER_SIZE, TOC_OFFSET_POSITION } from "./header.ts";
import type { KernelToWrite } from "./kernel-to-write.ts";
import { KernelHashes } from "./kernel-hashes.ts";
import { PreparedKernels } from "./prepared-kernels.ts";
import { encodeToc, type NewEntry } from "./toc-encode.ts";

/** What an archive is called, and how it is written. */
export interface WriteArchiveOptions {
  readonly groupName: string;
  readonly family: string;
  readonly scheme: CompressionScheme;
  /** `gfx_arches`. @default the targets of the entries, in the order in which they first come */
  readonly targets?: readonly string[] | undefined;
  /** How many kernels are compressed at once. The bytes written do not depend on it. @default 4 */
  readonly jobs?: number | undefined;
  /** Store identical kernels once, under one ordinal. @default true */
  readonly shareIdentical?: boolean | undefined;
  /** Write the fields that the format's first definition lacks: frame offsets and hashes. @default true */
  readonly extraFields?: boolean | undefined;
  /** Further TOC fields, encoded, for a rewrite that keeps what it does not know. */
  readonly carriedFields?: readonly EncodedField[] | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What an archive that was written holds. */
export interface WriteSummary {
  readonly entries: number;
  /** Kernels stored: entries that share one count once. */
  readonly kernels: number;
  /** Uncompressed bytes of all entries' kernels. */
  readonly originalSize: number;
  /** Bytes of the archive. */
  readonly archiveSize: number;
  readonly targets: readonly string[];
}

/**
 * Writes an archive to a sink. Kernels are pulled as they are needed: at most a few more than `jobs` are in memory.
 * The sink is not committed; that is left to the caller, who may want to check the result first.
 *
 * @throws FormatError `CONFLICTING_KERNELS` when two kernels claim the same binary key and target
 * @throws LimitError `READER_LIMIT` when ROCm's readers would refuse the result
 * @example
 * ```ts
 * import { memorySink, none, writeArchive } from "rocm-kpack";
 * const bytes = new Uint8Array(64);
 * const sink = memorySink();
 * await writeArchive(
 *   sink,
 *   [{ kernel: { size: 64, read: async () => bytes }, entries: [{ binaryKey: "lib/a.so#0", target: "gfx942" }] }],
 *   { groupName: "example", family: "gfx94X", scheme: none },
 * );
 * await sink.commit();
 * ```
 */
export async function writeArchive(
  sink: Sink,
  kernels: Iterable<KernelToWrite> | AsyncIterable<KernelToWrite>,
  options: WriteArchiveOptions,
): Promise<WriteSummary> {
  const { signal } = options;
  const jobs = options.jobs ?? 4;
  if (!Number.isInteger(jobs) || jobs < 1)
    throw new RangeError(`jobs must be a positive integer, got ${jobs}`);
  if (sink.position !== 0) throw new RangeError("an archive must begin at the start of its sink");
  const extraFields = options.extraFields ?? true;
  const limits = withDefaultLimits(options.limits);
  const compressor = options.scheme.createCompressor({ extraFields, jobs, limits });
  const entries = new NewEntries();
  await sink.write(encodeHeader(0));
  const prepared = new PreparedKernels(kernels, compressor, {
    jobs,
    limits,
    shareIdentical: options.shareIdentical ?? true,
    withHashes: extraFields,
    onEntries: (kernel, ordinal) => entries.add(kernel, ordinal),
    onProgress: options.onProgress,
    signal,
  });
  const schemeFields = await compressor.finalize(prepared, new SinkArea(sink), {
    signal,
    onProgress: options.onProgress,
  });
  await prepared.finish();
  signal?.throwIfAborted(); // a simple scheme may not have looked since its last kernel
  const tocOffset = sink.position;
  const targets = options.targets ?? entries.targets;
  await sink.write(
    encodeToc({
      groupName: options.groupName,
      family: options.family,
      targets,
      entries: entries.sorted(),
      schemeName: options.scheme.name,
      schemeFields,
      extraFields: extraFields ? KernelHashes.fields(prepared.hashes) : {},
      carriedFields: options.carriedFields ?? [],
    }),
  );
  await sink.patch(
    TOC_OFFSET_POSITION,
    encodeHeader(tocOffset).subarray(TOC_OFFSET_POSITION, TOC_OFFSET_POSITION + 8),
  );
  return {
    entries: entries.count,
    kernels: prepared.kernelCount,
    originalSize: entries.originalSize,
    archiveSize: sink.position,
    targets,
  };
}

/** The sink, as a scheme sees it: from the end of the header on. */
class SinkArea implements BlobArea {
  readonly start = HEADER_SIZE;
  readonly #sink: Sink;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  get position(): number {
    return this.#sink.position;
  }

  async write(bytes: Uint8Array): Promise<{ readonly offset: number; readonly size: number }> {
    const offset = this.#sink.position;
    await this.#sink.write(bytes);
    return { offset, size: bytes.length };
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (offset < this.start) throw new RangeError("a scheme may not write into the header");
    await this.#sink.patch(offset, bytes);
  }
}

/** Collects the entries of the new TOC and refuses a second one for the same binary and target. */
class NewEntries {
  readonly #entries: NewEntry[] = [];
  readonly #seen = new Map<string, Set<string>>();
  readonly #targets = new Set<string>();
  originalSize = 0;

  get count(): number {
    return this.#entries.length;
  }

  get targets(): readonly string[] {
    return [...this.#targets];
  }

  add(kernel: KernelToWrite, ordinal: number): void {
    for (const entry of kernel.entries) {
      const binaryKey = normalizeBinaryKey(entry.binaryKey);
      const targets = this.#seen.get(binaryKey) ?? new Set();
      if (targets.has(entry.target)) {
        throw new FormatError("CONFLICTING_KERNELS", "two kernels have the same binary key and target", {
          field: `${binaryKey} ${entry.target}`,
          hint: "Pack the inputs into archives of their own, or give them other keys by choosing another --root.",
        });
      }
      this.#seen.set(binaryKey, targets.add(entry.target));
      this.#targets.add(entry.target);
      this.originalSize += kernel.kernel.size;
      this.#entries.push({
        binaryKey,
        target: entry.target,
        ordinal,
        originalSize: kernel.kernel.size,
        position: entry.position ?? this.#entries.length,
        fields: entry.fields ?? [],
      });
    }
  }

  sorted(): readonly NewEntry[] {
    return this.#entries.toSorted((a, b) => a.position - b.position);
  }
}
