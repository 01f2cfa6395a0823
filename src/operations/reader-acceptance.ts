import type { Archive } from "../archive/archive.ts";
import { extentEnd } from "../bytes/extent.ts";
import type { Finding } from "../errors/finding.ts";
import { HEADER_FIELDS_SIZE } from "../scheme/area-check.ts";
import { ZSTD_AREA_SIZE_LIMIT, ZSTD_KERNEL_COUNT_LIMIT } from "../scheme/zstd-per-kernel.ts";
import { isAboutOwnField } from "./verify-as-others.ts";

/** The four readers of other people that decide whether an archive is of use. */
export type ReaderName = "python" | "cpp-2026-02" | "cpp-2026-07" | "hrx";

/** Whether one of the other readers would accept an archive. */
export interface ReaderVerdict {
  readonly reader: ReaderName;
  /** As people call it. */
  readonly title: string;
  /** False also where that is not known. */
  readonly accepts: boolean;
  /** Why it refuses the archive, or finds nothing in it. */
  readonly reasons: readonly string[];
  /** What kept this tool from telling whether the reader accepts the archive; nothing where that is known. */
  readonly unknown: readonly string[];
  /** Targets of some of the kernels for which it finds none, although it accepts the archive. */
  readonly missedTargets: readonly string[];
}

/** What is known of the archive's kernels once all were read. */
export interface KernelFacts {
  /** By entry: whether its kernel was read, and how large it is. */
  readonly kernels: Iterable<KernelFact>;
  readonly findings: readonly Finding[];
  readonly storedCount: number;
}

/** What is known of one entry's kernel. */
export interface KernelFact {
  readonly id: string;
  /** Undefined when it was not read. */
  readonly size: number | undefined;
  readonly originalSize: number | undefined;
}

const HRX_DEPTH_LIMIT = 32;
const HRX_KERNEL_LIMIT = 256 * 1024 * 1024;
const KNOWN_SCHEMES = ["none", "zstd-per-kernel"];

const TITLES: Readonly<Record<ReaderName, string>> = {
  python: "ROCm's Python tools",
  "cpp-2026-02": "ROCm's runtime of February 2026",
  "cpp-2026-07": "ROCm's runtime since summer 2026",
  hrx: "HRX",
};

/** Which of the four readers would accept the archive, and why the others would not. */
export function judgeReaders(archive: Archive, facts: KernelFacts): readonly ReaderVerdict[] {
  const verdict = (
    reader: ReaderName,
    reasons: readonly (string | false | undefined)[],
    missedTargets: readonly string[] = [],
  ): ReaderVerdict => {
    const given = reasons.filter((reason) => typeof reason === "string");
    const unknown = given.length > 0 ? [] : unread(facts);
    const accepts = given.length === 0 && unknown.length === 0;
    const title = TITLES[reader];
    return { reader, title, accepts, reasons: given, unknown, missedTargets: accepts ? missedTargets : [] };
  };
  const unlisted = unlistedTargets(archive);
  return [
    verdict("python", pythonReasons(archive, facts)),
    verdict("cpp-2026-02", runtimeReasons(archive, facts), unlisted),
    verdict("cpp-2026-07", runtimeReasons(archive, facts), unlisted),
    verdict("hrx", hrxReasons(archive, facts)),
  ];
}

type Reasons = readonly (string | false | undefined)[];

function pythonReasons(archive: Archive, facts: KernelFacts): Reasons {
  const missing = ["format_version", "group_name", "gfx_arch_family", "gfx_arches"].filter(
    (key) => !archive.toc.presentKeys.has(key),
  );
  return [
    missing.length > 0 && `it needs the TOC keys ${missing.join(", ")}`,
    has(facts, "TRAILING_BYTES") && "bytes follow the TOC",
    has(facts, "NO_CONTENT_SIZE") && "a zstd frame does not state its content's size",
    has(facts, "SKIPPABLE_FRAME") && "a skippable frame stands in front of a kernel",
    has(facts, "MALFORMED_TEXT") && "text in the TOC is not valid UTF-8",
    unknownScheme(archive),
    broken(facts, (finding) => isWrongSize(archive, finding) || finding.code === "OVERLAP"),
  ];
}

