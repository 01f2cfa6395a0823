import type { CoverageAnswer, CoverageRow } from "./coverage.ts";
import type { ArchiveReport, HostFacts, Reach } from "./doctor-facts.ts";
import type { DoctorFinding } from "./doctor-finding.ts";
import type { DatabaseCount } from "./kernel-databases.ts";
import type { PythonPackage } from "./python-packages.ts";
import type { IsaVerdict } from "./verdict.ts";

/** What `kpack doctor` found: its `--json` document. Sizes are bytes. */
export interface DoctorReport {
  readonly paths: readonly string[];
  readonly isas: readonly string[];
  readonly deep: boolean;
  /** Files, each once. */
  readonly files: number;
  /** More names of files that were met: links. */
  readonly links: number;
  /** Bytes of all files, and how many of them were read. */
  readonly totalSize: number;
  readonly bytesRead: number;
  readonly binaries: readonly DoctorBinary[];
  readonly archives: readonly DoctorArchive[];
  readonly coverage: readonly CoverageRow[];
  readonly packages: readonly PythonPackage[];
  readonly databases: readonly DatabaseCount[];
  readonly findings: readonly DoctorFinding[];
  /** One for each ISA that was asked about. */
  readonly verdicts: readonly IsaVerdict[];
  /** What is odd about the request. */
  readonly notes: readonly string[];
}

/** An archive that was looked at. */
export type DoctorArchive = Omit<ArchiveReport, "findings" | "unreadable">;

/** A binary with device code, or whose device code was moved out. */
export interface DoctorBinary {
  readonly path: string;
  readonly format: "elf" | "coff";
  readonly state: HostFacts["state"];
  readonly wrappers: number;
  readonly kernelName: string | undefined;
  readonly searchPaths: readonly string[];
  /** Of a fat binary whose bundles were looked into. */
  readonly targets: readonly string[] | undefined;
  /** Archives that it reaches on some GPU. */
  readonly archives: readonly string[];
}

/** What a report says of a binary. */
export function describeBinary(host: HostFacts, reaches: readonly Reach[]): DoctorBinary {
  const { path, format, state, wrapperCount, metadata, targets } = host;
  const reach = reaches.find((candidate) => candidate.host === host);
  return {
    path,
    format,
    state,
    wrappers: wrapperCount,
    kernelName: metadata?.kernelName,
    searchPaths: metadata?.searchPaths ?? [],
    targets: state === "fat" ? targets : undefined,
    archives: reach?.archives.map((archive) => archive.path) ?? [],
  };
}

/** What a report says of an archive: findings stand in one list for all. */
export function describeArchive(report: ArchiveReport): DoctorArchive {
  const { path, size, groupName, scheme, targets, entries, kernels, kernelsChecked, walked, readers } =
    report;
  return { path, size, groupName, scheme, targets, entries, kernels, kernelsChecked, walked, readers };
}

/** A row without the steps that led to it. */
export function describeRow({
  binary,
  isa,
  isas,
  wrappers,
  missing,
  missingBefore,
  archives,
}: CoverageAnswer): CoverageRow {
  return { binary, isa, isas, wrappers, missing, missingBefore, archives };
}
