import type { Command } from "@commander-js/extra-typings";
import type { Finding } from "../../errors/finding.ts";
import type { InspectedCodeObject } from "../../operations/inspect.node.ts";
import { jobsOption, jsonOption, quietOption, targetsOption } from "../arguments.ts";
import type { ExitStatus } from "../exit-status.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount } from "../render/numbers.ts";
import { TEXT_WIDTH } from "../render/wrap.ts";
import { UsageError } from "../report-error.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
FILE: an archive, a fat binary, an offload bundle or a code object. KEY: a binary key of an archive;
in a fat binary or bundle the index under which the runtime asks: #3.

Of several code objects, the kernels are listed; of one alone, also its sections. --kernel with one
code object shows all that is known of the kernel.

Examples:
  kpack inspect librocsparse.so.0.1 --targets gfx906
  kpack inspect rocsparse.kpack lib/librocsparse.so.0.1#3 gfx90a:xnack-
  kpack inspect kernel.hsaco --kernel axpyi
  kpack inspect kernel.hsaco --disassemble axpyi`;

interface InspectCommandOptions {
  readonly targets?: readonly string[] | undefined;
  readonly kernel?: string | undefined;
  readonly disassemble?: string | true | undefined;
  readonly wide?: true | undefined;
  readonly jobs?: number | undefined;
}

export function addInspect(program: Command, run: RunCommand): void {
  program
    .command("inspect")
    .description("Show what code objects say about their kernels: registers, LDS, scratch, arguments.")
    .argument("<file>", "an archive, fat binary, bundle or code object")
    .argument("[key]", "binary key, as list shows it; in a fat binary or bundle #INDEX")
    .argument("[target]", "target, as list shows it")
    .addOption(targetsOption)
    .option("-k, --kernel <name>", "only kernels with this name, or with this text in the demangled name")
    .option("-d, --disassemble [kernel]", "show the instructions of a code object, or of one of its kernels")
    .option("-w, --wide", "do not cut names to fit 100 columns")
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, key, target, options) => {
      await run(options, async (terminal) => {
        if (options.disassemble !== undefined)
          return await showInstructions(terminal, file, key, target, options);
        return await showKernels(terminal, file, key, target, options);
      });
    });
}

async function showKernels(
  terminal: Terminal,
  file: string,
  key: string | undefined,
  target: string | undefined,
  options: InspectCommandOptions,
): Promise<ExitStatus> {
  const { inspectFile } = await import("../../operations/inspect.node.ts");
  const { targets, kernel, jobs } = options;
  const { codeObjects, kind, findings } = await inspectFile(file, {
    key,
    target,
    targets,
    kernel,
    jobs,
    onFinding: warnOf(terminal),
    onProgress: terminal.onProgress(),
    signal: terminal.signal,
  });
  terminal.endProgress();
  if (terminal.json) {
    const { codeObjectToJson } = await import("../render/inspection-json.ts");
    terminal.printJson("kpack/inspect/1", {
      file,
      kind,
      codeObjects: codeObjects.map(codeObjectToJson),
      findings,
    });
  } else await printKernels(terminal, codeObjects, options);
  return statusOf(findings);
}

async function printKernels(
  terminal: Terminal,
  codeObjects: readonly InspectedCodeObject[],
  options: InspectCommandOptions,
): Promise<void> {
  const { renderCodeObject, renderDetails, renderFunction } = await import("../render/inspection.ts");
  const how = { width: options.wide ? Number.POSITIVE_INFINITY : TEXT_WIDTH };
  const [first] = codeObjects;
  if (codeObjects.length === 1 && first) {
    if (options.kernel === undefined) terminal.print(renderDetails(first, how));
    else terminal.print(first.functions.map((kernel) => renderFunction(kernel, how)).join("\n\n"));
    return;
  }
  let isFirst = true;
  for (const codeObject of codeObjects) {
    terminal.print(`${isFirst ? "" : "\n"}${renderCodeObject(codeObject, how)}`);
    isFirst = false;
  }
  const kernels = codeObjects.reduce((sum, { functions }) => sum + functions.length, 0);
  terminal.note(`${formatCount(codeObjects.length, "code object")}, ${formatCount(kernels, "kernel")}`);
}

async function showInstructions(
  terminal: Terminal,
  file: string,
  key: string | undefined,
  target: string | undefined,
  options: InspectCommandOptions,
): Promise<ExitStatus> {
  const { readForDisassembly } = await import("../../operations/inspect.node.ts");
  const { disassemble } = await import("../../operations/disassemble.node.ts");
  const { signal } = terminal;
  const wanted = options.disassemble === true ? options.kernel : options.disassemble;
  const findings: Finding[] = [];
  const { kind, inspected, bytes, count } = await readForDisassembly(file, {
    key,
    target,
    targets: options.targets,
    kernel: wanted,
    signal,
    onFinding: (finding) => {
      findings.push(finding);
      warnOf(terminal)(finding);
    },
  });
  if (count > 1)
    throw new UsageError(`${file} has ${count} code objects: say which, with its key and target`);
  const { codeObject, functions = [] } = inspected ?? {};
  const disassembly =
    codeObject &&
    bytes &&
    (await disassemble(bytes, {
      symbols: wanted === undefined ? [] : functions.map(({ name }) => name),
      target: codeObject.header.target.targetName,
      signal,
    }));
  if (terminal.json) {
    const { codeObjectToJson } = await import("../render/inspection-json.ts");
    terminal.printJson("kpack/inspect/1", {
      file,
      kind,
      codeObjects: inspected ? [codeObjectToJson(inspected)] : [],
      disassembly: disassembly && {
        tool: disassembly.tool.path,
        version: disassembly.tool.version,
        text: disassembly.text,
      },
      findings,
    });
  } else if (disassembly) {
    const { tool, text } = disassembly;
    terminal.note(`llvm-objdump ${tool.version} (${tool.path})`);
    terminal.print(text);
  }
  return disassembly ? statusOf(findings) : 1; // a finding has said why
}

function warnOf(terminal: Terminal): (finding: Finding) => void {
  return (finding) => {
    if (!terminal.json) terminal.warn(finding);
  };
}

function statusOf(findings: readonly Finding[]): ExitStatus {
  return findings.some(({ severity }) => severity === "error") ? 1 : 0;
}
