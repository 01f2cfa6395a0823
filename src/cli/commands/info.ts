import type { Command } from "@commander-js/extra-typings";
import { jsonOption, quietOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { formatRatio, formatSize } from "../render/numbers.ts";
import { renderTable } from "../render/table.ts";

const EXAMPLES = `
Examples:
  kpack info rocsparse.kpack
  kpack info rocsparse.kpack --json`;

export function addInfo(program: Command, run: RunCommand): void {
  program
    .command("info")
    .description("Show what an archive is: group, scheme, targets, sizes.")
    .argument("<archive>", "a .kpack archive")
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, options) => {
      await run(options, async (terminal) => {
        const { describeArchive } = await import("../../operations/info.node.ts");
        const info = await describeArchive(file, { signal: terminal.signal });
        if (terminal.json) {
          terminal.printJson("kpack/info/1", { ...info });
          return 0;
        }
        for (const finding of info.findings) terminal.warn(finding);
        const shared = info.entryCount - info.kernelCount;
        const lines: readonly (readonly [string, string])[] = [
          ["file", info.file],
          ["size", `${formatSize(info.fileSize)} (table of contents: ${formatSize(info.tocSize)})`],
          ["group", info.groupName],
          ["family", info.family],
          ["scheme", info.scheme],
          ["binaries", String(info.binaryCount)],
          [
            "kernels",
            shared > 0
              ? `${info.entryCount}, ${shared} of them stored once with another`
              : String(info.entryCount),
          ],
          [
            "uncompressed",
            `${formatSize(info.originalSize)}, stored in ${formatRatio(info.storedSize, info.originalSize)} of it`,
          ],
          ["extra fields", info.extraFields.length > 0 ? info.extraFields.join(", ") : "none"],
        ];
        terminal.print(renderPairs(lines));
        terminal.print("");
        const rows = info.targets.map((target) => [
          target.target,
          String(target.kernels),
          formatSize(target.originalSize),
          formatSize(target.storedSize),
          formatRatio(target.storedSize, target.originalSize),
          target.listed ? "" : "not in gfx_arches",
        ]);
        terminal.print(
          renderTable(
            [
              { title: "TARGET" },
              { title: "KERNELS", align: "right" },
              { title: "SIZE", align: "right" },
              { title: "STORED", align: "right" },
              { title: "RATIO", align: "right" },
              { title: "" },
            ],
            rows,
          ),
        );
        return 0;
      });
    });
}

function renderPairs(pairs: readonly (readonly [string, string])[]): string {
  const width = pairs.reduce((most, [name]) => Math.max(most, name.length), 0);
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}
