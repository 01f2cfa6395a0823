import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { Finding } from "../../errors/finding.ts";
import {
  BENCH_SETTINGS,
  type BenchSetting,
  isSlow,
  parseBenchSettings,
} from "../../operations/bench-settings.node.ts";
import { jobsOption, jsonOption, parseList, quietOption, targetsOption } from "../arguments.ts";
import { UsageError } from "../report-error.ts";
import type { RunCommand } from "../run-command.ts";

const EXAMPLES = `
INPUT: archives, or what "kpack pack" takes: fat binaries, bundles, code objects, folders of them.

The kernels are packed with each scheme, compared with the originals, and read in random order and
one after another. All of it happens in temporary files, which are removed at the end; they take
more than the kernels' uncompressed size. One archive per family means processors that differ in
their last digit, such as gfx906 and gfx90a.

Examples:
  kpack bench rocsparse.kpack
  kpack bench librocsparse.so.0.1 --targets gfx90a,gfx942 --quick
  kpack bench library/ --schemes zstd-per-kernel:9,zstd-cross-kernel --json`;

export function addBench(program: Command, run: RunCommand): void {
  program
    .command("bench")
    .description("Compare schemes, efforts and numbers of archives on your own kernels.")
    .argument("<input...>", "archives, fat binaries, bundles, code objects or folders")
    .addOption(
      new Option(
        "-s, --schemes <list>",
        "zstd-per-kernel:LEVEL, zstd-cross-kernel:EFFORT, or a scheme for its usual ones (default: " +
          "levels 3, 9, 19 and all efforts); zstd-per-kernel:3 is always there",
      ).argParser(parseSettings),
    )
    .option("--quick", "leave out what takes long: level 17 and up, effort max")
    .addOption(
      new Option(
        "--layout-scheme <name>",
        'one of --schemes for archives by target, by family and one for all, or "none" (default: ' +
          "zstd-cross-kernel:default)",
      ).argParser(parseLayoutSetting),
    )
    .addOption(targetsOption)
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (inputs, options) => {
      await run(options, async (terminal) => {
        const { bench } = await import("../../operations/bench.node.ts");
        const { renderBench } = await import("../render/bench.ts");
        const settings = (options.schemes ?? BENCH_SETTINGS).filter(
          (setting) => !options.quick || !isSlow(setting),
        );
        if (settings.length === 0) throw new UsageError("--quick leaves out all of --schemes");
        const findings: Finding[] = [];
        const report = await bench({
          inputs,
          settings,
          layoutSetting: options.layoutScheme,
          targets: options.targets,
          jobs: options.jobs,
          onFinding: (finding) => {
            findings.push(finding);
            if (!terminal.json) terminal.warn(finding);
          },
          onProgress: terminal.onProgress(),
          signal: terminal.signal,
        });
        terminal.endProgress();
        if (terminal.json) terminal.printJson("kpack/bench/1", { ...report, findings });
        else terminal.print(renderBench(report));
        return 0;
      });
    });
}

function parseSettings(
  value: string,
  previous: readonly BenchSetting[] | undefined,
): readonly BenchSetting[] {
  return [...(previous ?? []), ...parseList(value, undefined).flatMap(settingsOf)];
}

function parseLayoutSetting(value: string): BenchSetting | "none" {
  if (value === "none") return "none";
  const [setting, ...others] = settingsOf(value);
  if (setting && others.length === 0) return setting;
  throw new InvalidArgumentError("Expected a scheme with its level or effort.");
}

function settingsOf(name: string): readonly BenchSetting[] {
  try {
    return parseBenchSettings(name);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidArgumentError(`${error.message}.`);
  }
}
