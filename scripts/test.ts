/**
 * The one test command: all tests under Node's test runner, or those whose path holds one of the arguments; with `--unit`
 * none that start the command, install the package, need other programs or go through thousands of damaged inputs.
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

/** Files by path; those that try many damaged or very large inputs take longer than all others. */
const UNIT = /^test.(?!cli|docs|interop|package)(?!.*(?:hostile|fuzz|mutated|extreme|bench|convert-scheme))/;
const isUnit = process.argv.includes("--unit");
const wanted = process.argv.slice(2).filter((argument) => argument !== "--unit");
const files = globSync("test/**/*.test.ts")
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .filter((file) => !isUnit || UNIT.test(file))
  .toSorted();
if (files.length === 0) {
  process.stderr.write(`no test file matches ${wanted.join(", ")}\n`);
  process.exit(1);
}
// Each file has a process of its own, and much of its time went into stripping types: the cache keeps the result.
const cache = { NODE_COMPILE_CACHE: resolve("node_modules/.cache/compiled") };
const options = [
  `--test-concurrency=${availableParallelism()}`,
  "--test-reporter=./scripts/count-reporter.ts",
];
const { status } = spawnSync(process.execPath, ["--test", ...options, ...files], {
  stdio: "inherit",
  env: { ...cache, ...process.env },
});
process.exitCode = status ?? 1;
