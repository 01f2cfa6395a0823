/**
 * Builds `dist` from `src`: a declaration file for each source, and the JavaScript in few files. Loading two hundred
 * small modules takes Node longer than most commands need.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { rollup } from "rollup";

const compiled = ".cache/build";

function compile(...options: readonly string[]): void {
  execFileSync("tsc", ["-p", "tsconfig.build.json", ...options], {
    stdio: "inherit",
    shell: process.platform === "win32",
  });
}

for (const folder of ["dist", compiled]) rmSync(folder, { recursive: true, force: true });
compile("--emitDeclarationOnly", "--outDir", "dist");
compile("--declaration", "false", "--removeComments", "--outDir", compiled);
const bundle = await rollup({
  input: {
    index: `${compiled}/index.js`,
    node: `${compiled}/node.js`,
    "cli/main": `${compiled}/cli/main.js`,
  },
  external: (id) => !id.startsWith(".") && !id.startsWith("/"),
  onwarn: (warning) => {
    // TypeScript's helper for `using` begins with `this &&`.
    if (warning.code !== "THIS_IS_UNDEFINED") throw new Error(`rollup: ${warning.message}`);
  },
});
await bundle.write({
  dir: "dist",
  format: "esm",
  // One folder below `dist`, as in `src`: package.json is found from there.
  chunkFileNames: "chunks/[name].js",
});
await bundle.close();
chmodSync("dist/cli/main.js", 0o755);
