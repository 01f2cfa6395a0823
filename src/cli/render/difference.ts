import { printable } from "../../bytes/text.ts";
import { demangle } from "../../code-object/demangle.ts";
import type { ArchiveDiff, DiffReport } from "../../operations/diff.node.ts";
import {
  type ChangedFunction,
  type ChangedKernel,
  type KernelResources,
  RESOURCE_NAMES,
} from "../../operations/diff-kernels.ts";
import { formatCount, formatSize } from "./numbers.ts";
import { TEXT_WIDTH, wrapText } from "./wrap.ts";

/** Text for people about how two archives differ. */

const TITLES: Readonly<Record<keyof KernelResources, string>> = {
  vgprs: "VGPRs",
  sgprs: "SGPRs",
  agprs: "AGPRs",
  vgprSpills: "VGPR spills",
  sgprSpills: "SGPR spills",
  ldsSize: "LDS",
  scratchSize: "scratch",
};

const STATES = {
  both: "",
  added: "only in the second",
  removed: "only in the first",
  unreadable: "cannot be compared",
} as const;

/** Lines of one kind that are shown; the rest is counted. */
const SHOWN = 20;

export interface RenderDiffOptions {
  /** Show every line. */
  readonly all: boolean;
  /** Whether what the functions need was compared. */
  readonly resources: boolean;
}

/** The differences of one pair of archives, `-` for what is gone, `+` for what is new, `~` for what is changed. */
export function renderDifference(diff: ArchiveDiff, options: RenderDiffOptions): string {
  const lines: string[] = [];
  if (diff.path !== "")
    lines.push(`${printable(diff.path)}${diff.state === "both" ? "" : `: ${STATES[diff.state]}`}`);
  lines.push(...diff.lostTargets.map((target) => `target lost: ${printable(target)}`));
  lines.push(...diff.newTargets.map((target) => `target new: ${printable(target)}`));
  lines.push(
    ...shortened(
      diff.fewerKernels.map(
        ({ name, before, after }) => `fewer kernels: ${printable(name)} has ${after}, had ${before}`,
      ),
      options,
    ),
  );
  const line = (
    sign: string,
    { binaryKey, target }: { readonly binaryKey: string; readonly target: string },
  ): string => `${sign} ${printable(target)}  ${printable(binaryKey)}`;
  const size = (bytes: number | undefined): string => (bytes === undefined ? "" : `  ${formatSize(bytes)}`);
  lines.push(
    ...shortened(
      diff.removed.map((kernel) => line("-", kernel) + size(kernel.size)),
      options,
    ),
  );
  lines.push(
    ...shortened(
      diff.added.map((kernel) => line("+", kernel) + size(kernel.size)),
      options,
    ),
  );
  lines.push(
    ...shortened(
      diff.changed.map((kernel) => `${line("~", kernel)}  ${describeChange(kernel, options)}`),
      options,
    ),
  );
  return lines.join("\n");
}

/**
 * `2 kernels added, 1 removed, 3 changed, 771 the same`; undefined when trouble left nothing that could be compared, as
 * that would read like an answer.
 */
export function summarize({
  archives,
  sameArchives,
  hasTrouble,
}: Pick<DiffReport, "archives" | "sameArchives" | "hasTrouble">): string | undefined {
  const total = (count: (diff: ArchiveDiff) => number): number =>
    archives.reduce((sum, diff) => sum + count(diff), 0);
  const [added, removed] = [total((diff) => diff.added.length), total((diff) => diff.removed.length)];
  const [changed, same] = [total((diff) => diff.changed.length), total((diff) => diff.same)];
  if (hasTrouble && added + removed + changed + same + sameArchives === 0) return undefined;
  const kernels = `${formatCount(added, "kernel")} added, ${removed} removed, ${changed} changed, ${same} the same`;
  const others = sameArchives > 0 ? `; nothing differs in ${formatCount(sameArchives, "other archive")}` : "";
  return `${kernels}${others}${hasTrouble ? "; not all could be compared" : ""}`;
}

function describeChange(
  { sizeBefore, sizeAfter, functions }: ChangedKernel,
  { resources }: RenderDiffOptions,
): string {
  const sizes = describeSizes(sizeBefore, sizeAfter);
  if (functions === undefined) return resources ? `${sizes}; resources not known` : sizes;
  if (functions.length === 0) return `${sizes}; same resources`;
  return [sizes, ...functions.map(describeFunction)].join("\n");
}

function describeSizes(before: number | undefined, after: number | undefined): string {
  if (before === undefined || after === undefined) return "other bytes";
  if (before === after) return "same size, other bytes";
  return `${formatSize(before)} -> ${formatSize(after)} (${after > before ? "+" : ""}${after - before} bytes)`;
}

function describeFunction({ name, before, after }: ChangedFunction): string {
  const shown = cut(printable(demangle(name)), TEXT_WIDTH - 6);
  if (!before) return `    + ${shown}`;
  if (!after) return `    - ${shown}`;
  const changes = RESOURCE_NAMES.filter((resource) => before[resource] !== after[resource]).map(
    (resource) => `${TITLES[resource]} ${before[resource] ?? "?"} -> ${after[resource] ?? "?"}`,
  );
  return `    ~ ${shown}\n${wrapText(`      ${changes.join(", ")}`, "      ")}`;
}

function shortened(lines: readonly string[], { all }: RenderDiffOptions): readonly string[] {
  if (all || lines.length <= SHOWN + 1) return lines;
  return [...lines.slice(0, SHOWN), `  … and ${lines.length - SHOWN} more like these (--all shows them)`];
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
