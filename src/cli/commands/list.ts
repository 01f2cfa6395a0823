import type { Command } from "@commander-js/extra-typings";
import { jsonOption, quietOption, targetsOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { renderEntries } from "../render/entries.ts";
import { formatSize } from "../render/numbers.ts";
import { renderTable } from "../render/table.ts";

const EXAMPLES = `
FILE: an archive, a fat binary, an offload bundle or a code object.

Where kernels share frames, FRAME holds the kernel, DEPENDS are the frames that it needs besides,
and SHARE is its part of all stored bytes.

Examples:
  kpack list rocsparse.kpack
  kpack list rocsparse.kpack --targets gfx1030 --json
  kpack list librocsparse.so.0.1`;

export function addList(program: Command, run: RunCommand): void {
  program
    .command("list")
    .description("List the kernels of an archive, or what a fat binary or bundle holds for GPUs.")
    .argument("<file>", "an archive, fat binary, bundle or code object")
    .addOption(targetsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, options) => {
      await run(options, async (terminal) => {
        const { listFile } = await import("../../operations/list.node.ts");
        const listing = await listFile(file, {
          targets: options.targets,
          signal: terminal.signal,
          onFinding: (finding) => {
            if (!terminal.json) terminal.warn(finding);
          },
        });
        if (terminal.json) terminal.printJson("kpack/list/1", { ...listing });
        else if (listing.kind === "archive") {
          terminal.print(renderEntries(listing.entries));
        } else {
          const rows = listing.entries.map((entry) => [
            entry.bundle === undefined ? "-" : String(entry.bundle),
            entry.indexes.length === 0 ? "-" : entry.indexes.map((index) => `#${index}`).join(" "),
            entry.target,
            entry.payload,
            formatSize(entry.size),
            entry.id,
          ]);
          terminal.print(
            renderTable(
              [
                { title: "BUNDLE", align: "right" },
                { title: "INDEX" },
                { title: "TARGET" },
                { title: "PAYLOAD" },
                { title: "SIZE", align: "right" },
                { title: "ENTRY ID" },
              ],
              rows,
            ),
          );
        }
        if (listing.entries.length > 0) return 0;
        terminal.note(
          `${file}: nothing to list${options.targets ? ` for ${options.targets.join(", ")}` : ""}`,
        );
        return 1;
      });
    });
}
