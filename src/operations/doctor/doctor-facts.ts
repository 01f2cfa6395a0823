import type { Archive } from "../../archive/archive.ts";
import type { KpackError } from "../../errors/errors.ts";
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
  /** Of a converted binary, where it can be read. */
  readonly metadata: HipkMetadata | undefined;
  /** Of a fat binary: undefined when its bundles are compressed and were not looked into. */
  readonly targets: readonly string[] | undefined;
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
}

/** The archives that a converted binary can reach on some GPU. */
export interface Reach {
  readonly host: HostFacts;
  readonly archives: readonly ShelvedArchive[];
  /** Where it looks, with the placeholder. */
  readonly patterns: readonly string[];
  /** What stands for the placeholder in names that are there. */
  readonly namedTargets: readonly string[];
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
  readonly readers: readonly ReaderVerdict[];
  readonly findings: readonly DoctorFinding[];
}
