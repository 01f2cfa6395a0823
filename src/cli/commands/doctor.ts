import { type Command, Option } from "@commander-js/extra-typings";
import { printable } from "../../bytes/text.ts";
import { jsonOption, parseIsas, quietOption } from "../arguments.ts";
import { wrapText } from "../render/wrap.ts";
import type { RunCommand } from "../run-command.ts";

const EXAMPLES = `
PATH: an install tree, a wheel's unpacked folder, a site-packages folder, a layer of a container
image, or a single library. Archives that a library reaches outside of it are looked at too.

Reads headers, tables and the first bytes of kernels. --deep decodes everything.

Examples:
  kpack doctor /opt/rocm
  kpack doctor venv/lib/python3.13/site-packages --isa gfx942:sramecc+:xnack-
  kpack doctor lib/libtorch_hip.so --report
  kpack explain KP202`;

export function addDoctor(program: Command, run: RunCommand): void {
  program
    .command("doctor")
    .description("Find out what is wrong with an installation: binaries, archives, and whether they fit.")
    .argument("<path...>", "folders, or single libraries and archives")
    .addOption(
      new Option("--isa <list>", "ISAs of this machine's GPUs: judge these alone").argParser(parseIsas),
    )
    .option("--deep", "decode every kernel and compressed bundle")
    .addOption(
      new Option("--report", "print everything in a form to paste into a bug report").conflicts("json"),
    )
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (paths, options) => {
      await run(options, async (terminal) => {
        const { diagnose } = await import("../../operations/doctor/doctor.node.ts");
        const report = await diagnose(paths, {
          isas: options.isa,
          deep: options.deep,
          onProgress: terminal.onProgress(),
          signal: terminal.signal,
        });
        terminal.endProgress();
        if (terminal.json) terminal.printJson("kpack/doctor/1", { ...report });
        else {
          const { renderDoctor, renderReport } = await import("./doctor-text.ts");
          for (const note of report.notes) terminal.note(wrapText(printable(note), "  "));
          terminal.print(options.report ? renderReport(report) : renderDoctor(report));
        }
        return report.findings.some(({ severity }) => severity === "error") ? 1 : 0;
      });
    });
}
