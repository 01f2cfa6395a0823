import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { HASH_FIELD_NAMES } from "../archive/kernel-hashes.ts";
import { leavesFolder } from "../archive/safe-path.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { printable } from "../bytes/text.ts";
import { type Finding, findingOrThrow, type OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import { parseTargetId } from "../target/target-id.ts";
import { type CheckedKernel, KernelCheck } from "./kernel-check.ts";
import { judgeReaders, type KernelFacts, type ReaderVerdict } from "./reader-acceptance.ts";

/** How an archive is verified. */
export interface VerifyOptions {
  /** Kernels decoded at once. @default 4 */
  readonly jobs?: number | undefined;
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
  readonly findings: readonly Finding[];
  readonly readers: readonly ReaderVerdict[];
}

/**
 * Decodes every kernel of an open archive and checks what can be checked: sizes, checksums, hashes, code objects
 * against the targets that they are listed under, extents, names, and which other readers would accept the file.
 * Findings of severity `error` mean that the archive is bad; `warning`, that it is odd but every byte can be read.
 */
export async function verifyArchive(archive: Archive, options: VerifyOptions = {}): Promise<VerifyReport> {
  return await new Verification(archive, options).run();
}

class Verification {
  readonly #archive: Archive;
  readonly #options: VerifyOptions;
  readonly #findings: Finding[] = [];
  readonly #onFinding: OnFinding = (finding) => void this.#findings.push(finding);
  #decodedSize = 0;
  #hashesChecked = 0;

  constructor(archive: Archive, options: VerifyOptions) {
    this.#archive = archive;
    this.#options = options;
  }

  async run(): Promise<VerifyReport> {
    const archive = this.#archive;
    const { signal } = this.#options;
    this.#findings.push(...archive.findings);
    this.#checkTargets();
    this.#checkFields();
    for (const entry of archive.entries) this.#checkNames(entry);
    const storedCount = await this.#try(() => archive.decompressor.kernelCount({ signal }), 0);
    const sizes = await this.#checkKernels(storedCount);
    this.#checkHashes(storedCount);
    await this.#try(
      async () => await archive.decompressor.verifyArea?.(this.#onFinding, { signal }),
      undefined,
    );
    const facts: KernelFacts = {
      kernels: [...archive.entries].map(({ id, ordinal, originalSize }) => ({
        id,
        originalSize,
        size: sizes.get(ordinal),
      })),
      findings: this.#findings,
      storedCount,
    };
    return {
      entries: archive.entries.length,
      storedKernels: storedCount,
      decodedSize: this.#decodedSize,
      hashesChecked: this.#hashesChecked,
      findings: this.#findings,
      readers: judgeReaders(archive, facts),
    };
  }

  /** Each stored kernel once, with all entries that point to it. Returns the sizes by ordinal. */
  async #checkKernels(storedCount: number): Promise<ReadonlyMap<number, number>> {
    const archive = this.#archive;
    const { signal } = this.#options;
    const byOrdinal = Map.groupBy(archive.entries, (entry) => entry.ordinal);
    const unreferenced = Array.from({ length: storedCount }, (_, ordinal) => ordinal).filter(
      (ordinal) => !byOrdinal.has(ordinal),
    );
    if (unreferenced.length > 0) {
      this.#warn(
        "UNREFERENCED_KERNEL",
        `${unreferenced.length} stored kernel(s) belong to no entry of the TOC`,
        "toc",
      );
    }
    const sizes = new Map<number, number>();
    const groups: readonly (readonly [number, readonly ArchiveEntry[]])[] = [
      ...byOrdinal,
      ...unreferenced.map((ordinal) => [ordinal, []] as const),
    ];
    let done = 0;
    const check = ([ordinal, entries]: readonly [number, readonly ArchiveEntry[]]): Promise<CheckedKernel> =>
      new KernelCheck(archive, ordinal, entries, signal).run();
    for await (const kernel of mapOrdered(groups, this.#options.jobs ?? 4, check, signal)) {
      this.#findings.push(...kernel.findings);
      if (kernel.hashChecked) this.#hashesChecked += 1;
      if (kernel.size !== undefined) sizes.set(kernel.ordinal, kernel.size);
      this.#decodedSize += kernel.size ?? 0;
      done += 1;
      this.#options.onProgress?.({ stage: "verify", done, total: groups.length, unit: "kernels" });
    }
    return sizes;
  }

  #checkHashes(storedCount: number): void {
    const { hasHashes, hashCount } = this.#archive;
    if (!hasHashes || hashCount === storedCount) return;
    const message = `the archive holds ${hashCount} hashes for ${storedCount} kernels`;
    this.#warn("WRONG_HASH_FIELD", message, "kernel_hashes");
  }

  #checkNames(entry: ArchiveEntry): void {
    if (leavesFolder(entry.binaryKey) || leavesFolder(entry.target)) {
      this.#warn(
        "UNSAFE_PATH",
        `${printable(entry.id)}: the name would lead out of a folder; "extract" writes it in a safe form`,
        entry.id,
      );
    }
    if (!parseTargetId(entry.target)) {
      this.#warn(
        "UNKNOWN_TARGET_NAME",
        `${printable(entry.id)}: ${printable(entry.target)} is no target's name`,
        entry.id,
      );
    }
    const unknown = [...entry.fields().keys()].filter((name) => name !== "type" && name !== "metadata");
    if (unknown.length > 0) {
      this.#warn(
        "UNKNOWN_FIELD",
        `${printable(entry.id)}: unknown keys ${unknown.map(printable).join(", ")}`,
        entry.id,
      );
    }
  }

  #checkTargets(): void {
    const { targets, toc } = this.#archive;
    if (!toc.presentKeys.has("gfx_arches")) return; // said when it was opened
    const used = new Set(toc.entries.targetNames);
    for (const target of used) {
      if (targets.includes(target)) continue;
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

  #warn(code: Finding["code"], message: string, field: string): void {
    this.#findings.push({ severity: "warning", code, message, file: this.#archive.source.name, field });
  }
}
