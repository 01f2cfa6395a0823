/**
 * The benchmark against the Python peer (bench/peer.py), whole processes in turn, medians of several rounds.
 *
 *   npm run bench -- [--library FILE] [--rounds N]
 *
 * FILE is a fat ELF binary with uncompressed bundles; Debian's librocsparse.so.0.1 is what the figures in
 * docs/benchmarks.md are about.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { cpus, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { compare, type Comparison, type Contestant, measure } from "./measure.ts";

const { values } = parseArgs({
  options: {
    library: {
      type: "string",
      default: join(process.env["KPACK_DEBIAN_LIBS"] ?? ".cache/debian-rocm", "librocsparse.so.0.1"),
    },
    rounds: { type: "string", default: "5" },
    small: { type: "string", default: "100000" },
  },
});
const rounds = Number(values.rounds);
const python = "/usr/bin/python3";
const node = process.execPath;
const folder = mkdtempSync(join(tmpdir(), "kpack-bench-"));
const ours = join(folder, "ours.kpack");
const peers = join(folder, "peer.kpack");

const kpack = (...args: string[]): Contestant => ({
  name: "kpack",
  command: [node, "dist/cli/main.js", ...args],
});
/** Programs run as users' JavaScript does: taking the types out takes Node longer than opening an archive. */
const compiled = ".cache/bench";
const program = (name: string, ...args: string[]): Contestant => {
  mkdirSync(compiled, { recursive: true });
  const path = `${compiled}/${name}.js`;
  writeFileSync(path, stripTypeScriptTypes(readFileSync(`bench/programs/${name}.ts`, "utf8")));
  return { name, command: [node, path, ...args] };
};
const peer = (...args: string[]): Contestant => ({
  name: "peer.py",
  command: [python, "bench/peer.py", ...args],
});

function report(job: string, { ours: own, peer: other, ratio }: Comparison, target: string): void {
  const row = [
    job.padEnd(46),
    `${own.seconds.toFixed(3)} s ${own.peakMegabytes.toFixed(0)} MB`.padEnd(18),
    `${other.seconds.toFixed(3)} s ${other.peakMegabytes.toFixed(0)} MB`.padEnd(18),
    `${ratio.toFixed(2)}x`.padEnd(8),
    target,
  ];
  console.log(row.join(" "));
}

try {
  execFileSync(node, ["scripts/build.ts"], { stdio: "inherit" });
  console.log(
    `node ${process.versions.node}, ${cpus().length} processors, medians of ${rounds} rounds after one to warm up\n`,
  );
  console.log(`${"job".padEnd(46)} ${"ours".padEnd(18)} ${"peer".padEnd(18)} ${"ratio".padEnd(8)} target`);
  if (existsSync(values.library)) {
    const name = basename(values.library);
    const packed = await compare(
      kpack("pack", "-q", values.library, "-o", ours),
      peer("pack", values.library, "-o", peers),
      rounds,
    );
    report(`pack ${name}`, packed, "<= 1.0x (try 0.85x), <= 350 MB");
    const sizes = statSync(ours).size / statSync(peers).size;
    console.log(
      `${"  archive size".padEnd(46)} ${String(statSync(ours).size).padEnd(18)} ${String(statSync(peers).size).padEnd(18)} ${sizes.toFixed(3)}x   <= 1.01x`,
    );
    const all = await compare(program("read-all", ours), peer("all", ours), rounds);
    report("decode every kernel of it", all, "<= 1.0x (try 0.6x), <= 350 MB");
    const { stdout } = await measure(program("open-and-get", ours).command);
    console.log(
      `open it and get one kernel, in process: ${stdout.trim()}  target ratio <= 1.5 (try 1.1), extra bytes <= 65536`,
    );
  } else console.log(`${values.library} is not here: see docs/benchmarks.md for how to get it`);
  const small = join(folder, "small.kpack");
  await measure(program("make-small-kernels", small, values.small).command);
  const middle = `lib/library/kernel_${String(Math.floor(Number(values.small) / 2)).padStart(6, "0")}.co#0`;
  const one = await compare(
    program("get-one", small, middle, "gfx942"),
    peer("get", small, middle, "gfx942"),
    Math.max(rounds, 7),
  );
  report(`open ${values.small} small kernels, get one`, one, "<= 1.2x (try 0.7x), <= 150 MB");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
