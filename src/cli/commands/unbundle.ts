import type { Command } from "@commander-js/extra-typings";
import { jsonOption, parseOutput, quietOption, targetsOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatSize } from "../render/numbers.ts";

const EXAMPLES = `
Each payload goes to TARGET/NAME.BUNDLE.EXT below the folder -o: NAME is the input's, BUNDLE the
index of the bundle in it, EXT hsaco for code objects, spv for SPIR-V, bc for bitcode. Host entries
are left out.

Examples:
  kpack unbundle librocsparse.so.0.1 -o kernels/
  kpack unbundle app.exe --targets gfx1100 -o kernels/`;

export function addUnbundle(program: Command, run: RunCommand): void {
  program
    .command("unbundle")
    .description("Take the code objects out of fat binaries and bundles.")
    .argument("<file...>", "fat binaries or offload bundles")
    .requiredOption("-o, --output <folder>", "folder for the code objects", parseOutput)
    .addOption(targetsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (inputs, options) => {
      await run(options, async (terminal) => {
        const { unbundle } = await import("../../operations/unbundle.node.ts");
        const { findings, onFinding } = terminal.gatherFindings();
        const files = await unbundle(inputs, options.output, {
          targets: options.targets,
          onFinding,
          onProgress: terminal.onProgress(),
          signal: terminal.signal,
        });
        terminal.endProgress();
        const size = files.reduce((sum, file) => sum + file.size, 0);
        if (terminal.json) terminal.printJson("kpack/unbundle/1", { files, findings });
        else terminal.note(`${options.output}: ${formatCount(files.length, "file")}, ${formatSize(size)}`);
        return 0;
      });
    });
}
