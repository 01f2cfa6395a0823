/** The one test command: all tests under Node's test runner, or those whose path holds one of the arguments. */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const wanted = process.argv.slice(2);
const files = globSync("test/**/*.test.ts")
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .toSorted();
if (files.length === 0) {
  process.stderr.write(`no test file matches ${wanted.join(", ")}\n`);
  process.exit(1);
}
const { status } = spawnSync(
  process.execPath,
  ["--test", "--test-reporter=./scripts/count-reporter.ts", ...files],
  {
    stdio: "inherit",
  },
);
process.exitCode = status ?? 1;
