import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseJson } from "./parse-json.ts";

export const PROJECT = join(import.meta.dirname, "../..");
export const MAIN = join(PROJECT, "src/cli/main.ts");
export const FIXTURES = join(PROJECT, "test/fixtures");

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly nodeArgs?: readonly string[];
}

function environment(more: RunOptions["env"]): NodeJS.ProcessEnv {
  // CI, where it is set, turns colours off.
  const { NO_COLOR: _, FORCE_COLOR: _2, NODE_OPTIONS: _3, CI: _4, ...rest } = process.env;
  return { ...rest, ...more };
}

/** Runs the real command in a process of its own. */
export async function kpack(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), MAIN, ...args], {
    cwd: options.cwd ?? FIXTURES,
    env: environment(options.env),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 30_000,
  });
  const texts = ["", ""];
  for (const [index, stream] of [child.stdout, child.stderr].entries()) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => (texts[index] += text));
  }
  return await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, stdout: texts[0] ?? "", stderr: texts[1] ?? "" }));
  });
}

/** Runs many commands one after another in one process of their own: see many-runs.ts. */
export function runMany(lists: readonly (readonly string[])[]): readonly Ran[] {
  const { stdout, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, "many-runs.ts")], {
    input: JSON.stringify(lists),
    cwd: FIXTURES,
    env: environment({}),
    encoding: "utf8",
    timeout: 60_000,
  });
  if (stderr !== "") throw new Error(stderr);
  return parseJson<readonly Ran[]>(stdout);
}

/** Runs a line of sh, in which `$KPACK` stands for the command. */
export function shell(line: string, options: RunOptions = {}): Ran {
  const { status, stdout, stderr } = spawnSync("/bin/bash", ["-c", line], {
    cwd: options.cwd ?? FIXTURES,
    env: environment({ KPACK: `${process.execPath} ${MAIN}`, ...options.env }),
    encoding: "utf8",
    timeout: 30_000,
  });
  return { status, stdout, stderr };
}

/** The one JSON document that stdout must hold. */
export function document(ran: Ran): Record<string, unknown> {
  return parseJson<Record<string, unknown>>(ran.stdout);
}
