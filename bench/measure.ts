/** Runs whole processes and measures them from outside: wall time and peak memory. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

export interface Measurement {
  readonly seconds: number;
  /** Largest resident set of the process in MB (10^6 bytes). */
  readonly peakMegabytes: number;
  readonly stdout: string;
}

export interface Contestant {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

/** How often a process's high-water mark is looked at. It never falls, so only the last few milliseconds can be missed. */
const POLL_MILLISECONDS = 10;

export async function measure(command: readonly [string, ...string[]]): Promise<Measurement> {
  const [program, ...args] = command;
  const start = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  let peak = 0;
  const timer = setInterval(() => (peak = Math.max(peak, highWaterMark(child.pid ?? 0))), POLL_MILLISECONDS);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  clearInterval(timer);
  const seconds = (performance.now() - start) / 1000;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with status ${code}`);
  return { seconds, peakMegabytes: peak, stdout };
}

/** VmHWM of a process in MB; 0 when it is gone. */
function highWaterMark(pid: number): number {
  try {
    const match = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return (Number(match?.[1] ?? 0) * 1024) / 1e6;
  } catch {
    return 0; // it ended between two looks
  }
}

export interface Comparison {
  readonly ours: Measurement;
  readonly peer: Measurement;
  /** Median of the ratios of the rounds. */
  readonly ratio: number;
}

/** Runs two commands in turn, once to warm up and then `rounds` times, and takes medians. */
export async function compare(ours: Contestant, peer: Contestant, rounds: number): Promise<Comparison> {
  await measure(peer.command);
  await measure(ours.command);
  const pairs: { readonly ours: Measurement; readonly peer: Measurement }[] = [];
  for (let round = 0; round < rounds; round++) {
    const peerRun = await measure(peer.command);
    pairs.push({ peer: peerRun, ours: await measure(ours.command) });
  }
  return {
    ours: middle(pairs.map((pair) => pair.ours)),
    peer: middle(pairs.map((pair) => pair.peer)),
    ratio: median(pairs.map((pair) => pair.ours.seconds / pair.peer.seconds)),
  };
}

function middle(runs: readonly Measurement[]): Measurement {
  const last = runs.at(-1);
  if (!last) throw new RangeError("no rounds");
  return {
    seconds: median(runs.map((run) => run.seconds)),
    peakMegabytes: median(runs.map((run) => run.peakMegabytes)),
    stdout: last.stdout,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? upper)) / 2;
}
