/** Builds `dist` from `src`: JavaScript and declarations, nothing bundled. */
import { execFileSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync("tsc", ["-p", "tsconfig.build.json"], { stdio: "inherit", shell: process.platform === "win32" });
chmodSync("dist/cli/main.js", 0o755);
