import { Command, CommanderError, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { readFileSync } from "node:fs";
import { addBench } from "./commands/bench.ts";
import { addConvert } from "./commands/convert.ts";
import { addDiff } from "./commands/diff.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addExplain } from "./commands/explain.ts";
import { addExtract } from "./commands/extract.ts";
import { addInfo } from "./commands/info.ts";
import { addInspect } from "./commands/inspect.ts";
import { addList } from "./commands/list.ts";
import { addPack } from "./commands/pack.ts";
import { addResolve } from "./commands/resolve.ts";
import { addShrink } from "./commands/shrink.ts";
import { addUnbundle } from "./commands/unbundle.ts";
import { addVerify } from "./commands/verify.ts";
import { printErrorDocument, reportError, usageHint, usageMessage } from "./report-error.ts";
import type { RunCommand } from "./run-command.ts";
import { Terminal } from "./terminal.ts";

/** Signals that end the work. The exit status is 128 more than the signal's number, as with other commands. */
const INTERRUPTIONS = ["SIGHUP", "SIGINT", "SIGTERM"] as const;
/** A signal so soon after another is the same one, sent to the process and to its group. */
const SAME_SIGNAL_MS = 500;

/** Parses the arguments, runs the command and returns the exit status. */
export async function run(args: readonly string[]): Promise<number> {
  let status: number = 0;
  let commandName: string | undefined;
  const interruption = new AbortController();
  let interrupted: { readonly status: number; readonly since: number } | undefined;
  const interrupt = (_: NodeJS.Signals, number: number): void => {
    if (interrupted && performance.now() - interrupted.since > SAME_SIGNAL_MS)
      process.exit(interrupted.status); // nobody wants to wait for the clearing up
    interrupted ??= { status: 128 + number, since: performance.now() };
    interruption.abort(new Error("interrupted"));
  };
  for (const signal of INTERRUPTIONS) process.on(signal, interrupt);
  // A reader that had enough, like head, closes the pipe: no fault of anybody.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") process.stderr.write(`kpack: ${error.message}\n`);
    process.exit(error.code === "EPIPE" ? status : 2);
  });
  process.stderr.on("error", () => undefined); // nobody is there to be told
  const runCommand: RunCommand = async (options, work) => {
    const terminal = new Terminal({ ...options, signal: interruption.signal });
    try {
      status = await work(terminal);
    } catch (error) {
      if (interrupted) status = interrupted.status;
      else {
        terminal.endProgress();
        status = reportError(error, terminal.json, commandName);
      }
    } finally {
      terminal.endProgress();
    }
  };
  try {
    const command = program(runCommand).hook("preAction", (_, action) => {
      commandName = action.name();
      refuseEmptyPaths(action);
    });
    refuseUnknownHelp(command, args);
    await command.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    status = error.exitCode === 0 ? 0 : 2; // commander has printed what is wrong
    if (status !== 0 && args.includes("--json")) {
      printErrorDocument({ code: "USAGE", message: error.message.replace(/^error: /, "") });
    }
  } finally {
    for (const signal of INTERRUPTIONS) process.removeListener(signal, interrupt);
  }
  return status;
}

function program(runCommand: RunCommand): Command {
  const command = new Command("kpack")
    .description("Pack, inspect, verify and convert ROCm's packed kernel archives (.kpack).")
    .version(packageVersion(), "-V, --version")
    .exitOverride()
    .configureHelp({ helpWidth: Math.min(100, process.stdout.columns || 100) })
    .configureOutput({ outputError: (text, write) => write(usageMessage(text)) })
    .showHelpAfterError(usageHint())
    .addHelpText(
      "after",
      "\nExit status: 0 yes, 1 no (bad input, findings, nothing found), 2 not answered (usage, files).",
    );
  addPack(command, runCommand);
  addList(command, runCommand);
  addInfo(command, runCommand);
  addExtract(command, runCommand);
  addUnbundle(command, runCommand);
  addVerify(command, runCommand);
  addConvert(command, runCommand);
  addBench(command, runCommand);
  addInspect(command, runCommand);
  addDiff(command, runCommand);
  addShrink(command, runCommand);
  addResolve(command, runCommand);
  addDoctor(command, runCommand);
  addExplain(command, runCommand);
  for (const one of command.commands) one.showHelpAfterError(usageHint(one.name()));
  return command;
}

/** Arguments that are names inside of a file; all others are paths. */
const NAMES: readonly string[] = ["key", "target", "code"];

/** An empty path is a variable of a script that was not set: the system's words for it would not say so. */
function refuseEmptyPaths(action: CommandUnknownOpts): void {
  action.registeredArguments.forEach((argument, index) => {
    const value: unknown = action.processedArgs[index];
    const isEmpty = Array.isArray(value) ? value.includes("") : value === "";
    if (isEmpty && !NAMES.includes(argument.name()))
      action.error(`error: the argument '${argument.name()}' is empty: it names no file`, { exitCode: 2 });
  });
}

/** commander shows its general help for a command that there is not, and calls that a success. */
function refuseUnknownHelp(command: Command, [first, topic]: readonly string[]): void {
  if (first !== "help" || topic === undefined || topic.startsWith("-") || topic === "help") return;
  if (command.commands.some((one) => one.name() === topic)) return;
  command.error(`error: unknown command '${topic}'`, { exitCode: 2, code: "commander.unknownCommand" });
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const document: unknown = JSON.parse(text);
  return typeof document === "object" && document !== null && "version" in document
    ? String(document.version)
    : "unknown";
}
