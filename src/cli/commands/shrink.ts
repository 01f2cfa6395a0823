import { type Command, Option } from "@commander-js/extra-typings";
import { jobsOption, jsonOption, parseList, parseOutput, quietOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";
import { effortOption, levelOption, newSchemeOf, newSchemeOption, plannerOption } from "../schemes.ts";

const EXAMPLES = `
Kept are files and kernels that the GPUs of --keep can use: gfx90a keeps every flag variant of it,
gfx90a:xnack- also plain gfx90a, and generic targets stay for their members. In folders, kernel
databases (.co .hsaco .dat .kdb .db.txt .model) with another target in their own or a folder's name
go, and archives (*.kpack) lose other targets; all else is copied.

The inputs are never touched. With one input, -o is its copy; with several, the folder for their
copies.

Examples:
  kpack shrink torch.kpack --keep gfx942 -o torch-small.kpack
  kpack shrink /opt/rocm/lib/rocblas --keep gfx90a,gfx942 --dry-run
  kpack shrink dist/ --keep gfx1100 --level 19 -o dist-gfx1100`;

export function addShrink(program: Command, run: RunCommand): void {
  program
    .command("shrink")
    .description("Copy archives and trees without what other GPUs need; say first what would go.")
    .argument("<path...>", "archives, or folders of archives and kernel databases")
    .addOption(
      new Option("--keep <list>", "targets to keep, separated by commas")
        .argParser(parseList)
        .makeOptionMandatory(),
    )
    .option("-o, --output <path>", "the copy; must not exist, or be an empty folder", parseOutput)
    .option("-n, --dry-run", "only say what would go and what stays")
    .addOption(newSchemeOption)
    .addOption(levelOption)
    .addOption(plannerOption)
    .addOption(effortOption)
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (inputs, options) => {
      await run(options, async (terminal) => {
        const { UsageError } = await import("../report-error.ts");
        const { planShrink } = await import("../../operations/shrink-plan.node.ts");
        const { shrink } = await import("../../operations/shrink.node.ts");
        const { renderPlan, renderResult, planToJson } = await import("../render/shrink-plan.ts");
        const { keep, output, jobs } = options;
        const scheme = newSchemeOf(options);
        const { findings, onFinding } = terminal.gatherFindings();
        const common = { inputs, keep, onFinding, signal: terminal.signal };
        if (options.dryRun) {
          const plan = await planShrink({ ...common, output, scheme });
          if (terminal.json)
            terminal.printJson("kpack/shrink/1", { ...planToJson(plan, keep), dryRun: true, findings });
          else terminal.print(renderPlan(plan));
          return 0;
        }
        if (output === undefined) throw new UsageError("give -o for the copy, or --dry-run");
        const { plan, sizeAfter } = await shrink({
          ...common,
          output,
          scheme,
          jobs,
          onPlan: (made) => {
            if (!terminal.json) terminal.print(renderPlan(made));
          },
          onProgress: terminal.onProgress(),
        });
        terminal.endProgress();
        if (terminal.json) {
          terminal.printJson("kpack/shrink/1", {
            ...planToJson(plan, keep),
            dryRun: false,
            output,
            sizeWritten: sizeAfter,
            findings,
          });
        } else terminal.print(`\n${renderResult(output, plan, sizeAfter)}`);
        return 0;
      });
    });
}
