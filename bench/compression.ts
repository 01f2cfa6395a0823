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

const PANEL_WIDTH = 340;
const PANEL_HEIGHT = 300;
const LEFT = 56;
const TOP = 56;
const GAP = 28;
const BOTTOM = 76;

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
      ["scheme", "size", "ratio", "pack", "of level 19", "kernel", "×", "first", "all kernels", "×"],
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
    plot: "Size against access time",
    x: "median time to one kernel in random order, relative to zstd-per-kernel level 3",
    y: "size, relative to zstd-per-kernel level 3",
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

// ---- the picture

interface Point {
  readonly x: number;
  readonly y: number;
  readonly label: string;
}

interface Series {
  readonly name: string;
  readonly colour: string;
  readonly shape: "circle" | "square";
  readonly points: readonly Point[];
}

interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
}

interface Range {
  readonly least: number;
  readonly most: number;
}

/** Panels side by side with the same axes. */
function scatterPlot(
  panels: readonly Panel[],
  titles: { readonly plot: string; readonly x: string; readonly y: string },
): string {
  const points = panels.flatMap(({ series }) => series.flatMap(({ points: own }) => own));
  const x = rangeOf(points.map((point) => point.x));
  const y: Range = { least: 0, most: Math.max(1.05, ...points.map((point) => point.y)) };
  const width = LEFT + panels.length * (PANEL_WIDTH + GAP);
  const height = TOP + PANEL_HEIGHT + BOTTOM;
  const parts = panels.map((panel, index) =>
    renderPanel(panel, LEFT + index * (PANEL_WIDTH + GAP), x, y, index === 0),
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escape(titles.plot)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(LEFT, 20, titles.plot, { size: 15, weight: "bold" }),
    ...parts,
    text(width / 2, TOP + PANEL_HEIGHT + 38, titles.x, { anchor: "middle" }),
    `<text x="14" y="${TOP + PANEL_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 ${TOP + PANEL_HEIGHT / 2})">${escape(titles.y)}</text>`,
    legend(panels[0]?.series ?? [], height - 14),
    "</svg>",
  ].join("\n")}\n`;
}

function renderPanel(panel: Panel, left: number, x: Range, y: Range, withLabels: boolean): string {
  const placeX = (value: number): number => left + (PANEL_WIDTH * (value - x.least)) / (x.most - x.least);
  const placeY = (value: number): number => TOP + PANEL_HEIGHT * (1 - (value - y.least) / (y.most - y.least));
  const parts = [
    text(left + PANEL_WIDTH / 2, TOP - 10, panel.title, { anchor: "middle", weight: "bold" }),
    `<rect x="${left}" y="${TOP}" width="${PANEL_WIDTH}" height="${PANEL_HEIGHT}" fill="none" stroke="#888888"/>`,
  ];
  for (const value of ticksOf(x)) {
    parts.push(line(placeX(value), TOP, placeX(value), TOP + PANEL_HEIGHT));
    parts.push(text(placeX(value), TOP + PANEL_HEIGHT + 16, String(value), { anchor: "middle", size: 11 }));
  }
  for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    parts.push(line(left, placeY(value), left + PANEL_WIDTH, placeY(value)));
    if (withLabels) {
      parts.push(text(left - 6, placeY(value) + 4, value.toFixed(1), { anchor: "end", size: 11 }));
    }
  }
  for (const { points, colour, shape } of panel.series) {
    const places = points.map((point) => ({ x: placeX(point.x), y: placeY(point.y), label: point.label }));
    for (const { x: atX, y: atY, label } of places) {
      // To the left where another point of the series stands in the way.
      const isBlocked = places.some(
        (other) => other.x > atX && other.x < atX + 60 && Math.abs(other.y - atY) < 10,
      );
      parts.push(marker(atX, atY, colour, shape));
      parts.push(
        text(atX + (isBlocked ? -9 : 9), atY + 4, label, { size: 11, anchor: isBlocked ? "end" : "start" }),
      );
    }
  }
  return parts.join("\n");
}

function legend(series: readonly Series[], y: number): string {
  return series
    .map(({ name, colour, shape }, index) => {
      const x = LEFT + 8 + index * 220;
      return `${marker(x, y - 4, colour, shape)}\n${text(x + 10, y, name)}`;
    })
    .join("\n");
}

function marker(x: number, y: number, colour: string, shape: Series["shape"]): string {
  return shape === "circle"
    ? `<circle cx="${round(x)}" cy="${round(y)}" r="5" fill="${colour}"/>`
    : `<rect x="${round(x - 4.5)}" y="${round(y - 4.5)}" width="9" height="9" fill="${colour}"/>`;
}

function line(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="#e4e4e4"/>`;
}

function text(
  x: number,
  y: number,
  content: string,
  style: {
    readonly anchor?: "start" | "middle" | "end";
    readonly size?: number;
    readonly weight?: "bold";
  } = {},
): string {
  const attributes = [
    style.anchor ? ` text-anchor="${style.anchor}"` : "",
    style.size ? ` font-size="${style.size}"` : "",
    style.weight ? ` font-weight="${style.weight}"` : "",
  ].join("");
  return `<text x="${round(x)}" y="${round(y)}"${attributes}>${escape(content)}</text>`;
}

/** Every half, from nothing to the most, with room for a label at the end. */
function rangeOf(values: readonly number[]): Range {
  return { least: 0, most: Math.max(...values) * 1.25 };
}

function ticksOf({ most }: Range): readonly number[] {
  return Array.from({ length: Math.floor(most * 2) + 1 }, (_, index) => index / 2);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
