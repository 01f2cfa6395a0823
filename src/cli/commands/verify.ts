import type { Command } from "@commander-js/extra-typings";
import { isKpackError } from "../../errors/errors.ts";
import { type Finding, findingOrThrow } from "../../errors/finding.ts";
import type { VerifyReport } from "../../operations/verify.ts";
import { printable } from "../../bytes/text.ts";
import { jobsOption, jsonOption, quietOption } from "../arguments.ts";
import type { ExitStatus } from "../exit-status.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatSize } from "../render/numbers.ts";
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
        const results: VerifiedFile[] = [];
        for (const file of files) {
          const result = await verifyFile(terminal, file, options);
          results.push(result);
          if (!terminal.json) printResult(terminal, result);
        }
        if (terminal.json)
          terminal.printJson("kpack/verify/1", { strict: options.strict ?? false, archives: results });
        const status: ExitStatus = results.every(({ ok }) => ok) ? 0 : 1;
        return status;
      });
    });
}

interface VerifiedFile extends Partial<VerifyReport> {
  readonly file: string;
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

async function verifyFile(
  terminal: Terminal,
  file: string,
  options: { readonly strict?: true | undefined; readonly jobs?: number | undefined },
): Promise<VerifiedFile> {
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
    return { file, ok: !report.findings.some(fails), ...report };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return { file, ok: false, findings: [findingOrThrow(error)] };
  } finally {
    terminal.endProgress();
  }
}

function printResult(terminal: Terminal, result: VerifiedFile): void {
  const { file, ok, findings, entries = 0, decodedSize = 0, hashesChecked = 0, readers = [] } = result;
  for (const [, group] of Map.groupBy(findings, ({ code }) => code)) {
    for (const finding of group.slice(0, SHOWN)) terminal.print(formatFinding(finding, process.stdout));
    if (group.length > SHOWN)
      terminal.print(`  … and ${group.length - SHOWN} more of this kind (--json lists all)`);
  }
  for (const reader of readers) {
    if (!reader.accepts)
      terminal.print(`${reader.title}: would refuse it: ${printable(reader.reasons.join("; "))}`);
  }
  if (readers.length > 0 && readers.every(({ accepts }) => accepts)) {
    terminal.print("Accepted by ROCm's Python tools, both versions of its runtime, and HRX.");
  }
  const hashes = hashesChecked > 0 ? `, ${formatCount(hashesChecked, "hash", "hashes")} compared` : "";
  const what =
    readers.length > 0
      ? ` (${formatCount(entries, "entry", "entries")}, ${formatSize(decodedSize)} decoded${hashes})`
      : "";
  terminal.print(`${printable(file)}: ${ok ? "good" : "BAD"}${what}`);
}
