import { printable } from "../../bytes/text.ts";
import { demangle } from "../../code-object/demangle.ts";
import type { ArchiveDiff } from "../../operations/diff.node.ts";
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
      diff.changed.map((kernel) => `${line("~", kernel)}  ${describeChange(kernel)}`),
      options,
    ),
  );
  return lines.join("\n");
}

/** `2 kernels added, 1 removed, 3 changed, 771 the same`. */
export function summarize(diffs: readonly ArchiveDiff[]): string {
  const total = (list: (diff: ArchiveDiff) => number): number =>
    diffs.reduce((sum, diff) => sum + list(diff), 0);
  const parts = [
    `${formatCount(
      total(({ added }) => added.length),
      "kernel",
    )} added`,
    `${total(({ removed }) => removed.length)} removed`,
    `${total(({ changed }) => changed.length)} changed`,
    `${total(({ same }) => same)} the same`,
  ];
  return parts.join(", ");
}

function describeChange({ sizeBefore, sizeAfter, functions }: ChangedKernel): string {
  const sizes =
    sizeBefore !== undefined && sizeAfter !== undefined && sizeBefore !== sizeAfter
      ? `${formatSize(sizeBefore)} -> ${formatSize(sizeAfter)} (${sizeAfter > sizeBefore ? "+" : ""}${sizeAfter - sizeBefore} bytes)`
      : "same size, other bytes";
  if (functions === undefined) return sizes;
  if (functions.length === 0) return `${sizes}; same resources`;
  return [sizes, ...functions.map(describeFunction)].join("\n");
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
