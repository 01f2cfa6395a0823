import type { Archive } from "../../archive/archive.ts";
import type { ArchiveEntry } from "../../archive/archive-entry.ts";
import { nodeCodecs } from "../../codec/node-codecs.node.ts";
import { requireCodec } from "../../codec/codec.ts";
import { identifyPayload, readCodeObjectHeader } from "../../code-object/code-object.ts";
import { isKpackError } from "../../errors/errors.ts";
import type { Finding } from "../../errors/finding.ts";
import { type FailedReading, failedReading, statusOfReading } from "../../loader/read-candidate.ts";
import { targetDisagreement } from "../../target/target-agreement.ts";
import { judgeReaders, type KernelFact, type KernelFacts, type ReaderVerdict } from "../reader-acceptance.ts";
import { type VerifyReport, verifyArchive } from "../verify.ts";
import { LEAST_BUDGET, shareOfAll } from "./read-budget.ts";
import type { ArchiveReport, ShelvedArchive } from "./doctor-facts.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";
import { sampleKernelHeads } from "./kernel-heads.node.ts";

export interface ArchiveCheckOptions {
  /** Decode every kernel. */
  readonly deep: boolean;
  /** Of all archives that are looked at, at least 1. */
  readonly archiveCount: number;
  readonly signal: AbortSignal | undefined;
}

/** Readers that seek with 32-bit offsets fail from here on. */
const LARGE = 2 ** 31;
/** Of an archive's bytes so many are read to look at kernels. */
const BUDGET_SHARE = 0.02;

/** Looks at one archive: its TOC, the first bytes of kernels, and who can read it. */
export async function checkArchive(
  shelved: ShelvedArchive,
  options: ArchiveCheckOptions,
): Promise<ArchiveReport> {
  const { path, size, archive, error, walked } = shelved;
  if (archive === undefined) {
    const isAccess = error?.name === "AccessError";
    const finding = doctorFinding(
      isAccess ? "KP701" : "KP301",
      [path],
      [`${error?.message ?? ""} [${error?.code ?? ""}]`],
    );
    const nothing = { groupName: undefined, scheme: undefined, targets: [], readers: [], unreadable: NONE };
    return { path, size, ...nothing, entries: 0, kernels: 0, kernelsChecked: 0, walked, findings: [finding] };
  }
  const facts = await kernelCountOf(archive, options.signal);
  const checked = options.deep
    ? await checkDeeply(archive, options)
    : await checkHeads(archive, headBudget(size, options.archiveCount), options);
  const readers =
    checked.readers ?? judgeReaders(archive, await shallowFacts(archive, facts, options.signal));
  const findings = [
    ...targetFindings(archive),
    ...readerFindings(archive, readers),
    ...checked.findings,
    ...(await compressionFindings(archive, size, options.signal)),
  ];
  if (size >= LARGE) findings.push(doctorFinding("KP311", [path], [`the archive has ${size} bytes`]));
  return {
    path,
    size,
    groupName: archive.groupName,
    scheme: archive.schemeName,
    targets: archive.targets,
    entries: archive.entries.length,
    kernels: facts.storedCount,
    kernelsChecked: checked.count,
    walked,
    readers,
    unreadable: checked.unreadable,
    findings,
  };
}

const NONE: ReadonlyMap<number, FailedReading> = new Map();

function headBudget(size: number, archiveCount: number): number {
  return Math.max(size * BUDGET_SHARE + LEAST_BUDGET, shareOfAll(archiveCount));
}

interface CountedKernels {
  readonly storedCount: number;
  readonly error: Finding | undefined;
}

async function kernelCountOf(archive: Archive, signal: AbortSignal | undefined): Promise<CountedKernels> {
  try {
    return { storedCount: await archive.decompressor.kernelCount({ signal }), error: undefined };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    const { code, message } = error;
    return { storedCount: 0, error: { severity: "error", code, message } };
  }
}

/** What can be told of the kernels without decoding them: their sizes, as they are stored or as they are stated. */
async function shallowFacts(
  archive: Archive,
  { storedCount, error }: CountedKernels,
  signal: AbortSignal | undefined,
): Promise<KernelFacts> {
  const kernels: KernelFact[] = [];
  for (const entry of archive.entries) {
    const { id, originalSize } = entry;
    const size = archive.schemeName === "none" ? await blobSize(archive, entry, signal) : originalSize;
    kernels.push({ id, originalSize, size });
  }
  return { kernels, findings: error ? [...archive.findings, error] : archive.findings, storedCount };
}

/** Undefined where the entry leads to no blob. */
async function blobSize(
  archive: Archive,
  { ordinal }: ArchiveEntry,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  try {
    const [blob] = await archive.decompressor.storedExtents(ordinal, { signal });
    return blob?.size;
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return undefined;
  }
}

interface Checked {
  readonly findings: readonly DoctorFinding[];
  readonly count: number;
  readonly unreadable: ArchiveReport["unreadable"];
  readonly readers?: readonly ReaderVerdict[] | undefined;
}

