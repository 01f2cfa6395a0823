import { Command, CommanderError } from "@commander-js/extra-typings";
import { reportError } from "../../src/cli/report-error.ts";
import type { RunCommand } from "../../src/cli/run-command.ts";
import { Terminal } from "../../src/cli/terminal.ts";

class RecordingTerminal extends Terminal {
  text = "";
  override print(text: string): void {
    this.text += text.endsWith("\n") ? text : `${text}\n`;
  }
}

export interface CommandResult {
  readonly status: number;
  /** What went to stdout. */
  readonly text: string;
}

/** Runs one command of the tool in this process, with its arguments parsed as on the command line. */
export async function runCommand(
  add: (program: Command, run: RunCommand) => void,
  ...args: readonly string[]
): Promise<CommandResult> {
  const program = new Command("kpack").exitOverride().configureOutput({ writeErr: () => undefined });
  let result: CommandResult = { status: 2, text: "" };
  add(program, async (options, work) => {
    const terminal = new RecordingTerminal({ ...options, signal: new AbortController().signal });
    let status: number;
    try {
      status = await work(terminal);
    } catch (error) {
      status = reportError(error, false);
    }
    result = { status, text: terminal.text };
  });
  // Commands inherit settings only when they are made, so those of the new one are set by hand.
  for (const command of program.commands)
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { status: error.exitCode === 0 ? 0 : 2, text: "" };
  }
  return result;
}
