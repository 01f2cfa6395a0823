import type { EntryFrames, ListedEntry } from "../../operations/list.node.ts";
import { frameNumbers } from "./graph.ts";
import { formatRatio, formatSize } from "./numbers.ts";
import { renderTable } from "./table.ts";

/** The entries of an archive as a table; with their frames where kernels share some. */
export function renderEntries(entries: readonly ListedEntry[]): string {
  const cells = new Map<EntryFrames, readonly string[]>(); // a kernel of many slices may have many entries
  const hasFrames = entries.some(({ frames }) => frames !== undefined);
  return renderTable(
    [
      { title: "ORDINAL", align: "right" },
      { title: "TARGET" },
      { title: "SIZE", align: "right" },
      { title: hasFrames ? "SHARE" : "STORED", align: "right" },
      { title: "RATIO", align: "right" },
      ...(hasFrames ? [{ title: "FRAME", align: "right" } as const, { title: "DEPENDS" }] : []),
      { title: "KEY" },
    ],
    entries.map(({ ordinal, target, originalSize, storedSize, frames, binaryKey }) => {
      const stored = frames?.attributedSize ?? storedSize;
      return [
        String(ordinal),
        target,
        originalSize === undefined ? "?" : formatSize(originalSize),
        formatSize(stored),
        originalSize === undefined ? "?" : formatRatio(stored, originalSize),
        ...(frames ? frameCells(frames, cells) : []),
        binaryKey,
      ];
    }),
  );
}

function frameCells(frames: EntryFrames, known: Map<EntryFrames, readonly string[]>): readonly string[] {
  const cells = known.get(frames) ?? [
    frameNumbers([...new Set(frames.slices.map(({ frame }) => frame))]),
    frameNumbers(frames.dependsOn),
  ];
  known.set(frames, cells);
  return cells;
}
