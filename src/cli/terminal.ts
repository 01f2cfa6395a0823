import { styleText } from "node:util";
import type { Finding, OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import { printable } from "../bytes/text.ts";
import { progressReporter } from "./progress.ts";

/** What the commands talk to: data goes to stdout, everything else to stderr. */
export class Terminal {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly signal: AbortSignal;
  #closeProgress: (() => void) | undefined;

  constructor(options: {
    readonly json?: boolean | undefined;
    readonly quiet?: boolean | undefined;
    readonly signal: AbortSignal;
  }) {
    this.json = options.json ?? false;
    this.quiet = options.quiet ?? false;
    this.signal = options.signal;
  }

  /** Data for people or for the next program. */
  print(text: string): void {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** A document with the name and version of its schema first; see docs/json.md. */
  printJson(schema: string, data: Readonly<Record<string, unknown>>): void {
    this.print(JSON.stringify({ schema, ...data }, undefined, 2));
  }

  /** Raw bytes to stdout. */
  async printBytes(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  note(text: string): void {
    if (!this.quiet) this.#error(text);
  }

  /** Findings as they come; in JSON they stand in the document instead. */
  warn(finding: Finding): void {
    this.#error(formatFinding(finding));
  }

  /** Gathers findings for the JSON document; in text they are shown as they come. */
  gatherFindings(): { readonly findings: readonly Finding[]; readonly onFinding: OnFinding } {
    const findings: Finding[] = [];
    const onFinding = (finding: Finding): void => {
      findings.push(finding);
      if (!this.json) this.warn(finding);
    };
    return { findings, onFinding };
  }

  onProgress(): OnProgress | undefined {
    if (this.quiet || this.json) return undefined;
    const { onProgress, close } = progressReporter(process.stderr);
    this.#closeProgress = close;
    return onProgress;
  }

  /** Ends a progress bar, so that other text stands on lines of its own. */
  endProgress(): void {
    this.#closeProgress?.();
    this.#closeProgress = undefined;
  }

  #error(text: string): void {
    this.endProgress();
    process.stderr.write(`${text}\n`);
  }
}

const COLOURS = { error: "red", warning: "yellow", note: "cyan" } as const;

/** `warning: FILE: MESSAGE`, for the stream that it is written to. */
export function formatFinding(finding: Finding, stream: NodeJS.WritableStream = process.stderr): string {
  const label = colour(COLOURS[finding.severity], `${finding.severity}:`, stream);
  const place =
    finding.file !== undefined && !finding.message.startsWith(finding.file)
      ? `${printable(finding.file)}: `
      : "";
  return `${label} ${place}${printable(finding.message)} [${finding.code}]`;
}

/** Coloured where the stream is a terminal that wants it; styleText honours NO_COLOR. */
export function colour(
  format: "red" | "yellow" | "cyan" | "bold" | "green",
  text: string,
  stream: NodeJS.WritableStream = process.stderr,
): string {
  return styleText(format, text, { stream });
}
