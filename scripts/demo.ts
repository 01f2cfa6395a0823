/** The main job on the example binaries: pack, list, verify, extract. Every step is the command that a user would type. */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";

const output = "demo-output";
rmSync(output, { recursive: true, force: true });
const archive = `${output}/fx.kpack`;
const steps: readonly (readonly string[])[] = [
  [
    "pack",
    "examples/fat-binaries",
    "--root",
    "examples/fat-binaries",
    "--group",
    "fx",
    "-o",
    archive,
    "--verify",
  ],
  ["list", archive],
  ["info", archive],
  ["verify", archive],
  ["extract", archive, "--targets", "gfx942", "-o", `${output}/kernels`],
];
for (const step of steps) {
  console.log(`\n$ kpack ${step.join(" ")}`);
  const { status } = spawnSync(process.execPath, ["src/cli/main.ts", ...step], { stdio: "inherit" });
  if (status !== 0) {
    process.exitCode = status ?? 1;
    break;
  }
}
if (process.exitCode === undefined)
  console.log(`\nThe archive and the extracted code objects are in ${output}/.`);
