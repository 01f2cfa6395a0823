import type { ArchiveSearch, FoundArchive } from "./archive-search.ts";
import { compatibleTargets } from "./isa.ts";

/** An archive that may have the kernel for a target that fits the agent. */
export interface Candidate {
  readonly isa: string;
  readonly target: string;
  readonly found: FoundArchive;
}

/**
 * The candidates in the order in which they are tried. ROCm's loader asks `gfx_arches` whether an archive has a
 * target; HRX asks the TOC, and ranks the targets of all ISAs in one list, each once.
 */
export function candidatesOf(search: ArchiveSearch): readonly Candidate[] {
  const isHrx = search.behaviour === "hrx";
  const targetsOf = (found: FoundArchive): readonly string[] =>
    isHrx ? found.archive.toc.entries.targetNames : found.archive.targets;
  const ranked: Candidate[] = [];
  const seen = new Set<string>();
  for (const isa of search.isas) {
    for (const target of compatibleTargets(isa)) {
      if (isHrx && seen.has(target)) continue;
      seen.add(target);
      for (const found of search.archives) {
        if (targetsOf(found).includes(target)) ranked.push({ isa, target, found });
      }
    }
  }
  return ranked;
}
