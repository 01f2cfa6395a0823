import { type Command, Option } from "@commander-js/extra-typings";
import { parseName, parseOutput, jobsOption, jsonOption, quietOption, targetsOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatRatio, formatSize } from "../render/numbers.ts";
import { effortOption, levelOption, plannerOption, schemeOf, schemeOption } from "../schemes.ts";

const EXAMPLES = `
INPUT: a fat binary (ELF or COFF), an offload bundle, a code object, or a folder of them.

A kernel's key is its file's path below --root, what names the target taken out of it, and #N: the
index of the wrapper that points to its bundle. Without --root, paths count from the current folder
if the input lies in it, else from the input's own folder.

Examples:
  kpack pack librocsparse.so.0.1 -o rocsparse.kpack
  kpack pack lib/librocsparse.so.0.1 --root . --split-by target -o .kpack
  kpack pack library/ --targets gfx90a,gfx942 --group blas_lib -o blas_lib.kpack
  kpack pack app --scheme zstd-per-kernel --level 19 --verify -o app.kpack`;

export function addPack(program: Command, run: RunCommand): void {
  program
    .command("pack")
    .description("Pack the kernels of fat binaries and code objects into an archive.")
    .argument("<input...>", "fat binaries, bundles, code objects or folders")
    .requiredOption(
      "-o, --output <path>",
      "the archive, or with --split-by the folder for the archives",
      parseOutput,
    )
    .addOption(
      new Option("--split-by <what>", "one archive GROUP_TARGET.kpack per target").choices([
        "target",
      ] as const),
    )
    .addOption(targetsOption)
    .option("--root <folder>", "the folder that binary keys count from")
    .option(
      "--group <name>",
      "group name (default: from the first input: librocsparse.so.0.1 gives rocsparse)",
      parseName,
    )
    .option("--family <name>", "family label (default: from the targets: gfx1100, gfx110X, mixed)", parseName)
    .addOption(schemeOption)
    .addOption(levelOption)
    .addOption(plannerOption)
    .addOption(effortOption)
    .addOption(jobsOption)
    .option("--verify", "read the archive back and compare it with the inputs before it gets its name")
    .option("--no-sharing", "store identical kernels as often as they occur")
    .option("--no-extra-fields", "write only the TOC fields of ROCm's own tool")
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (inputs, options) => {
      await run(options, async (terminal) => {
        const { pack } = await import("../../operations/pack.node.ts");
        const { findings, onFinding } = terminal.gatherFindings();
        const { archives, plan } = await pack({
          inputs,
          output: options.output,
          splitBy: options.splitBy,
          root: options.root,
          targets: options.targets,
          groupName: options.group,
          family: options.family,
          scheme: schemeOf(options),
          jobs: options.jobs,
          verify: options.verify,
          shareIdentical: options.sharing,
          extraFields: options.extraFields,
          onFinding,
          onProgress: terminal.onProgress(),
          signal: terminal.signal,
        });
        terminal.endProgress();
        const left = plan.left.map(({ file, id, target, payload, kernel }) => ({
          file,
          id,
          target,
          payload,
          size: kernel.size,
        }));
        if (terminal.json) {
          terminal.printJson("kpack/pack/1", { archives, left, findings });
          return 0;
        }
        for (const archive of archives) {
          const { path, entries, kernels, originalSize, archiveSize, targets } = archive;
          const shared = kernels < entries ? ` (${entries - kernels} of them stored once with another)` : "";
          terminal.note(
            `${path}: ${formatCount(entries, "kernel")}${shared} for ${targets.join(", ")}; ` +
              `${formatSize(originalSize)} packed into ${formatSize(archiveSize)} (${formatRatio(archiveSize, originalSize)})`,
          );
        }
        if (left.length > 0) {
          const kinds = [...new Set(left.map(({ target }) => target))].join(", ");
          terminal.note(
            `left out: ${formatCount(left.length, "entry", "entries")} (${kinds}); --targets chooses them`,
          );
        }
        return 0;
      });
    });
}
