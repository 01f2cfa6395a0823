/**
 * The measurements of docs/compression.md: its tables as Markdown on stdout, and its picture.
 *
 *   node bench/compression.ts --set "NAME=PATH,PATH…" [--set …] [--save FILE] [--svg FILE]
 *   node bench/compression.ts --from FILE,FILE… [--svg FILE]
 *
 * A set is a name and what "kpack bench" takes: folders of code objects, fat binaries, archives. --save keeps the
 * figures as JSON, --from shows kept ones, so that long runs can be made one at a time.
 * --settings and --rounds are those of the library's bench().
 */
import { readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { bench, type BenchReport, type BenchRun } from "../src/operations/bench.node.ts";
import { parseBenchSettings } from "../src/operations/bench-settings.node.ts";
import { type Panel, scatterPlot, type Series } from "./scatter-plot.ts";

interface MeasuredSet {
  readonly name: string;
  readonly report: Omit<BenchReport, "inputs">;
  /** The machine's load average before and after: what else ran. */
  readonly load: readonly [number, number];
}

const { values } = parseArgs({
  options: {
    set: { type: "string", multiple: true, default: [] },
    from: { type: "string" },
    save: { type: "string" },
    svg: { type: "string" },
    settings: { type: "string" },
    rounds: { type: "string", default: "3" },
  },
});

const sets: MeasuredSet[] = (values.from?.split(",") ?? []).flatMap(
  (path) => JSON.parse(readFileSync(path, "utf8")) as MeasuredSet[],
);
for (const set of values.set) {
  const [name = "", paths = ""] = set.split("=");
  const before = loadavg()[0] ?? 0;
  const { inputs: _, ...report } = await bench({
    inputs: paths.split(","),
    settings: values.settings?.split(",").flatMap(parseBenchSettings),
    rounds: Number(values.rounds),
    onFinding: ({ message }) => console.error(message),
  });
  sets.push({ name, report, load: [before, loadavg()[0] ?? 0] });
}
if (values.save !== undefined) writeFileSync(values.save, `${JSON.stringify(sets, undefined, 2)}\n`);
if (values.svg !== undefined) writeFileSync(values.svg, picture());
for (const set of sets) console.log(`${tables(set)}\n`);

function tables({ name, report, load }: MeasuredSet): string {
  const baseline = report.runs[0];
  const level19 = report.runs.find((run) => run.name === "zstd-per-kernel:19");
  const rows = report.runs.map((run) => [
    describe(run),
    megabytes(run.size),
    run.ratio.toFixed(3),
    `${run.packSeconds.toFixed(1)} s`,
    level19 ? `${(run.packSeconds / level19.packSeconds).toFixed(2)}×` : "-",
    `${run.kernel.milliseconds.toFixed(2)} ms`,
    `${(run.kernel.milliseconds / run.kernel.baselineMilliseconds).toFixed(2)}×`,
    `${run.first.milliseconds.toFixed(1)} ms`,
    `${(run.throughput / 1e6).toFixed(0)} MB/s`,
    `${(run.all.baselineMilliseconds / run.all.milliseconds).toFixed(2)}×`,
  ]);
  const layouts = report.layouts.map(({ layout, archives, size, ratio }) => [
    layout === "all" ? "one for all" : `one per ${layout}`,
    String(archives.length),
    megabytes(size),
    ratio.toFixed(3),
  ]);
  return [
    `### ${name}`,
    "",
    `${report.kernels} different kernels of ${report.entries}, ${megabytes(report.originalSize)} uncompressed; ` +
      `${report.jobs} jobs; load average ${load[0].toFixed(1)} before and ${load[1].toFixed(1)} after.`,
    "",
    markdown(
      ["scheme", "size", "ratio", "pack", "of level 19", "kernel", "", "first", "all kernels", ""],
      rows,
    ),
    ...(report.targets.length > 1 && baseline
      ? ["", `With ${report.layoutSetting}:`, "", markdown(["archives", "number", "size", "ratio"], layouts)]
      : []),
  ].join("\n");
}

function markdown(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Size against the time to one kernel; the times relative to the baseline's, since machines differ. */
function picture(): string {
  const panels = sets.map(({ name, report }): Panel => {
    const pointsOf = (scheme: string): Series["points"] =>
      report.runs
        .filter(({ setting }) => setting.scheme === scheme)
        .map((run) => ({
          x: run.kernel.milliseconds / run.kernel.baselineMilliseconds,
          y: run.ratio,
          label: shortName(run),
        }));
    return {
      title: name,
      series: [
        {
          name: "zstd-per-kernel, by level",
          colour: "#3465a4",
          shape: "square",
          points: pointsOf("zstd-per-kernel"),
        },
        {
          name: "zstd-cross-kernel, by effort",
          colour: "#c4511a",
          shape: "circle",
          points: pointsOf("zstd-cross-kernel"),
        },
      ],
    };
  });
  return scatterPlot(panels, {
    title: "Size against access time",
    xTitle: "median time to one kernel in random order, relative to zstd-per-kernel level 3",
    yTitle: "size, relative to zstd-per-kernel level 3",
  });
}

function shortName({ setting }: BenchRun): string {
  return setting.scheme === "zstd-per-kernel" ? String(setting.level) : setting.effort;
}

function describe(run: BenchRun): string {
  return `${run.setting.scheme} ${shortName(run)}`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2)} MB`;
}
