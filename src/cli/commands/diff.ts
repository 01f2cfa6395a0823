import type { Command } from "@commander-js/extra-typings";
import { isKpackError } from "../../errors/errors.ts";
import { jobsOption, jsonOption, quietOption } from "../arguments.ts";
import type { ExitStatus } from "../exit-status.ts";
import { reportError } from "../report-error.ts";
import type { RunCommand } from "../run-command.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
A and B: two archives, or two folders whose archives (*.kpack) are paired by their paths in them.
Only kernels count: an archive in another scheme or order is the same. Where both hold hashes,
kernels are not decoded unless they differ.

Exit status: 0 the same, 1 different, 2 trouble (an archive that is broken, or cannot be read).

Examples:
  kpack diff old/rocsparse.kpack new/rocsparse.kpack
  kpack diff rocm-7.0/lib rocm-7.1/lib --no-resources
  kpack diff before.kpack after.kpack --json`;

export function addDiff(program: Command, run: RunCommand): void {
  program
    .command("diff")
    .description("Compare the kernels of two archives, or of two trees of archives.")
    .argument("<a>", "an archive, or a folder of archives")
    .argument("<b>", "another one")
    .option("--no-resources", "do not compare registers, spills, LDS and scratch of changed kernels")
    .option("--all", "show every line, also where there are many alike")
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (before, after, options) => {
      await run(options, async (terminal) => {
        try {
          return await showDifferences(terminal, before, after, options);
        } catch (error) {
          if (!isKpackError(error)) throw error;
          terminal.endProgress();
          reportError(error, terminal.json);
          return 2; // as diff does: 1 would say that they were compared and differ
        }
      });
    });
}

async function showDifferences(
  terminal: Terminal,
  before: string,
  after: string,
  options: {
    readonly resources: boolean;
    readonly all?: true | undefined;
    readonly jobs?: number | undefined;
  },
): Promise<ExitStatus> {
  const { diffPaths } = await import("../../operations/diff.node.ts");
  const { resources, jobs } = options;
  const report = await diffPaths(before, after, {
    resources,
    jobs,
    onFinding: (finding) => {
      if (!terminal.json) terminal.warn(finding);
    },
    onProgress: terminal.onProgress(),
    signal: terminal.signal,
  });
  terminal.endProgress();
  const { archives, isSame, hasTrouble } = report;
  if (terminal.json) terminal.printJson("kpack/diff/1", { ...report });
  else {
    const { renderDifference, summarize } = await import("../render/difference.ts");
    const texts = archives.map((diff) => renderDifference(diff, { all: options.all ?? false, resources }));
    const shown = [...texts, summarize(report)].filter((text) => text !== undefined && text !== "");
    if (shown.length > 0) terminal.print(shown.join("\n\n"));
  }
  return hasTrouble ? 2 : isSame ? 0 : 1;
}
