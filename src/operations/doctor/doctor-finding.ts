import type { FindingSeverity } from "../../errors/finding.ts";
import { type DoctorCode, kindOf } from "./finding-codes.ts";

/** Something that is wrong, or worth knowing, about an installation. */
export interface DoctorFinding {
  readonly code: DoctorCode;
  readonly severity: FindingSeverity;
  readonly title: string;
  /** The files that it is about, the first one foremost. */
  readonly files: readonly string[];
  /** What was found, one fact each. */
  readonly evidence: readonly string[];
  /** What to do, in one sentence. */
  readonly remedy: string;
}

/** A finding with the title, the severity and, unless a better one is known, the remedy of its kind. */
export function doctorFinding(
  code: DoctorCode,
  files: readonly string[],
  evidence: readonly string[],
  remedy?: string,
): DoctorFinding {
  const kind = kindOf(code);
  return { code, severity: kind.severity, title: kind.title, files, evidence, remedy: remedy ?? kind.remedy };
}

const ORDER: Readonly<Record<FindingSeverity, number>> = { error: 0, warning: 1, note: 2 };

/** The gravest first, then by code and file. */
export function sortFindings(findings: readonly DoctorFinding[]): readonly DoctorFinding[] {
  return findings.toSorted(
    (a, b) =>
      ORDER[a.severity] - ORDER[b.severity] ||
      (a.code < b.code ? -1 : a.code > b.code ? 1 : 0) ||
      ((a.files[0] ?? "") < (b.files[0] ?? "") ? -1 : 1),
  );
}
