import type { Command } from "@commander-js/extra-typings";
import type { Archive } from "../../archive/archive.ts";
import type { ArchiveEntry } from "../../archive/archive-entry.ts";
import { NotFoundError } from "../../errors/errors.ts";
import { matchesAnySelection } from "../../target/target-id.ts";
import { jobsOption, jsonOption, quietOption, targetsOption } from "../arguments.ts";
import type { ExitStatus } from "../exit-status.ts";
import type { RunCommand } from "../run-command.ts";
import { formatCount, formatSize } from "../render/numbers.ts";
import { UsageError } from "../report-error.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
With a key and a target, one kernel goes to the file -o ("-": stdout). Without them, all kernels, or
those for --targets, go into the folder -o, each as TARGET/KEY.hsaco; what could lead out of the
folder is written as %XX.

Examples:
  kpack extract rocsparse.kpack lib/librocsparse.so.0.1#0 gfx1030 -o kernel.hsaco
  kpack extract rocsparse.kpack lib/librocsparse.so.0.1#0 gfx1030 -o - | llvm-readobj --notes -
  kpack extract rocsparse.kpack --targets gfx1030 -o kernels/`;

export function addExtract(program: Command, run: RunCommand): void {
  program
    .command("extract")
    .description("Get one kernel out of an archive, or all of them into a folder.")
    .argument("<archive>", "a .kpack archive")
    .argument("[key]", "binary key, as list shows it")
    .argument("[target]", "target, as list shows it; may be left out where the binary has just one")
    .requiredOption("-o, --output <path>", "file for one kernel, folder for all")
    .addOption(targetsOption)
    .addOption(jobsOption)
    .addOption(jsonOption)
    .addOption(quietOption)
    .addHelpText("after", EXAMPLES)
    .action(async (file, key, target, options) => {
      await run(options, async (terminal) => {
        if (key !== undefined && options.targets)
          throw new UsageError("give a key, or --targets, but not both");
        if (key === undefined && options.output === "-")
          throw new UsageError("-o - takes one kernel: give its key");
        if (options.json && options.output === "-")
          throw new UsageError("--json and -o - both write to stdout");
        const { openArchive } = await import("../../archive/open-archive.node.ts");
        const { openFile } = await import("../../source/file-source.node.ts");
        await using archive = await openArchive(await openFile(file), { signal: terminal.signal });
        if (key !== undefined) return await extractOne(terminal, archive, key, target, options.output);
        return await extractAll(terminal, archive, options);
      });
    });
}

async function extractOne(
  terminal: Terminal,
  archive: Archive,
  key: string,
  wantedTarget: string | undefined,
  output: string,
): Promise<ExitStatus> {
  const { signal } = terminal;
  const target = wantedTarget ?? onlyTarget(archive, key);
  const bytes = await archive.readKernel(key, target, { checkHash: true, signal });
  if (output === "-") {
    await terminal.printBytes(bytes);
    return 0;
  }
  const { createFile } = await import("../../sink/file-sink.node.ts");
  const { isSameFile } = await import("../../operations/find-inputs.node.ts");
  if (await isSameFile(output, archive.source.name)) throw new UsageError("the output is the archive itself");
  await using sink = await createFile(output);
  await sink.write(bytes);
  await sink.commit();
  if (terminal.json)
    terminal.printJson("kpack/extract/1", {
      files: [{ binaryKey: key, target, path: output, size: bytes.length }],
      findings: [],
    });
  else terminal.note(`${output}: ${formatSize(bytes.length)}`);
  return 0;
}

function onlyTarget(archive: Archive, key: string): string {
  const targets = [...archive.entries]
    .filter((entry) => entry.binaryKey === key)
    .map((entry) => entry.target);
  if (targets.length > 1) throw new UsageError(`${key} has kernels for ${targets.join(", ")}: say which`);
  return targets[0] ?? ""; // no such key: the archive says so
}

async function extractAll(
  terminal: Terminal,
  archive: Archive,
  options: {
    readonly output: string;
    readonly targets?: readonly string[] | undefined;
    readonly jobs?: number | undefined;
  },
): Promise<ExitStatus> {
  const { extractKernels } = await import("../../operations/extract.node.ts");
  const entries: readonly ArchiveEntry[] = [...archive.entries].filter(({ target }) =>
    matchesAnySelection(target, options.targets),
  );
  if (entries.length === 0) {
    throw new NotFoundError("NOTHING_FOUND", "the archive has no kernel to extract", {
      file: archive.source.name,
      expected: options.targets?.join(", "),
      found: archive.toc.entries.targetNames.join(", ") || "none",
    });
  }
  const { findings, onFinding } = terminal.gatherFindings();
  const files = await extractKernels(archive, options.output, {
    entries,
    jobs: options.jobs,
    onFinding,
    onProgress: terminal.onProgress(),
    signal: terminal.signal,
  });
  terminal.endProgress();
  const size = files.reduce((sum, extracted) => sum + extracted.size, 0);
  if (terminal.json) terminal.printJson("kpack/extract/1", { files, findings });
  else terminal.note(`${options.output}: ${formatCount(files.length, "kernel")}, ${formatSize(size)}`);
  return findings.length > 0 ? 1 : 0;
}
