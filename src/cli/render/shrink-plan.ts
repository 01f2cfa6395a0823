import { printable } from "../../bytes/text.ts";
import type { ShrinkItem, ShrinkPlan } from "../../operations/shrink-plan.node.ts";
import { formatCount, formatRatio, formatSize } from "./numbers.ts";
import { renderTable } from "./table.ts";
import { TEXT_WIDTH, wrapText } from "./wrap.ts";

/** What a copy will hold and what not, before it is made. */

/** Archives that are named one by one; the rest is counted. */
const SHOWN = 20;

export function renderPlan(plan: ShrinkPlan): string {
  const { shares, items, sizeBefore, sizeAfter } = plan;
  const rows = shares.map(({ target, stays, files, kernels, size }) => [
    target ?? "all others",
    stays ? "stays" : "goes",
    files === 0 ? "-" : String(files),
    kernels === 0 ? "-" : String(kernels),
    formatSize(size),
  ]);
  const table = renderTable(
    [
      { title: "TARGET" },
      { title: "" },
      { title: "FILES", align: "right" },
      { title: "KERNELS", align: "right" },
      { title: "SIZE", align: "right" },
    ],
    rows,
  );
  const archives = items.filter(({ kind }) => kind === "archive");
  const lines = archives.slice(0, SHOWN).map(describeArchive);
  if (archives.length > SHOWN) lines.push(`… and ${formatCount(archives.length - SHOWN, "more archive")}`);
  const before = `${formatSize(sizeBefore)} before`;
  const total =
    sizeAfter === undefined
      ? `${before}; the size after cannot be told before archives are compressed anew`
      : `${before}, about ${formatSize(sizeAfter)} after (${formatRatio(sizeAfter, sizeBefore)})`;
  return [table, ...(lines.length > 0 ? [lines.join("\n")] : []), total].join("\n\n");
}

export function renderResult(output: string, plan: ShrinkPlan, sizeAfter: number): string {
  return `${printable(output)}: ${formatSize(sizeAfter)}, ${formatRatio(sizeAfter, plan.sizeBefore)} of ${formatSize(plan.sizeBefore)}`;
}

/** As `kpack/shrink/1` has it. */
export function planToJson(plan: ShrinkPlan, keep: readonly string[]): Readonly<Record<string, unknown>> {
  return {
    keep,
    sizeBefore: plan.sizeBefore,
    sizeAfter: plan.sizeAfter,
    targets: plan.shares.map(({ target = null, ...share }) => ({ target, ...share })),
    items: plan.items.map(({ kind, action, path, size, mode, linkTarget, targets, droppedTargets }) => {
      const octal = (mode & 0o7777).toString(8).padStart(4, "0");
      return { kind, action, path, size, mode: octal, linkTarget, targets, droppedTargets };
    }),
  };
}

function describeArchive({ path, action, size, droppedTargets }: ShrinkItem): string {
  const what =
    action === "drop"
      ? "goes"
      : action === "copy"
        ? "stays as it is"
        : droppedTargets.length > 0
          ? `without ${droppedTargets.join(", ")}`
          : "written anew";
  const head = `${printable(path)} (${formatSize(size)}):`;
  // The path is kept whole; only what follows it is broken.
  const [first = "", ...others] = wrapText(`  ${printable(what)}`, "  ").split("\n");
  const isShort = others.length === 0 && head.length + first.length - 1 <= TEXT_WIDTH;
  return isShort ? `${head} ${first.trim()}` : [head, first, ...others].join("\n");
}
