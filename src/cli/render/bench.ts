import type { BenchReport, BenchRun } from "../../operations/bench.node.ts";
import { formatCount, formatRatio, formatSize } from "./numbers.ts";
import { renderTable } from "./table.ts";
import { wrapText } from "./wrap.ts";

/** Text for people about what schemes and efforts make of their kernels. */

const LAYOUT_NAMES = {
  target: "one per target",
  family: "one per family",
  all: "one for all",
} as const;

const NOTES = [
  "RATIO: size relative to zstd-per-kernel:3. KERNEL: median time to one kernel in random order, shared",
  "dictionaries decoded before; FIRST: to the first kernel after opening; ALL: all kernels in archive",
  "order. Beside each stands its multiple of zstd-per-kernel:3's, measured in turn with it.",
].join(" ");

/** What was measured: a table of the settings and one of the ways to spread kernels over archives. */
export function renderBench(report: BenchReport): string {
  const { kernels, entries, originalSize, targets } = report;
  const shared = entries > kernels ? `, ${formatCount(kernels, "different one")}` : "";
  const title = `${formatCount(entries, "kernel")}${shared}, ${formatSize(originalSize)}, for ${targets.join(", ")}`;
  const parts = [wrapText(title), renderRuns(report.runs), wrapText(NOTES)];
  if (report.layouts.length > 0 && targets.length > 1) parts.push(renderLayouts(report));
  return parts.join("\n\n");
}

function renderRuns(runs: readonly BenchRun[]): string {
  return renderTable(
    [
      { title: "SCHEME" },
      { title: "SIZE", align: "right" },
      { title: "RATIO", align: "right" },
      { title: "PACK", align: "right" },
      { title: "KERNEL", align: "right" },
      { title: "", align: "right" },
      { title: "FIRST", align: "right" },
      { title: "", align: "right" },
      { title: "ALL", align: "right" },
      { title: "", align: "right" },
    ],
    runs.map(({ name, size, ratio, packSeconds, kernel, first, all, throughput }) => [
      name,
      formatSize(size),
      formatRatio(ratio, 1),
      `${packSeconds.toFixed(packSeconds < 10 ? 2 : 0)} s`,
      milliseconds(kernel.milliseconds),
      multiple(kernel.milliseconds, kernel.baselineMilliseconds),
      milliseconds(first.milliseconds),
      multiple(first.milliseconds, first.baselineMilliseconds),
      `${formatSize(throughput)}/s`,
      multiple(all.baselineMilliseconds, all.milliseconds),
    ]),
  );
}

function renderLayouts({ layouts, layoutSetting = "" }: BenchReport): string {
  const table = renderTable(
    [
      { title: "ARCHIVES" },
      { title: "NUMBER", align: "right" },
      { title: "SIZE", align: "right" },
      { title: "RATIO", align: "right" },
      { title: "EACH" },
    ],
    layouts.map(({ layout, archives, size, ratio }) => [
      LAYOUT_NAMES[layout],
      String(archives.length),
      formatSize(size),
      formatRatio(ratio, 1),
      layout === "all" ? "" : eachOf(archives),
    ]),
  );
  return `With ${layoutSetting}:\n${table}`;
}

/** Names and sizes as far as the line goes; `--json` has all. */
function eachOf(archives: readonly { readonly name: string; readonly size: number }[]): string {
  const shown: string[] = [];
  let length = 0;
  for (const { name, size } of archives) {
    const text = `${name} ${formatSize(size)}`;
    if (length + text.length > 48) return `${shown.join(", ")}${shown.length > 0 ? ", " : ""}…`;
    shown.push(text);
    length += text.length + 2;
  }
  return shown.join(", ");
}

function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function multiple(value: number, whole: number): string {
  return whole === 0 ? "-" : `${(value / whole).toFixed(2)}x`;
}
