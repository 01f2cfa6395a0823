import type { Archive } from "../../archive/archive.ts";
import type { KpackError } from "../../errors/errors.ts";
import type { FailedReading } from "../../loader/read-candidate.ts";
import type { HipkMetadata } from "../../host/hipk-metadata.ts";
import type { Wrapper } from "../../host/wrappers.ts";
import type { ReaderVerdict } from "../reader-acceptance.ts";
import type { DoctorFinding } from "./doctor-finding.ts";

/** A program or library with device code, or of which the device code was moved out. */
export interface HostFacts {
  readonly path: string;
  readonly format: "elf" | "coff";
  readonly state: "fat" | "converted" | "damaged";
  readonly wrapperCount: number;
  /** Of a converted binary. */
  readonly wrappers: readonly Wrapper[];
  /** Of a converted binary: positions of wrappers that point to no metadata, for which nothing is ever found. */
  readonly lost: ReadonlySet<number>;
  /** Of a converted binary, where it can be read. */
  readonly metadata: HipkMetadata | undefined;
  /** Of a fat binary: undefined when its bundles are compressed and were not looked into. */
  readonly targets: readonly string[] | undefined;
  /** Of a fat binary that was looked into: for each wrapper the targets of its bundle. */
  readonly wrapperTargets: readonly (readonly string[])[];
  readonly findings: readonly DoctorFinding[];
}

/** An archive that was looked at, whether it can be opened or not. */
export interface ShelvedArchive {
  /** Without symbolic links. */
  readonly path: string;
  /** In bytes; 0 when the file cannot be read. */
  readonly size: number;
  readonly archive: Archive | undefined;
  readonly error: KpackError | undefined;
  /** False: its frames were not walked as the runtime does on opening, since that would read most of its bytes. */
  readonly walked: boolean;
}

/** The archives that a converted binary can reach on some GPU. */
export interface Reach {
  readonly host: HostFacts;
  readonly archives: readonly ShelvedArchive[];
  /** Where it looks, with the placeholder. */
  readonly patterns: readonly string[];
  /** Archives by the names with a target in them under which it looks for them. */
  readonly named: readonly NamedArchive[];
  /** Symbolic links where it looks that lead to no file. */
  readonly brokenLinks: readonly BrokenLink[];
}

/** An archive and a target that its name says it is for. */
export interface NamedArchive {
  readonly path: string;
  readonly target: string;
  readonly archive: ShelvedArchive;
}

export interface BrokenLink {
  readonly path: string;
  /** As the link says. */
  readonly leadsTo: string;
}

/** What an archive is, and what is wrong with it by itself. */
export interface ArchiveReport {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly groupName: string | undefined;
  readonly scheme: string | undefined;
  readonly targets: readonly string[];
  readonly entries: number;
  readonly kernels: number;
  /** Kernels of which the first bytes, or with --deep all, were looked at. */
  readonly kernelsChecked: number;
  /** False: its frames are many and small and were not walked, so that damage between them is not noticed. */
  readonly walked: boolean;
  readonly readers: readonly ReaderVerdict[];
  /** By ordinal: kernels that are known to be unreadable, and what the runtime makes of that. */
  readonly unreadable: ReadonlyMap<number, FailedReading>;
  readonly findings: readonly DoctorFinding[];
}