async function checkHeads(archive: Archive, budget: number, options: ArchiveCheckOptions): Promise<Checked> {
  const wrong: string[] = [];
  let count = 0;
  const broken = new Set<string>();
  const unreadable: VerifyReport["unreadable"][number][] = [];
  for await (const { ordinal, entries, head, error } of sampleKernelHeads(archive, budget, options.signal)) {
    options.signal?.throwIfAborted();
    if (error) {
      broken.add(`${error.message} [${error.code}]`);
      unreadable.push({ ordinal, code: error.code, message: error.message });
    }
    if (head === undefined) continue;
    count += 1;
    for (const entry of entries) {
      const disagreement = disagreementOf(entry, head);
      if (disagreement !== undefined) wrong.push(`${entry.id}: ${disagreement}`);
    }
  }
  const path = [archive.source.name];
  const findings = [
    ...(wrong.length > 0 ? [doctorFinding("KP307", path, shorten(wrong))] : []),
    ...(broken.size > 0 ? [doctorFinding("KP313", path, shorten([...broken]))] : []),
  ];
  return { findings, count, unreadable: failuresOf(archive, unreadable) };
}

function failuresOf(archive: Archive, kernels: VerifyReport["unreadable"]): ArchiveReport["unreadable"] {
  return new Map(
    kernels.map(({ ordinal, code, message }) => [
      ordinal,
      failedReading(statusOfReading(code, archive.schemeName), message),
    ]),
  );
}

function disagreementOf(entry: ArchiveEntry, head: Uint8Array): string | undefined {
  if (head.length < 64 || identifyPayload(head) !== "code-object") return undefined;
  return targetDisagreement(readCodeObjectHeader(head).target, entry.target);
}

async function checkDeeply(archive: Archive, options: ArchiveCheckOptions): Promise<Checked> {
  const report = await verifyArchive(archive, { signal: options.signal });
  const errors = report.findings.filter(({ severity }) => severity === "error");
  const isMismatch = ({ code }: Finding): boolean => code === "TARGET_MISMATCH";
  const messages = (some: readonly Finding[]): readonly string[] =>
    shorten(some.map(({ message }) => message));
  const mismatches = errors.filter(isMismatch);
  const damages = errors.filter((finding) => !isMismatch(finding));
  const path = [archive.source.name];
  const findings = [
    ...(mismatches.length > 0 ? [doctorFinding("KP307", path, messages(mismatches))] : []),
    ...(damages.length > 0 ? [doctorFinding("KP313", path, messages(damages))] : []),
  ];
  // With damaged kernels every reader refuses something: said once, as damage.
  const readers = damages.length > 0 ? undefined : report.readers;
  const unreadable = failuresOf(archive, report.unreadable);
  return { findings, count: report.storedKernels, unreadable, readers };
}

function targetFindings(archive: Archive): readonly DoctorFinding[] {
  if (!archive.toc.presentKeys.has("gfx_arches")) return []; // no reader of ROCm finds anything: said as such
  const used = archive.toc.entries.targetNames;
  const unlisted = used.filter((target) => !archive.targets.includes(target));
  const unused = archive.targets.filter((target) => !used.includes(target));
  const path = [archive.source.name];
  return [
    ...(unlisted.length > 0 ? [doctorFinding("KP305", path, [`the TOC has ${unlisted.join(", ")}`])] : []),
    ...(unused.length > 0 ? [doctorFinding("KP306", path, [`no kernel is for ${unused.join(", ")}`])] : []),
  ];
}

function readerFindings(archive: Archive, readers: readonly ReaderVerdict[]): readonly DoctorFinding[] {
  const refusing = readers.filter(({ reasons }) => reasons.length > 0);
  if (refusing.length === 0) return [];
  const rocm = readers.filter(({ reader }) => reader !== "hrx");
  const code = rocm.every(({ reasons }) => reasons.length > 0) ? "KP301" : "KP302";
  const evidence = refusing.map(({ title, reasons }) => `${title} refuses it: ${reasons.join("; ")}`);
  return [doctorFinding(code, [archive.source.name], evidence)];
}

const SAMPLES = 8;
const SAMPLE_SIZE = 32768;
const WORTH_IT = 2 / 3;

/** Compresses the middles of some kernels. */
async function compressionFindings(
  archive: Archive,
  size: number,
  signal: AbortSignal | undefined,
): Promise<readonly DoctorFinding[]> {
  const count = archive.schemeName === "none" ? await archive.decompressor.kernelCount({ signal }) : 0;
  if (count === 0) return [];
  const zstd = requireCodec(nodeCodecs, "zstd");
  const samples = Math.max(1, Math.min(SAMPLES, count, Math.floor((size * BUDGET_SHARE) / SAMPLE_SIZE)));
  let before = 0;
  let after = 0;
  for (let sample = 0; sample < samples; sample++) {
    try {
      const [extent] = await archive.decompressor.storedExtents(Math.floor((sample * count) / samples), {
        signal,
      });
      if (extent === undefined) continue;
      const length = Math.min(SAMPLE_SIZE, extent.size);
      const offset = extent.offset + Math.floor((extent.size - length) / 2);
      const bytes = await archive.source.read(offset, length, { signal });
      before += bytes.length;
      after += (await zstd.compress(bytes, { level: 3, signal })).length;
    } catch (error) {
      if (!isKpackError(error)) throw error; // a kernel that cannot be read is no sample
    }
  }
  if (before === 0 || after > before * WORTH_IT) return [];
  const saved = Math.round(100 * (1 - after / before));
  const evidence = [`${samples} sample(s) of ${before} bytes became ${saved}% smaller`];
  return [doctorFinding("KP309", [archive.source.name], evidence)];
}

const SHOWN = 5;

function shorten(lines: readonly string[]): readonly string[] {
  return lines.length > SHOWN ? [...lines.slice(0, SHOWN), `… and ${lines.length - SHOWN} more`] : lines;
}
