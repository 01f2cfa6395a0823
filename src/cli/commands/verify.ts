import type { Command } from "@commander-js/extra-typings";
import { isKpackError, type KpackError } from "../../errors/errors.ts";
import { type Finding, findingOfError } from "../../errors/finding.ts";
import type { VerifyReport } from "../../operations/verify.ts";
import { printable } from "../../bytes/text.ts";
import { jobsOption, jsonOption, quietOption } from "../arguments.ts";
import type { ExitStatus } from "../exit-status.ts";
import { reportError } from "../report-error.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatSize } from "../render/numbers.ts";
import { renderReaders } from "../render/readers.ts";
import { wrapText } from "../render/wrap.ts";
import { formatFinding, type Terminal } from "../terminal.ts";

const EXAMPLES = `
Decodes every kernel and checks sizes, checksums, hashes, extents, and each code object against
its target. Says which of ROCm's readers would accept the archive.

Examples:
  kpack verify rocsparse.kpack
  kpack verify .kpack/*.kpack --strict`;

/** Findings of one kind that are printed; the rest is counted. */
const SHOWN = 5;

export function addVerify(program: Command, run: RunCommand): void {
  program
    .command("verify")
    .description("Check archives: every kernel, every size, and who can read them.")
    .argument("<archive...>", ".kpack archives")
    .option("--strict", "oddities (warnings) fail too")
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (files, options) => {
      await run(options, async (terminal) => {
        const archives: VerifiedFile[] = [];
        let isAnswered = true;
        for (const file of files) {
          const { result, unreadable } = await verifyFile(terminal, file, options);
          archives.push(result);
          if (unreadable === undefined) {
            if (!terminal.json) printResult(terminal, result);
            continue;
          }
          // A single file that cannot be read leaves nothing to answer; of several, the others still count.
          if (files.length === 1) throw unreadable;
          isAnswered = false;
          reportError(unreadable, false);
        }
        if (terminal.json)
          terminal.printJson("kpack/verify/1", { strict: options.strict ?? false, archives });
        const status: ExitStatus = !isAnswered ? 2 : archives.every(({ ok }) => ok) ? 0 : 1;
        return status;
      });
    });
}

interface VerifiedFile extends Partial<VerifyReport> {
  readonly file: string;
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

interface Outcome {
  readonly result: VerifiedFile;
  /** Why the file could not be read: then it is neither good nor bad, and stands in the list with that finding. */
  readonly unreadable?: KpackError | undefined;
}

async function verifyFile(
  terminal: Terminal,
  file: string,
  options: { readonly strict?: true | undefined; readonly jobs?: number | undefined },
): Promise<Outcome> {
  const { openArchive } = await import("../../archive/open-archive.node.ts");
  const { openFile } = await import("../../source/file-source.node.ts");
  const { verifyArchive } = await import("../../operations/verify.ts");
  const { defaultJobs } = await import("../../operations/jobs.node.ts");
  const { signal } = terminal;
  try {
    await using archive = await openArchive(await openFile(file), { signal });
    const report = await verifyArchive(archive, {
      jobs: options.jobs ?? defaultJobs(),
      onProgress: terminal.onProgress(),
      signal,
    });
    const fails = (finding: Finding): boolean =>
      finding.severity === "error" || (options.strict === true && finding.severity === "warning");
    return { result: { file, ok: !report.findings.some(fails), ...report } };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    const unreadable = error.name === "AccessError" ? error : undefined;
    return { result: { file, ok: false, findings: [findingOfError(error)] }, unreadable };
  } finally {
    terminal.endProgress();
  }
}

function printResult(terminal: Terminal, result: VerifiedFile): void {
  const { file, ok, findings, entries = 0, decodedSize = 0, readers = [] } = result;
  for (const [, group] of Map.groupBy(findings, ({ code }) => code)) {
    // Entries that share a stored kernel, or kernels a frame, share what is wrong with it.
    const distinct = [...Map.groupBy(group, ({ message }) => message).values()].flatMap(([one]) => one ?? []);
    const shown = distinct.slice(0, SHOWN);
    for (const finding of shown) terminal.print(wrapText(formatFinding(finding, process.stdout), "  "));
    const more = group.length - shown.length;
    if (more > 0) terminal.print(`  … and ${more} more of this kind (--json lists all)`);
  }
  for (const line of renderReaders(readers, findings)) terminal.print(line);
  const what =
    readers.length > 0
      ? ` (${formatCount(entries, "entry", "entries")}, ${formatSize(decodedSize)} decoded, ${hashesOf(result)})`
      : "";
  terminal.print(wrapText(`${printable(file)}: ${ok ? "good" : "BAD"}${what}`, "  "));
}

function hashesOf({ hashesChecked = 0, hashesHeld = 0 }: VerifiedFile): string {
  if (hashesChecked > 0) return `${formatCount(hashesChecked, "hash", "hashes")} compared`;
  return hashesHeld > 0 ? "no kernel could be compared with its hash" : "no hashes in it to compare with";
}
