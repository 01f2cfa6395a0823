import { type Command, Option } from "@commander-js/extra-typings";
import type { ArchiveInfo } from "../../operations/info.node.ts";
import { jsonOption, quietOption } from "../arguments.ts";
import {
  renderBinaries,
  renderFrames,
  renderGraph,
  renderParts,
  renderTargets,
  summarizeFrames,
} from "../render/graph.ts";
import { formatRatio, formatSize } from "../render/numbers.ts";
import { wrapText } from "../render/wrap.ts";
import type { RunCommand } from "../run-command.ts";

const EXAMPLES = `
Examples:
  kpack info rocsparse.kpack
  kpack info rocsparse.kpack --by binary
  kpack info rocsparse.kpack --json`;

export function addInfo(program: Command, run: RunCommand): void {
  program
    .command("info")
    .description("Show what an archive is: group, scheme, targets, sizes, frames that kernels share.")
    .argument("<archive>", "a .kpack archive")
    .addOption(
      new Option("--by <what>", "list only this: all targets, binaries, or frames").choices([
        "target",
        "binary",
        "frame",
      ] as const),
    )
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, options) => {
      await run(options, async (terminal) => {
        const { describeArchive } = await import("../../operations/info.node.ts");
        const info = await describeArchive(file, { signal: terminal.signal });
        const { by } = options;
        const status = by === "frame" && info.graph === undefined ? 1 : 0;
        if (terminal.json) {
          const { binaries, ...rest } = info;
          const withBinaries = by === "binary" || info.graph !== undefined;
          terminal.printJson("kpack/info/1", withBinaries ? { ...rest, binaries } : rest);
          return status;
        }
        for (const finding of info.findings) terminal.warn(finding);
        if (by === "target") terminal.print(renderTargets(info.targets));
        else if (by === "binary") terminal.print(renderBinaries(info.binaries));
        else if (by === "frame") {
          if (info.graph) terminal.print(renderFrames(info.graph.frames));
          else terminal.note(`${file}: the scheme ${info.scheme} stores each kernel by itself`);
        } else terminal.print(renderInfo(info));
        return status;
      });
    });
}

function renderInfo(info: ArchiveInfo): string {
  const shared = info.entryCount - info.kernelCount;
  const { graph } = info;
  const lines: readonly (readonly [string, string])[] = [
    ["file", info.file],
    ["size", `${formatSize(info.fileSize)} (table of contents: ${formatSize(info.tocSize)})`],
    ["group", info.groupName],
    ["family", info.family],
    ["scheme", info.scheme],
    ["binaries", String(info.binaryCount)],
    [
      "kernels",
      shared > 0 ? `${info.entryCount}, ${shared} of them stored once with another` : String(info.entryCount),
    ],
    [
      "uncompressed",
      `${formatSize(info.originalSize)}, stored in ${formatRatio(info.storedSize, info.originalSize)} of it`,
    ],
    ["extra fields", info.extraFields.length > 0 ? info.extraFields.join(", ") : "none"],
  ];
  if (!graph) return `${renderPairs(lines)}\n\n${renderTargets(info.targets)}`;
  const ofGraph: readonly (readonly [string, string])[] = [
    ["frames", summarizeFrames(graph)],
    ["depth", `at most ${graph.depth} to be decoded for one kernel`],
  ];
  return [renderPairs([...lines, ...ofGraph]), renderGraph(graph), renderParts(info.targets, info.binaries)]
    .filter((part) => part !== "")
    .join("\n\n");
}

function renderPairs(pairs: readonly (readonly [string, string])[]): string {
  const width = pairs.reduce((most, [name]) => Math.max(most, name.length), 0);
  const indent = " ".repeat(width + 2);
  return pairs.map(([name, value]) => wrapText(`${name.padEnd(width)}  ${value}`, indent)).join("\n");
}