/** The C++ reader, whose two versions differ only in how they fail. */
function runtimeReasons(archive: Archive, facts: KernelFacts): Reasons {
  const isZstd = archive.schemeName === "zstd-per-kernel";
  const unsized = findKernel(facts, (kernel) => kernel.originalSize === undefined);
  return [
    noListedTarget(archive),
    unknownScheme(archive),
    isZstd && unsized && `${unsized.id} has no original_size, which it takes for the kernel's size`,
    isZstd && facts.storedCount > ZSTD_KERNEL_COUNT_LIMIT && `more than ${ZSTD_KERNEL_COUNT_LIMIT} kernels`,
    isZstd && areaSize(archive) > ZSTD_AREA_SIZE_LIMIT && "the kernels' area is larger than 4 GiB",
    broken(facts, (finding) => (!isZstd && isWrongSize(archive, finding)) || finding.code === "OVERLAP"),
  ];
}

function hrxReasons(archive: Archive, facts: KernelFacts): Reasons {
  const isZstd = archive.schemeName === "zstd-per-kernel";
  const large = findKernel(facts, ({ size, originalSize }) => {
    const known = size ?? (isZstd ? originalSize : undefined);
    return known !== undefined && known > HRX_KERNEL_LIMIT;
  });
  const unsized = findKernel(
    facts,
    (kernel) => kernel.originalSize === undefined || kernel.originalSize === 0,
  );
  const empty = findKernel(facts, (kernel) => kernel.size === 0);
  return [
    unknownScheme(archive),
    archive.toc.depth > HRX_DEPTH_LIMIT && `the TOC nests deeper than ${HRX_DEPTH_LIMIT} levels`,
    isZstd && unsized && `${unsized.id} has no original_size, or one of 0`,
    archive.schemeName === "none" && empty && `${empty.id} has 0 bytes`,
    large && `${large.id} is larger than 256 MiB`,
    broken(
      facts,
      (finding) =>
        (!isZstd && isWrongSize(archive, finding)) ||
        (finding.code === "OVERLAP" && (finding.offset ?? 0) >= HEADER_FIELDS_SIZE),
    ),
  ];
}

function findKernel(facts: KernelFacts, isWanted: (kernel: KernelFact) => boolean): KernelFact | undefined {
  for (const kernel of facts.kernels) if (isWanted(kernel)) return kernel;
  return undefined;
}

/** The runtime looks into an archive only for targets that it lists. */
function unlistedTargets(archive: Archive): readonly string[] {
  const listed = new Set(archive.targets);
  return archive.toc.entries.targetNames.filter((target) => !listed.has(target));
}

function noListedTarget(archive: Archive): string | undefined {
  const { length } = archive.toc.entries.targetNames;
  if (length === 0 || unlistedTargets(archive).length < length) return undefined;
  const what = archive.targets.length === 0 ? "no target" : "none of the targets that its kernels are for";
  return `gfx_arches lists ${what}, so it finds no kernel`;
}

function unknownScheme(archive: Archive): string | undefined {
  return KNOWN_SCHEMES.includes(archive.schemeName)
    ? undefined
    : `it does not know the scheme ${archive.schemeName}`;
}

/** An original_size that is not the kernel's, where the kernel itself can be read. */
function isWrongSize(archive: Archive, finding: Finding): boolean {
  if (finding.code !== "SIZE_MISMATCH") return false;
  return archive.schemeName === "none" || finding.field?.endsWith(" original_size") === true;
}

/**
 * Damage that a reader meets. They look at no field of ours, compare no target with the code object's, and all but
 * Python, for which that is asked apart, take text as bytes.
 */
function broken(facts: KernelFacts, isUnseen: (finding: Finding) => boolean): string | undefined {
  const finding = facts.findings.find(
    (candidate) =>
      candidate.severity === "error" &&
      candidate.code !== "HASH_MISMATCH" &&
      candidate.code !== "TARGET_MISMATCH" &&
      candidate.code !== "MALFORMED_TEXT" &&
      !isOwnLimit(candidate) &&
      !isAboutOwnField(candidate) &&
      !isUnseen(candidate),
  );
  return finding && `a kernel cannot be read: ${finding.message}`;
}

/** Others have other limits, or none. */
function isOwnLimit({ code }: Finding): boolean {
  return code === "LIMIT_EXCEEDED";
}

function unread(facts: KernelFacts): readonly string[] {
  const finding = facts.findings.find(isOwnLimit);
  return finding ? [`a limit of this tool keeps a kernel from being read: ${finding.message}`] : [];
}

function has(facts: KernelFacts, code: Finding["code"]): boolean {
  return facts.findings.some((finding) => finding.code === code);
}

function areaSize(archive: Archive): number {
  const offset = archive.field("zstd_offset");
  const size = archive.field("zstd_size");
  return typeof offset === "number" && typeof size === "number" ? extentEnd({ offset, size }) - offset : 0;
}
