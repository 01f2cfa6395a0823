import type { Command } from "@commander-js/extra-typings";
import { parseName, parseOutput, jobsOption, jsonOption, quietOption, targetsOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatRatio, formatSize } from "../render/numbers.ts";
import { effortOption, levelOption, newSchemeOf, newSchemeOption, plannerOption } from "../schemes.ts";

const EXAMPLES = `
Kernels stay as they are, byte for byte; TOC keys that are not known keep their values.

Without --scheme the archive keeps its scheme, but --level alone asks for zstd-per-kernel, --effort
or --planner for zstd-cross-kernel. An archive does not say at which level or effort it was written,
so these cannot be kept: they are the defaults unless they are given.

Examples:
  kpack convert torch.kpack -o torch-small.kpack --level 19
  kpack convert torch.kpack -o torch_gfx90a.kpack --targets gfx90a
  kpack convert small.kpack -o runtime.kpack --scheme zstd-per-kernel
  kpack convert torch.kpack -o torch-plain.kpack --scheme none --no-extra-fields`;

export function addConvert(program: Command, run: RunCommand): void {
  program
    .command("convert")
    .description("Rewrite an archive in another scheme, level or set of targets.")
    .argument("<archive>", "a .kpack archive")
    .requiredOption("-o, --output <path>", "the new archive", parseOutput)
    .addOption(newSchemeOption)
    .addOption(levelOption)
    .addOption(plannerOption)
    .addOption(effortOption)
    .addOption(targetsOption)
    .option("--group <name>", "another group name", parseName)
    .option("--family <name>", "another family label", parseName)
    .addOption(jobsOption)
    .option("--verify", "read the result back and compare it with the original before it gets its name")
    .option("--no-sharing", "do not look for identical kernels that were stored apart")
    .option("--no-extra-fields", "write only the TOC fields of ROCm's own tool")
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, options) => {
      await run(options, async (terminal) => {
        const { openArchive } = await import("../../archive/open-archive.node.ts");
        const { openFile } = await import("../../source/file-source.node.ts");
        const { createFile } = await import("../../sink/file-sink.node.ts");
        const { convertArchive } = await import("../../operations/convert.node.ts");
        const scheme = newSchemeOf(options);
        const { findings, onFinding } = terminal.gatherFindings();
        await using archive = await openArchive(await openFile(file), {
          signal: terminal.signal,
          onFinding,
        });
        await using sink = await createFile(options.output);
        const summary = await convertArchive(archive, sink, {
          scheme,
          targets: options.targets,
          groupName: options.group,
          family: options.family,
          jobs: options.jobs,
          verify: options.verify,
          shareIdentical: options.sharing,
          extraFields: options.extraFields,
          onProgress: terminal.onProgress(),
          signal: terminal.signal,
        });
        await sink.commit();
        terminal.endProgress();
        const before = archive.source.size;
        if (terminal.json) {
          terminal.printJson("kpack/convert/1", {
            input: file,
            inputSize: before,
            path: options.output,
            ...summary,
            findings,
          });
        } else {
          terminal.note(
            `${options.output}: ${formatCount(summary.entries, "kernel")}, ${formatSize(summary.archiveSize)} ` +
              `(${formatRatio(summary.archiveSize, before)} of ${file})`,
          );
        }
        return 0;
      });
    });
}
