import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { LOADER_BEHAVIOURS, type ArchiveSearch } from "../../loader/archive-search.ts";
import { LOADER_VARIABLES, type LoaderVariable, type LoaderVariables } from "../../loader/environment.ts";
import type { ResolveReport } from "../../operations/resolve.node.ts";
import { jsonOption, parseIsas, quietOption } from "../arguments.ts";
import type { RunCommand } from "../run-command.ts";

const EXAMPLES = `
Shows step by step what ROCm's loader does when a program asks for a kernel, and how it ends: the
archive that wins, or the failure with the number that HIP logs. Needs no GPU.

ISA is what rocminfo prints, in the agent's order:
gfx942:sramecc+:xnack-,gfx9-4-generic:sramecc+:xnack-
Variables of this shell do not count: give the program's own with --env.

Loaders: current (since August 2026), before-2026-08 (up to ROCm 7.14), hrx.

Examples:
  kpack resolve lib/librocsparse.so.1 --isa gfx942:sramecc+:xnack-
  kpack resolve lib/libtorch_hip.so --isa gfx90a:sramecc+:xnack- --index 57 --loader before-2026-08
  kpack resolve bin/rocblas.dll --isa gfx1201,gfx12-generic --json
  kpack resolve app --isa gfx1100 --env ROCM_KPACK_PATH=/opt/a.kpack:/opt/b.kpack`;

export function addResolve(program: Command, run: RunCommand): void {
  program
    .command("resolve")
    .description("Show which archive's kernel a GPU gets from a converted binary, or why it gets none.")
    .argument("<binary>", "a converted program or library (ELF or COFF)")
    .addOption(
      new Option("--isa <list>", "the agent's ISAs, in its order of preference")
        .argParser(parseIsas)
        .makeOptionMandatory(),
    )
    .option("--index <n>", "only this wrapper, with every step", parseIndex)
    .addOption(
      new Option("--loader <name>", "whose loader")
        .choices([...LOADER_BEHAVIOURS])
        .default("current" as const),
    )
    .addOption(
      new Option("--env <name=value>", "a ROCM_KPACK_ variable of the program's environment; may be repeated")
        .argParser(parseVariable)
        .default({}, "none"),
    )
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (binary, options) => {
      await run(options, async (terminal) => {
        const { resolveBinary } = await import("../../operations/resolve.node.ts");
        const report = await resolveBinary(binary, {
          isas: options.isa,
          index: options.index,
          behaviour: LOADER_BEHAVIOURS.find((behaviour) => behaviour === options.loader),
          variables: options.env,
          signal: terminal.signal,
        });
        if (terminal.json) terminal.printJson("kpack/resolve/1", jsonOf(report));
        else {
          const { renderResolution } = await import("./resolve-text.ts");
          for (const finding of report.findings) terminal.warn(finding);
          terminal.print(renderResolution(report, options.index !== undefined));
        }
        return report.wrappers.every(({ answer }) => answer.kernel !== undefined) ? 0 : 1;
      });
    });
}

function parseIndex(value: string): number {
  if (/^#?\d{1,9}$/.test(value)) return Number(value.replace("#", ""));
  throw new InvalidArgumentError("Expected a wrapper's position: 0, 1, 2 …");
}

function parseVariable(value: string, previous: LoaderVariables): LoaderVariables {
  const [, name, text] = /^([^=]+)=(.*)$/s.exec(value) ?? [];
  const known: LoaderVariable | undefined = LOADER_VARIABLES.find((variable) => variable === name);
  if (known === undefined || text === undefined) {
    throw new InvalidArgumentError(`Expected NAME=VALUE with one of ${LOADER_VARIABLES.join(", ")}.`);
  }
  return { ...previous, [known]: text };
}

/** Open archives are left out; their paths stand in the steps. */
function jsonOf(report: ResolveReport): Readonly<Record<string, unknown>> {
  const { search, wrappers, ...rest } = report;
  return {
    ...rest,
    paths: search?.paths ?? [],
    archives: search ? distinctArchives(search) : [],
    wrappers: wrappers.map(({ wrapper, answer, remedy }) => ({ wrapper, ...answer, remedy })),
  };
}

function distinctArchives(search: ArchiveSearch): readonly unknown[] {
  const byPath = new Map(search.archives.map((found) => [found.realPath, found]));
  return [...byPath.values()].map(({ realPath, archive }) => ({
    path: realPath,
    scheme: archive.schemeName,
    targets: archive.targets,
    entries: archive.entries.length,
  }));
}
