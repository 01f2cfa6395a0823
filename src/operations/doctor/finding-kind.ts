import type { FindingSeverity } from "../../errors/finding.ts";

/** One kind of finding of `kpack doctor`. docs/findings.md says the same. */
export interface FindingKind {
  /** Stable across versions: `KP101`. */
  readonly code: string;
  readonly title: string;
  /** `error`: a program fails, or gets a wrong kernel. `warning`: it may. `note`: worth knowing. */
  readonly severity: FindingSeverity;
  readonly meaning: string;
  readonly cause: string;
  readonly remedy: string;
}
