import { mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { AccessError } from "../errors/errors.ts";

/** An llvm-objdump of this machine. */
export interface Disassembler {
  readonly path: string;
  /** For example `19.1.7`. */
  readonly version: string;
}

export interface DisassembleOptions {
  /** Symbols of the kernel functions to show. @default all code */
  readonly symbols?: readonly string[] | undefined;
  /** For messages. */
  readonly target: string;
  /** Folders to look into, in place of PATH and the usual places of LLVM and ROCm. */
  readonly folders?: readonly string[] | undefined;
  /** A tool that prints nothing for so many milliseconds is ended. @default 60000 */
  readonly patience?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Disassembly {
  readonly tool: Disassembler;
  readonly text: string;
}

const USUAL_PATIENCE = 60_000;
/** Text of a very large code object, and an end for a tool that runs wild. */
const MOST_TEXT_BYTES = 1 << 29;
/** `	s_endpgm    // 000000001500: BF810000` */
const INSTRUCTION = /^\s+[a-z]\w*.*\/\/ [0-9A-Fa-f]+: /m;

/**
 * Disassembles a code object with the newest llvm-objdump that knows its target. Old versions refuse new targets or
 * crash on them, so each is tried until one gives instructions.
 *
 * @throws AccessError `READ_FAILED` when none is installed, or when all of them fail, saying what each said
 */
export async function disassemble(codeObject: Uint8Array, options: DisassembleOptions): Promise<Disassembly> {
  const tools = await findDisassemblers(options);
  if (tools.length === 0) {
    throw new AccessError("READ_FAILED", "there is no llvm-objdump on this machine to disassemble with", {
      hint: "Install LLVM (Debian: apt-get install llvm-19), or ROCm's own in /opt/rocm/llvm/bin.",
    });
  }
  const folder = await mkdtemp(join(tmpdir(), "kpack-disassembly-"));
  try {
    const file = join(folder, "kernel.hsaco");
    await writeFile(file, codeObject, { mode: 0o600 });
    const failures: string[] = [];
    for (const tool of tools) {
      const symbols = options.symbols?.length ? [`--disassemble-symbols=${options.symbols.join(",")}`] : [];
      const result = await runTool(tool.path, ["--disassemble", ...symbols, file], options);
      if (result.failure === undefined && INSTRUCTION.test(result.text)) {
        // The file's name is that of a temporary one: nothing to show.
        return { tool, text: result.text.replace(/^.*file format .*$/m, "").trimStart() };
      }
      failures.push(`llvm-objdump ${tool.version} ${result.failure ?? "gave no instructions"}`);
    }
    throw new AccessError(
      "READ_FAILED",
      `no llvm-objdump here can disassemble ${options.target}: ${failures.join("; ")}`,
      {
        hint: "Install a newer LLVM: each GPU generation needs one that is newer than itself.",
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The llvm-objdump programs of this machine, newest first: in PATH, of LLVM packages, of ROCm. */
export async function findDisassemblers(
  options: Pick<DisassembleOptions, "folders" | "patience" | "signal"> = {},
): Promise<readonly Disassembler[]> {
  const tools = new Map<string, Disassembler>();
  for (const folder of options.folders ?? (await usualFolders())) {
    for (const name of await namesIn(folder)) {
      if (!/^llvm-objdump(?:-\d+)?(?:\.exe)?$/.test(name)) continue;
      const path = join(folder, name);
      const real = await realpath(path).catch(() => undefined); // a dangling link
      if (real === undefined || tools.has(real)) continue;
      const { text, failure } = await runTool(path, ["--version"], options);
      const version = /version (\d+(?:\.\d+)*)/.exec(text)?.[1];
      if (failure === undefined && version !== undefined) tools.set(real, { path, version });
    }
  }
  return [...tools.values()].toSorted((a, b) => compareVersions(b.version, a.version));
}

async function usualFolders(): Promise<readonly string[]> {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  for (const name of await namesIn("/usr/lib")) {
    if (/^llvm-\d+$/.test(name)) folders.push(`/usr/lib/${name}/bin`);
  }
  for (const name of await namesIn("/opt")) {
    if (/^rocm(?:-|$)/.test(name)) folders.push(`/opt/${name}/llvm/bin`, `/opt/${name}/lib/llvm/bin`);
  }
  return folders;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch(() => []); // most of these folders are not there
}

interface ToolResult {
  readonly text: string;
  /** What went wrong, as the end of a sentence about the tool. */
  readonly failure: string | undefined;
}

async function runTool(
  path: string,
  args: readonly string[],
  { signal, patience = USUAL_PATIENCE }: Pick<DisassembleOptions, "patience" | "signal">,
): Promise<ToolResult> {
  signal?.throwIfAborted();
  const { execFile } = await import("node:child_process"); // rarely needed, and slow to load
  return await new Promise((resolve, reject) => {
    const options = { maxBuffer: MOST_TEXT_BYTES, ...(signal && { signal }) };
    let isSilent = false;
    const child = execFile(path, args, options, (error, stdout, stderr) => {
      clearTimeout(timer);
      if (signal?.aborted) return reject(signal.reason);
      if (isSilent) return resolve({ text: "", failure: `printed nothing for ${patience / 1000} s` });
      const said = stderr
        .split("\n")
        .find((line) => line.trim() !== "")
        ?.trim();
      // LLVM goes on without the processor that it does not know, and then shows wrong instructions.
      const unknown = /not a recognized processor/.test(stderr);
      resolve({ text: stdout, failure: error || unknown ? failureOf(error, said) : undefined });
    });
    const timer = setTimeout(() => {
      isSilent = true;
      child.kill("SIGKILL");
      // A child of its own may hold them open.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, patience);
    child.stdout?.on("data", () => timer.refresh());
  });
}

function failureOf(error: (Error & { readonly signal?: unknown }) | null, said: string | undefined): string {
  if (error && typeof error.signal === "string") return `crashed (${error.signal})`;
  if (said === undefined) return "failed";
  if (/unable to get target|can't find target|not a recognized processor/.test(said))
    return "does not know it";
  return `said: ${said.slice(0, 200)}`;
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split(".").map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
