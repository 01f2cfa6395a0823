import type { Command } from "@commander-js/extra-typings";
import { NotFoundError } from "../../errors/errors.ts";
import type { FindingKind } from "../../operations/doctor/finding-codes.ts";
import { jsonOption, quietOption } from "../arguments.ts";
import { renderTable } from "../render/table.ts";
import { wrapText } from "../render/wrap.ts";
import type { RunCommand } from "../run-command.ts";

const EXAMPLES = `
Examples:
  kpack explain KP303
  kpack explain
  kpack explain KP202 --json`;

export function addExplain(program: Command, run: RunCommand): void {
  program
    .command("explain")
    .description("Explain a finding of kpack doctor: what it means, why it comes about, what to do.")
    .argument("[code]", "a code such as KP303; without it, all codes are listed")
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (code, options) => {
      await run(options, async (terminal) => {
        const { FINDING_KINDS, findKind } = await import("../../operations/doctor/finding-codes.ts");
        const found = code === undefined ? undefined : findKind(code);
        if (code !== undefined && found === undefined) {
          throw new NotFoundError("NOTHING_FOUND", `there is no finding ${code}`, {
            hint: 'Codes look like KP303; "kpack explain" lists them all.',
          });
        }
        const kinds = found ? [found] : FINDING_KINDS;
        if (terminal.json) terminal.printJson("kpack/explain/1", { findings: kinds });
        else if (found) terminal.print(renderKind(found));
        else {
          const rows = kinds.map((kind) => [kind.code, kind.severity, kind.title]);
          terminal.print(renderTable([{ title: "CODE" }, { title: "SEVERITY" }, { title: "FINDING" }], rows));
        }
        return 0;
      });
    });
}

function renderKind({ code, title, severity, meaning, cause, remedy }: FindingKind): string {
  return [
    `${code}: ${title} (${severity})`,
    wrapText(meaning),
    wrapText(`Usual cause: ${cause}`),
    wrapText(`What to do: ${remedy}`),
  ].join("\n\n");
}
