import { printable } from "../bytes/text.ts";
import { isKpackError } from "../errors/errors.ts";
import type { ExitStatus } from "./exit-status.ts";
import { TEXT_WIDTH, wrapText } from "./render/wrap.ts";
import { colour } from "./terminal.ts";

const START = "kpack: ";

/** Says on stderr what went wrong, where, and what to do about it; returns the exit status. */
export function reportError(error: unknown, json: boolean, command?: string): ExitStatus {
  if (isKpackError(error)) {
    const status = error.name === "AccessError" ? 2 : 1;
    const { code, file, offset, field, expected, found, hint, summary } = error;
    const message = `${START}${printable(error.message)} [${code}]`;
    // One line that can be searched for, unless it lists more than any line could hold.
    const isLong = `${expected ?? ""}${found ?? ""}`.length > TEXT_WIDTH;
    const lines = [(isLong ? wrapText(message, "  ") : message).replace(START, colour("red", START))];
    if (hint !== undefined) lines.push(`  ${printable(hint)}`);
    process.stderr.write(`${lines.join("\n")}\n`);
    if (json) printErrorDocument({ code, message: summary, file, offset, field, expected, found, hint });
    return status;
  }
  // No other RangeError: an exhausted stack and memory that cannot be had are RangeErrors too.
  if (error instanceof UsageError) {
    process.stderr.write(`${colour("red", START)}${printable(error.message)}\n${usageHint(command)}\n`);
    if (json) printErrorDocument({ code: "USAGE", message: error.message });
    return 2;
  }
  // A fault of the program: no answer either, and its trace is what helps.
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`${colour("red", "kpack:")} unexpected error, please report it: ${trace}\n`);
  if (json) printErrorDocument({ code: "INTERNAL", message: String(error) });
  return 2;
}

/** What commander says of wrong usage, in the form that all other errors have. */
export function usageMessage(text: string): string {
  return text.replace(/^error: /, colour("red", START));
}

/** Where to read how a command is used, or the whole tool. */
export function usageHint(command?: string): string {
  return `  "kpack help${command === undefined ? "" : ` ${command}`}" shows how it is used.`;
}

/** The one document of `--json` when there is no answer; see docs/json.md. */
export function printErrorDocument(data: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ schema: "kpack/error/1", ...data }, undefined, 2)}\n`);
}

/** Options that contradict each other, or lack one another. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
