import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { toHex } from "../bytes/text.ts";
import { isKpackError } from "../errors/errors.ts";
import type { Finding, FindingCode } from "../errors/finding.ts";
import { formatXxh64, loadXxh64 } from "../hash/xxh64.ts";
import type { LoaderBehaviour } from "./loader-behaviour.ts";
import { type LoaderStatus, loaderStatus, type RocmStatusName } from "./loader-status.ts";

/** What the runtime gets when it reads the kernel of an entry. */
export type Reading = KernelContent | FailedReading;

export interface KernelContent {
  /** Uncompressed, in bytes. */
  readonly size: number;
  readonly xxh64: string;
  readonly sha256: string;
  readonly hashMatches: boolean | undefined;
  readonly status: undefined;
  /** What is odd about it. */
  readonly reason: string | undefined;
}

export interface FailedReading {
  readonly status: LoaderStatus;
  readonly reason: string;
}

export function failedReading(name: RocmStatusName, reason: string): FailedReading {
  return { status: loaderStatus(name), reason };
}

/** Reads kernels as a runtime does, each stored one once: many keys may share it, and many wrappers one key. */
export class CandidateReader {
  readonly #known = new Map<Archive, Map<string, Promise<Reading>>>();

  async read(archive: Archive, entry: ArchiveEntry, signal: AbortSignal | undefined): Promise<Reading> {
    const ofArchive = this.#known.get(archive) ?? new Map<string, Promise<Reading>>();
    this.#known.set(archive, ofArchive);
    const place = `${entry.ordinal} ${entry.originalSize ?? ""}`; // what reading depends on
    const known = ofArchive.get(place);
    if (known) return await known;
    const reading = readAsRuntime(archive, entry, signal);
    ofArchive.set(place, reading);
    try {
      return await reading;
    } catch (error) {
      ofArchive.delete(place); // an abort says nothing about the kernel
      throw error;
    }
  }
}

async function readAsRuntime(
  archive: Archive,
  entry: ArchiveEntry,
  signal: AbortSignal | undefined,
): Promise<Reading> {
  const findings: Finding[] = [];
  try {
    const onFinding = (finding: Finding): void => void findings.push(finding);
    const bytes = await archive.readKernel(entry, { onFinding, signal });
    if (findings.some(({ code }) => code === "SKIPPABLE_FRAME")) {
      const reason = "a skippable frame stands in front of the kernel";
      return failedReading("KPACK_ERROR_DECOMPRESSION_FAILED", reason);
    }
    const hashMatches = await archive.hashMatches(entry.ordinal, bytes);
    const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
    return {
      size: bytes.length,
      xxh64: formatXxh64((await loadXxh64())(bytes)),
      sha256: toHex(new Uint8Array(digest)),
      hashMatches,
      status: undefined,
      reason:
        hashMatches === false
          ? "the bytes are not those that were packed; the loader does not look"
          : undefined,
    };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return failedReading(statusOfReading(error.code, archive.schemeName), error.summary);
  }
}

const HRX_KERNEL_LIMIT = 256 * 1024 * 1024;

/** Why a runtime does not take an entry whose kernel we would read. */
export async function obstacleOf(
  archive: Archive,
  entry: ArchiveEntry,
  behaviour: LoaderBehaviour,
  signal: AbortSignal | undefined,
): Promise<FailedReading | undefined> {
  const failed = (reason: string): FailedReading => failedReading("KPACK_ERROR_DECOMPRESSION_FAILED", reason);
  const { originalSize } = entry;
  if (archive.schemeName !== "none") {
    if (behaviour !== "hrx") {
      const reason = "the entry has no original_size, which the runtime takes for the kernel's size";
      return originalSize === undefined && archive.schemeName === "zstd-per-kernel"
        ? failed(reason)
        : undefined;
    }
    if (!originalSize) return failed("the entry has no original_size, or one of 0");
    return originalSize > HRX_KERNEL_LIMIT ? failed("the kernel is larger than 256 MiB") : undefined;
  }
  if (behaviour !== "hrx") return undefined;
  try {
    // HRX ignores original_size here: what the blob has counts.
    const [blob] = await archive.decompressor.storedExtents(entry.ordinal, { signal });
    if (blob?.size === 0) return failed("the kernel has 0 bytes");
    return (blob?.size ?? 0) > HRX_KERNEL_LIMIT ? failed("the kernel is larger than 256 MiB") : undefined;
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return failedReading(statusOfReading(error.code, archive.schemeName), error.summary);
  }
}

/** The status under which the runtime fails to read what we cannot read for this reason. */
export function statusOfReading(code: FindingCode, schemeName: string): RocmStatusName {
  switch (code) {
    case "ORDINAL_OUT_OF_RANGE":
      return "KPACK_ERROR_KERNEL_NOT_FOUND";
    case "LIMIT_EXCEEDED":
      return "KPACK_ERROR_OUT_OF_MEMORY";
    case "READ_FAILED":
    case "SOURCE_CHANGED":
      return "KPACK_ERROR_IO_ERROR";
    default:
      return schemeName === "none" ? "KPACK_ERROR_IO_ERROR" : "KPACK_ERROR_DECOMPRESSION_FAILED";
  }
}
