import { type Limits, withDefaultLimits } from "../bytes/limits.ts";
import { FormatError, LimitError, NotFoundError } from "../errors/errors.ts";
import type { Finding, OnFinding } from "../errors/finding.ts";
import { formatXxh64, loadXxh64 } from "../hash/xxh64.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import type { CanDecompress } from "../scheme/kernel-readers.ts";
import {
  type CompressionScheme,
  findScheme,
  type KernelDecompressor,
  type KernelReader,
} from "../scheme/scheme.ts";
import type { Source } from "../source/source.ts";
import { type ArchiveEntry, EntryList } from "./archive-entry.ts";
import { decodeHeader, HEADER_SIZE } from "./header.ts";
import { KernelHashes } from "./kernel-hashes.ts";
import { readAhead } from "./read-ahead.ts";
import { schemeFields } from "./scheme-fields.ts";
import { findBinary, type Toc } from "./toc.ts";
import { decodeToc } from "./toc-decode.ts";

/** How an archive is opened: the schemes it may have, limits, where oddities go. */
export interface OpenArchiveOptions {
  /** The schemes that may occur. `rocm-kpack/node` fills in the built-in ones. */
  readonly schemes: readonly CompressionScheme[];
  readonly limits?: Partial<Limits> | undefined;
  /** Receives oddities that do not stop the reading; they are also in {@link Archive.findings}. */
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How one kernel is read. */
export interface ReadKernelOptions {
  /** Compare with the hash that the archive holds, where it holds one. @default false */
  readonly checkHash?: boolean | undefined;
  /** Receives what is odd about the stored bytes though they can be read. */
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How many kernels are read one after another. */
export interface ReadKernelsOptions extends ReadKernelOptions {
  /**
   * How many kernels are read and decoded at once; where kernels share frames up to three times as many, since several
   * wait for one frame. @default 4, or 3 where kernels share frames or memory is used again
   */
  readonly jobs?: number | undefined;
  /**
   * Decode into memory that is used again: about twice as fast where kernels are large. The bytes of a kernel are then
   * valid only until the next one is asked for; copy what is kept. @default false
   */
  readonly reuseMemory?: boolean | undefined;
  /** Which entries, in which order. @default all, in TOC order */
  readonly entries?: Iterable<ArchiveEntry> | undefined;
}

/**
 * Opens a .kpack archive. Reads the header and the table of contents, nothing else.
 * The archive takes the source over: it is disposed of with the archive, or at once when opening fails.
 *
 * @throws FormatError when it is no archive or its TOC is damaged
 * @throws LimitError when the TOC is larger than `limits.tocSize`
 * @example
 * ```ts
 * import { openArchive, openFile } from "rocm-kpack/node";
 * async function main(path: string): Promise<void> {
 *   await using archive = await openArchive(await openFile(path));
 *   for (const entry of archive.entries) console.log(entry.binaryKey, entry.target, entry.originalSize);
 *   const kernel = await archive.readKernel("lib/librocsparse.so.0.1#0", "gfx1030");
 *   console.log(kernel.length);
 * }
 * ```
 */
export async function openArchive(source: Source, options: OpenArchiveOptions): Promise<Archive> {
  try {
    return await readArchive(source, options);
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}

async function readArchive(source: Source, options: OpenArchiveOptions): Promise<Archive> {
  const { signal } = options;
  const limits = withDefaultLimits(options.limits);
  const head = await source.read(0, Math.min(HEADER_SIZE, source.size), { signal });
  const tocOffset = decodeHeader(head, source);
  const tocSize = source.size - tocOffset;
  if (tocSize > limits.tocSize) {
    throw new LimitError("LIMIT_EXCEEDED", "the table of contents is larger than the limit", {
      file: source.name,
      field: "TOC offset",
      offset: tocOffset,
      expected: `at most ${limits.tocSize} bytes`,
      found: tocSize,
      hint: "Raise the limit (option limits.tocSize) if the archive is trusted.",
    });
  }
  const schemeNames = options.schemes.map(({ name }) => name);
  const place = { file: source.name, tocOffset, schemeNames };
  const toc = decodeToc(await source.read(tocOffset, tocSize, { signal }), place);
  return new Archive(source, tocOffset, toc, limits, options);
}

/** An open .kpack archive. Made by {@link openArchive}. */
export class Archive implements AsyncDisposable {
  readonly source: Source;
  /** Absolute offset of the table of contents in bytes. */
  readonly tocOffset: number;
  readonly toc: Toc;
  readonly scheme: CompressionScheme;
  readonly decompressor: KernelDecompressor;
  /** Oddities met on opening. */
  readonly findings: readonly Finding[];
  /** All entries in TOC order. They are made when they are asked for. */
  readonly entries: EntryList;
  readonly #hashes: KernelHashes | undefined;

  /** @internal */
  constructor(source: Source, tocOffset: number, toc: Toc, limits: Limits, options: OpenArchiveOptions) {
    const findings: Finding[] = [];
    const onFinding = (finding: Finding): void => {
      findings.push(finding);
      options.onFinding?.(finding);
    };
    this.source = source;
    this.tocOffset = tocOffset;
    this.toc = toc;
    this.findings = findings;
    this.entries = new EntryList(toc);
    reportOddities(toc, tocOffset, source, onFinding);
    this.scheme = findScheme(options.schemes, this.schemeName, { file: source.name });
    const fields = schemeFields(toc, source.name, tocOffset);
    this.decompressor = this.scheme.openDecompressor(fields, { source, tocOffset, limits, onFinding });
    this.#hashes = KernelHashes.open(fields, source.name, onFinding);
  }

  /** The TOC's `group_name`; empty where an archive lacks it. */
  get groupName(): string {
    return this.toc.groupName ?? "";
  }

  /** The TOC's `gfx_arch_family`; empty where an archive lacks it. */
  get family(): string {
    return this.toc.family ?? "";
  }

  /** The TOC's `gfx_arches`: what ROCm's runtime believes to be in the archive. */
  get targets(): readonly string[] {
    return this.toc.targets ?? [];
  }

  get schemeName(): string {
    return this.toc.schemeName ?? "none";
  }

  /** The entry for a binary key and target, both spelled as in the archive, or undefined. */
  find(binaryKey: string, target: string): ArchiveEntry | undefined {
    const binary = findBinary(this.toc, binaryKey);
    return binary < 0 ? undefined : this.entries.ofBinary(binary).find((entry) => entry.target === target);
  }

  /**
   * One kernel's bytes, which the caller must not change. Reads the bytes of that kernel and nothing else.
   * @throws NotFoundError `KERNEL_NOT_FOUND`
   * @throws FormatError when the stored bytes are damaged
   */
  async readKernel(binaryKey: string, target: string, options?: ReadKernelOptions): Promise<Uint8Array>;
  async readKernel(entry: ArchiveEntry, options?: ReadKernelOptions): Promise<Uint8Array>;
  async readKernel(
    first: string | ArchiveEntry,
    second?: string | ReadKernelOptions,
    third?: ReadKernelOptions,
  ): Promise<Uint8Array> {
    if (typeof first !== "string") return await this.#read(first, typeof second === "object" ? second : {});
    const target = typeof second === "string" ? second : "";
    const entry = this.find(first, target);
    if (entry) return await this.#read(entry, third ?? {});
    throw this.#kernelNotFound(first, target);
  }

  /**
   * Kernels one after another in the order of `entries`, some of them decoded ahead.
   *
   * @example
   * ```ts
   * import type { Archive } from "rocm-kpack";
   * async function sizes(archive: Archive): Promise<number> {
   *   let size = 0;
   *   for await (const { bytes } of archive.readKernels({ reuseMemory: true })) size += bytes.length;
   *   return size;
   * }
   * ```
   */
  async *readKernels(
    options: ReadKernelsOptions = {},
  ): AsyncGenerator<{ readonly entry: ArchiveEntry; readonly bytes: Uint8Array }> {
    const { entries = this.entries } = options;
    const read = (entry: ArchiveEntry, reader?: KernelReader): Promise<Uint8Array> =>
      this.#read(entry, options, reader);
    yield* readAhead(this.decompressor, entries, read, options);
  }

  /** The hash that the archive holds of the kernel with this ordinal: XXH64 in hexadecimal, or undefined. */
  kernelHash(ordinal: number): string | undefined {
    const hash = this.#hashes?.get(ordinal);
    return hash === undefined ? undefined : formatXxh64(hash);
  }

  /** Whether the archive holds hashes of its kernels that are understood here. */
  get hasHashes(): boolean {
    return this.#hashes !== undefined;
  }

  /** How many stored kernels it holds a hash of. */
  get hashCount(): number {
    return this.#hashes?.count ?? 0;
  }

  /** Whether bytes are those of the kernel with this ordinal, by the archive's hash; undefined where it holds none. */
  async hashMatches(ordinal: number, bytes: Uint8Array): Promise<boolean | undefined> {
    const wanted = this.#hashes?.get(ordinal);
    return wanted === undefined ? undefined : (await loadXxh64())(bytes) === wanted;
  }

  /** A TOC field that is none of the format's own, decoded; undefined where there is none. */
  field(name: string): MessagePackValue | undefined {
    return schemeFields(this.toc, this.source.name, this.tocOffset).get(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.decompressor.close?.();
    await this.source[Symbol.asyncDispose]();
  }

  async #read(
    entry: ArchiveEntry,
    options: ReadKernelOptions,
    reader: CanDecompress = this.decompressor,
  ): Promise<Uint8Array> {
    const bytes = await reader.decompressKernel(entry.ordinal, {
      expectedSize: entry.originalSize,
      id: entry.id,
      onFinding: options.onFinding,
      signal: options.signal,
    });
    const wanted = options.checkHash ? this.#hashes?.get(entry.ordinal) : undefined;
    if (wanted === undefined) return bytes;
    const found = (await loadXxh64())(bytes);
    if (found === wanted) return bytes;
    throw new FormatError("CHECKSUM_MISMATCH", "the kernel's bytes are not those that were packed", {
      file: this.source.name,
      field: entry.id,
      expected: `XXH64 ${formatXxh64(wanted)}`,
      found: formatXxh64(found),
      hint: "The file was damaged after it was written: get a fresh copy.",
    });
  }

  #kernelNotFound(binaryKey: string, target: string): NotFoundError {
    const binary = findBinary(this.toc, binaryKey);
    const own = binary < 0 ? [] : this.entries.ofBinary(binary).map((entry) => entry.target);
    const has = own.length > 0 ? own.slice(0, 12) : undefined; // a key may have no entries
    const { targetNames, binaries } = this.toc.entries;
    const keyCount = binaries.firstEntries.filter(
      (first, index, all) => index < binaries.count && first < (all[index + 1] ?? first),
    ).length;
    return new NotFoundError("KERNEL_NOT_FOUND", "the archive has no such kernel", {
      file: this.source.name,
      field: target === "" ? binaryKey : `${binaryKey} for ${target}`,
      expected: has ? `one of the targets ${has.join(", ")}` : undefined,
      found: has && target !== "" ? target : undefined,
      hint: has
        ? undefined
        : `It has no binary ${binaryKey}; "kpack list" shows its ${keyCount} keys (targets: ${targetNames.slice(0, 8).join(", ")}).`,
    });
  }
}

/** What is odd about a TOC that can be read all the same. */
function reportOddities(toc: Toc, tocOffset: number, source: Source, onFinding: OnFinding): void {
  const file = source.name;
  if (toc.formatVersion !== undefined && toc.formatVersion !== 1) {
    const message = `the TOC calls itself version ${toc.formatVersion}, the header says 1`;
    onFinding({ severity: "warning", code: "FORMAT_VERSION_FIELD", message, file, field: "format_version" });
  }
  for (const key of ["format_version", "group_name", "gfx_arch_family", "gfx_arches", "compression_scheme"]) {
    if (toc.presentKeys.has(key)) continue;
    const effect = key === "compression_scheme" ? ", so the kernels are taken as uncompressed" : "";
    onFinding({
      severity: "warning",
      code: "MISSING_FIELD",
      message: `the TOC has no ${key}${effect}`,
      file,
      field: key,
    });
  }
  const trailing = source.size - tocOffset - toc.size;
  if (trailing > 0) {
    const offset = tocOffset + toc.size;
    onFinding({
      severity: "warning",
      code: "TRAILING_BYTES",
      message: `${trailing} bytes follow the TOC`,
      file,
      offset,
    });
  }
}
