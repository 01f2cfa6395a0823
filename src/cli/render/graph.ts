import type { FrameInfo, GraphInfo } from "../../operations/graph.ts";
import type { BinaryInfo, PartInfo, TargetInfo } from "../../operations/info.node.ts";
import { formatCount, formatRatio, formatSize } from "./numbers.ts";
import { type Column, renderTable } from "./table.ts";
import { TEXT_WIDTH, wrapText } from "./wrap.ts";

/** Text for people about what an archive's kernels take and which frames they share. */

/** Frames and binaries shown unless they are asked for. */
const SHOWN = 20;

const SHARE_NOTE =
  "SHARE: a dictionary's bytes are divided among the frames that name it by their decoded sizes, a frame's " +
  "among its kernels likewise, so that the shares add up to what is stored.";

/** `112: 91 of one kernel, 20 solid, 1 dictionary`. */
export function summarizeFrames({ frames }: GraphInfo): string {
  const count = (isCounted: (frame: FrameInfo) => boolean): number => frames.filter(isCounted).length;
  const parts = [
    [count(({ kernels }) => kernels.length === 1), "of one kernel"],
    [count(isSolid), "solid (of several kernels)"],
    [count(isDictionaryOnly), "dictionary only"],
    [count(({ kernels, usedBy }) => kernels.length === 0 && usedBy === 0), "unused"],
  ] as const;
  const shown = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `${frames.length}: ${shown.join(", ") || "none"}`;
}

/** Dictionaries and solid frames, the long list cut. */
export function renderGraph(graph: GraphInfo): string {
  const dictionaries = graph.frames.filter(({ usedBy }) => usedBy > 0);
  const solid = graph.frames.filter(isSolid);
  const tables: string[] = [];
  if (dictionaries.length > 0) tables.push(frameTable("DICTIONARY", dictionaries));
  if (solid.length > 0) tables.push(frameTable("SOLID FRAME", solid));
  return tables.join("\n\n");
}

function frameTable(title: string, frames: readonly FrameInfo[]): string {
  const shown = frames.length > SHOWN + 1 ? frames.slice(0, SHOWN) : frames;
  const table = renderFrames(shown, title);
  const more = frames.length - shown.length;
  return more > 0 ? `${table}\n  … and ${more} more (--by frame shows all)` : table;
}

/** Every frame, what it depends on, and the kernels in it. */
export function renderFrames(frames: readonly FrameInfo[], title = "FRAME"): string {
  const columns: readonly Column[] = [
    { title, align: "right" },
    { title: "SIZE", align: "right" },
    { title: "STORED", align: "right" },
    { title: "RATIO", align: "right" },
    { title: "USED BY", align: "right" },
    { title: "DEPENDS" },
    { title: "KERNELS" },
  ];
  const rows = frames.map(({ frame, contentSize, storedSize, usedBy, dictionaries, kernels }) => [
    String(frame),
    formatSize(contentSize),
    formatSize(storedSize),
    formatRatio(storedSize, contentSize),
    usedBy === 0 ? "-" : formatCount(usedBy, "frame"),
    frameNumbers(dictionaries),
    kernels.length === 0 ? "-" : ordinalRuns(kernels),
  ]);
  return fitted(renderTable(columns, rows));
}

/** Frames by their numbers; `-` for none. */
export function frameNumbers(frames: readonly number[]): string {
  return frames.length === 0 ? "-" : frames.join(" ");
}

/** What each target takes. */
export function renderTargets(targets: readonly TargetInfo[]): string {
  const columns: readonly Column[] = [{ title: "TARGET" }, ...partColumns(targets), { title: "" }];
  const rows = targets.map((part) => [
    part.target,
    ...partCells(part),
    part.listed ? "" : "not in gfx_arches",
  ]);
  return renderTable(columns, rows);
}

/** What each binary takes. */
export function renderBinaries(binaries: readonly BinaryInfo[]): string {
  const columns: readonly Column[] = [...partColumns(binaries), { title: "BINARY" }];
  return renderTable(
    columns,
    binaries.map((part) => [...partCells(part), part.binaryKey]),
  );
}

/** Targets, binaries if they are few, and how shared bytes are counted. */
export function renderParts(targets: readonly TargetInfo[], binaries: readonly BinaryInfo[]): string {
  const table =
    binaries.length <= SHOWN
      ? renderBinaries(binaries)
      : `${formatCount(binaries.length, "binary", "binaries")}: --by binary lists them`;
  return [renderTargets(targets), table, wrapText(SHARE_NOTE)].join("\n\n");
}

function partColumns(parts: readonly PartInfo[]): readonly Column[] {
  const hasShares = parts.some(({ attributedSize }) => attributedSize !== undefined);
  return [
    { title: "KERNELS", align: "right" },
    { title: "SIZE", align: "right" },
    { title: hasShares ? "SHARE" : "STORED", align: "right" },
    { title: "RATIO", align: "right" },
  ];
}

function partCells({ kernels, originalSize, storedSize, attributedSize }: PartInfo): readonly string[] {
  const size = attributedSize ?? storedSize;
  return [String(kernels), formatSize(originalSize), formatSize(size), formatRatio(size, originalSize)];
}

function isSolid({ kernels }: FrameInfo): boolean {
  return kernels.length > 1;
}

function isDictionaryOnly({ kernels, usedBy }: FrameInfo): boolean {
  return kernels.length === 0 && usedBy > 0;
}

/** `0-3 8 12-14`. */
function ordinalRuns(ordinals: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const ordinal of ordinals) {
    const last = runs.at(-1);
    if (last && last[1] === ordinal - 1) last[1] = ordinal;
    else runs.push([ordinal, ordinal]);
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(" ");
}

/** Lists of ordinals at the ends of lines are cut where the text ends. */
function fitted(table: string): string {
  return table
    .split("\n")
    .map((line) => (line.length <= TEXT_WIDTH ? line : `${line.slice(0, TEXT_WIDTH - 1)}…`))
    .join("\n");
}
