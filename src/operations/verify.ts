import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { HASH_FIELD_NAMES } from "../archive/kernel-hashes.ts";
import { leavesFolder } from "../archive/safe-path.ts";
import { type Limits, withDefaultLimits } from "../bytes/limits.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { printable } from "../bytes/text.ts";
import { LimitError } from "../errors/errors.ts";
import { type Finding, findingOrThrow, type OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { KernelReaders } from "../scheme/kernel-readers.ts";
import { parseTargetId } from "../target/target-id.ts";
import { type CheckedKernel, KernelCheck, shortId } from "./kernel-check.ts";
import { judgeReaders, type KernelFacts, type ReaderVerdict } from "./reader-acceptance.ts";
import { isAboutOwnField, type OthersView, readAsOthers } from "./verify-as-others.ts";

/** How an archive is verified. */
export interface VerifyOptions {
  /** Kernels decoded at once. @default 4 */
  readonly jobs?: number | undefined;
  /** `kernelCount`: how many stored kernels and entries are gone through. Give those that the archive was opened with. */
  readonly limits?: Partial<Limits> | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What verifying an archive found. */
export interface VerifyReport {
  readonly entries: number;
  readonly storedKernels: number;
  /** Uncompressed bytes of the kernels that were decoded. */
  readonly decodedSize: number;
  /** Kernels whose bytes were compared with a hash that the archive holds. */
  readonly hashesChecked: number;
  /** Hashes that the archive holds. */
  readonly hashesHeld: number;
  /** Stored kernels that cannot be decoded, and why. */
  readonly unreadable: readonly {
    readonly ordinal: number;
    readonly code: Finding["code"];
    readonly message: string;
  }[];
  readonly findings: readonly Finding[];
  readonly readers: readonly ReaderVerdict[];
}

/**
 * Decodes every kernel of an open archive and checks what can be checked: sizes, checksums, hashes, code objects
 * against the targets that they are listed under, extents, names, and which other readers would accept the file.
 * Findings of severity `error` mean that the archive is bad; `warning`, that it is odd but every byte can be read.
 * @throws LimitError when the archive has more stored kernels or entries than `limits.kernelCount`
 */
export async function verifyArchive(archive: Archive, options: VerifyOptions = {}): Promise<VerifyReport> {
  return await new Verification(archive, options).run();
}

class Verification {
  readonly #archive: Archive;
  readonly #options: VerifyOptions;
  readonly #findings: Finding[] = [];
  readonly #onFinding: OnFinding = (finding) => void this.#findings.push(finding);
  readonly #unreadable: VerifyReport["unreadable"][number][] = [];
  #decodedSize = 0;
  #hashesChecked = 0;

  constructor(archive: Archive, options: VerifyOptions) {
    this.#archive = archive;
    this.#options = options;
  }

  async run(): Promise<VerifyReport> {
    const archive = this.#archive;
    const { signal } = this.#options;
    for (const finding of archive.findings) this.#findings.push(finding);
    this.#checkCount(archive.entries.length, "entries", "toc");
    const storedCount = await this.#try(() => archive.decompressor.kernelCount({ signal }), 0);
    this.#checkCount(storedCount, "stored kernels", "number of kernels");
    this.#checkTargets();
    this.#checkFields();
    this.#checkNames();
    const beforeKernels = this.#findings.length;
    const sizes = await this.#checkKernels(storedCount);
    this.#checkHashes(storedCount);
    await this.#try(
      async () => await archive.decompressor.verifyArea?.(this.#onFinding, { signal }),
      undefined,
    );
    const ofToc = this.#findings.slice(0, beforeKernels);
    const facts = await this.#readerFacts({ findings: this.#findings, sizes, storedCount }, ofToc);
    return {
      entries: archive.entries.length,
      storedKernels: storedCount,
      decodedSize: this.#decodedSize,
      hashesChecked: this.#hashesChecked,
      hashesHeld: archive.hashCount,
      unreadable: this.#unreadable,
      findings: this.#findings,
      readers: judgeReaders(archive, facts),
    };
  }

  /** What other readers meet: what was found here, unless that comes from fields that they do not read. */
  async #readerFacts(own: OthersView, ofToc: readonly Finding[]): Promise<KernelFacts> {
    const archive = this.#archive;
    const { jobs = 4, limits, signal } = this.#options;
    if (!own.findings.some(isAboutOwnField)) return { ...own, kernels: kernelFacts(archive, own.sizes) };
    const { findings, sizes, storedCount } = await readAsOthers(archive, { jobs, limits, signal });
    return { findings: [...ofToc, ...findings], storedCount, kernels: kernelFacts(archive, sizes) };
  }

  /** Each stored kernel once, with all entries that point to it. Returns the sizes by ordinal. */
  async #checkKernels(storedCount: number): Promise<ReadonlyMap<number, number>> {
    const archive = this.#archive;
    const { signal } = this.#options;
    const byOrdinal = Map.groupBy(archive.entries, (entry) => entry.ordinal);
    let unreferenced = storedCount;
    for (const ordinal of byOrdinal.keys()) if (ordinal < storedCount) unreferenced -= 1;
    if (unreferenced > 0) {
      this.#warn(
        "UNREFERENCED_KERNEL",
        `${unreferenced} stored kernel(s) belong to no entry of the TOC`,
        "toc",
      );
    }
    const sizes = new Map<number, number>();
    const total = byOrdinal.size + unreferenced;
    let done = 0;
    using readers = new KernelReaders(archive.decompressor);
    const check = ([ordinal, entries]: KernelGroup): Promise<CheckedKernel> =>
      readers.use((reader) => new KernelCheck(archive, ordinal, entries, signal, reader).run());
    for await (const kernel of mapOrdered(
      groupsOf(byOrdinal, storedCount),
      this.#options.jobs ?? 4,
      check,
      signal,
    )) {
      for (const finding of kernel.findings) this.#findings.push(finding);
      if (kernel.hashChecked) this.#hashesChecked += 1;
      if (kernel.size !== undefined) sizes.set(kernel.ordinal, kernel.size);
      if (kernel.failure) {
        const { code, message } = kernel.failure;
        this.#unreadable.push({ ordinal: kernel.ordinal, code, message });
      }
      this.#decodedSize += kernel.size ?? 0;
      done += 1;
      this.#options.onProgress?.({ stage: "verify", done, total, unit: "kernels" });
    }
    return sizes;
  }

  #checkHashes(storedCount: number): void {
    const { hasHashes, hashCount } = this.#archive;
    if (!hasHashes || hashCount === storedCount) return;
    const message = `the archive holds ${hashCount} hashes for ${storedCount} kernels`;
    this.#warn("WRONG_HASH_FIELD", message, "kernel_hashes");
  }

  /** Refuses what would take hours and all memory to go through, though a small sparse file may claim it. */
  #checkCount(found: number, what: string, field: string): void {
    const limit = withDefaultLimits(this.#options.limits).kernelCount;
    if (found <= limit) return;
    throw new LimitError("LIMIT_EXCEEDED", `the archive has more ${what} than are verified`, {
      file: this.#archive.source.name,
      field,
      expected: `at most ${limit} ${what}`,
      found,
      hint: "Raise the limit (option limits.kernelCount) if the archive is trusted.",
    });
  }

  #checkNames(): void {
    let binaryKey = "";
    let isUnsafe = false;
    for (const entry of this.#archive.entries) {
      if (entry.binaryKey !== binaryKey) {
        binaryKey = entry.binaryKey;
        isUnsafe = leavesFolder(binaryKey);
      }
      if (isUnsafe || leavesFolder(entry.target)) {
        const message = 'the name would lead out of a folder; "extract" writes it in a safe form';
        this.#warnOf(entry, "UNSAFE_PATH", message);
      }
      if (!parseTargetId(entry.target))
        this.#warnOf(entry, "UNKNOWN_TARGET_NAME", `${printable(entry.target)} is no target's name`);
      if (this.#archive.toc.entries.hasMore[entry.index] === 1) this.#checkOtherKeys(entry);
    }
  }

  /** The keys of an entry that few have. Their values are walked, not built: they may be as large as the TOC. */
  #checkOtherKeys(entry: ArchiveEntry): void {
    const { toc } = this.#archive;
    const fields = entry.encodedFields();
    const unknown = fields.map(({ name }) => name).filter((name) => name !== "type" && name !== "metadata");
    if (unknown.length > 0)
      this.#warnOf(entry, "UNKNOWN_FIELD", `unknown keys ${unknown.map(printable).join(", ")}`);
    try {
      for (const { name, value } of fields) {
        const position = value.byteOffset - toc.bytes.byteOffset;
        checkText(toc.readerAt(position), `${name} of ${shortId(entry)}`);
      }
    } catch (error) {
      this.#findings.push(findingOrThrow(error));
    }
  }

  #checkTargets(): void {
    const { targets, toc } = this.#archive;
    if (!toc.presentKeys.has("gfx_arches")) return; // said when it was opened
    const used = new Set(toc.entries.targetNames);
    const listed = new Set(targets);
    for (const target of used) {
      if (listed.has(target)) continue;
      this.#warn(
        "TARGET_NOT_LISTED",
        `gfx_arches lacks ${printable(target)}: ROCm's runtime never finds its kernels`,
        "gfx_arches",
      );
    }
    for (const target of targets) {
      if (used.has(target)) continue;
      this.#warn(
        "TARGET_WITHOUT_KERNELS",
        `gfx_arches lists ${printable(target)}, but no kernel is for it`,
        "gfx_arches",
      );
    }
  }

  #checkFields(): void {
    const known = new Set([...this.#archive.scheme.fieldNames, ...HASH_FIELD_NAMES]);
    const unknown = this.#archive.toc.fields
      .filter(({ name }) => !known.has(name))
      .map(({ name }) => printable(name));
    if (unknown.length > 0)
      this.#warn("UNKNOWN_FIELD", `the TOC has unknown keys: ${unknown.join(", ")}`, unknown[0] ?? "");
  }

  /** Runs a part; what is wrong with the file becomes a finding, everything else is thrown. */
  async #try<Result>(part: () => Promise<Result>, otherwise: Result): Promise<Result> {
    try {
      return await part();
    } catch (error) {
      this.#findings.push(findingOrThrow(error));
      return otherwise;
    }
  }

  #warnOf(entry: ArchiveEntry, code: Finding["code"], message: string): void {
    const id = shortId(entry);
    this.#warn(code, `${printable(id)}: ${message}`, id);
  }

  #warn(code: Finding["code"], message: string, field: string): void {
    this.#findings.push({ severity: "warning", code, message, file: this.#archive.source.name, field });
  }
}

type KernelGroup = readonly [ordinal: number, entries: readonly ArchiveEntry[]];

/** The kernels that entries point to, then the others: no list of those is made, a file may claim millions. */
function* groupsOf(
  byOrdinal: ReadonlyMap<number, readonly ArchiveEntry[]>,
  storedCount: number,
): Generator<KernelGroup> {
  yield* byOrdinal;
  for (let ordinal = 0; ordinal < storedCount; ordinal++) if (!byOrdinal.has(ordinal)) yield [ordinal, []];
}

function kernelFacts(archive: Archive, sizes: ReadonlyMap<number, number>): KernelFacts["kernels"] {
  return {
    *[Symbol.iterator]() {
      for (const { id, ordinal, originalSize } of archive.entries)
        yield { id, originalSize, size: sizes.get(ordinal) };
    },
  };
}

/** Throws where text in the value that stands next is not valid UTF-8. */
function checkText(reader: MessagePackReader, field: string): void {
  for (let left = 1; left > 0; left--) {
    const kind = reader.kind(field);
    if (kind === "map") left += 2 * reader.mapSize(field);
    else if (kind === "array") left += reader.arraySize(field);
    else if (kind === "string") reader.string(field);
    else reader.skip(field);
  }
}
