import type { ExitStatus } from "./exit-status.ts";
import type { Terminal } from "./terminal.ts";

/** The options that every command has. */
export interface CommonOptions {
  readonly json?: true | undefined;
  readonly quiet?: true | undefined;
}

/** Runs a command's work with a terminal made from its options, and keeps its exit status. */
export type RunCommand = (
  options: CommonOptions,
  work: (terminal: Terminal) => Promise<ExitStatus>,
) => Promise<void>;
