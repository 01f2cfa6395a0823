import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { it } from "node:test";
import { PROJECT } from "../support/run-kpack.ts";
import { parseJson } from "../support/parse-json.ts";
import { tempFolder } from "../support/temp-folder.ts";

const PACKAGE_LIMIT = 400_000;
const INSTALLED_LIMIT = 3_000_000;

/** npm and npx with the Node that runs the tests in front. */
function run(
  command: string,
  args: readonly string[],
  cwd: string,
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const bin = join(PROJECT, "node_modules/.bin");
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: {
      ...process.env,
      PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
      NODE_OPTIONS: "",
      npm_config_ignore_scripts: "true",
    },
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

it("the package is small, installs alone, and works: command, both entries, types", {
  timeout: 240_000,
}, (context) => {
  const folder = tempFolder(context);
  // Built from a copy of the sources, so that nobody's dist is touched.
  const copy = join(folder, "source");
  mkdirSync(copy);
  const names = [
    "src",
    "scripts",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "docs",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
  ];
  for (const name of names.filter((one) => existsSync(join(PROJECT, one))))
    cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  symlinkSync(join(PROJECT, "node_modules"), join(copy, "node_modules"));
  const built = run("node", ["scripts/build.ts"], copy);
  assert.equal(built.status, 0, built.stdout + built.stderr);

  const packed = run("npm", ["pack", "--json", "--ignore-scripts"], copy);
  assert.equal(packed.status, 0, packed.stderr);
  const [tarball] = parseJson<
    readonly { filename: string; size: number; files: readonly { path: string }[] }[]
  >(packed.stdout);
  assert.ok(tarball);
  assert.ok(tarball.size < PACKAGE_LIMIT, `${tarball.size} bytes`);
  const outside = tarball.files.filter(
    ({ path }) =>
      !/^(?:dist\/.*\.(?:js|d\.ts)|docs\/(?:commands\/)?\w+\.md|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(
        path,
      ),
  );
  assert.deepEqual(outside, []);

  const consumer = join(folder, "consumer");
  mkdirSync(consumer);
  writeFileSync(join(consumer, "package.json"), '{"name":"consumer","private":true,"type":"module"}');
  const installed = run(
    "npm",
    ["install", "--no-audit", "--no-fund", join(copy, tarball.filename)],
    consumer,
  );
  if (
    installed.status !== 0 &&
    !process.env["CI"] &&
    /EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|network/i.test(installed.stderr)
  )
    return context.skip("no network to install the dependencies");
  assert.equal(installed.status, 0, installed.stderr);
  const bytes = Number(
    /^\d+/.exec(execFileSync("du", ["-sb", join(consumer, "node_modules")], { encoding: "utf8" }))?.[0],
  );
  assert.ok(bytes > 0 && bytes <= INSTALLED_LIMIT, `${bytes} bytes installed`);

  cpSync(join(PROJECT, "examples/fat-binaries/libfx_multi3.so"), join(consumer, "libfx_multi3.so"));
  assert.match(run("npx", ["--no-install", "kpack", "--version"], consumer).stdout, /^\d+\.\d+\.\d+\n$/);
  const pack = run(
    "npx",
    ["--no-install", "kpack", "pack", "libfx_multi3.so", "-o", "fx.kpack", "--verify"],
    consumer,
  );
  assert.deepEqual([pack.status, pack.stdout], [0, ""]);
  assert.match(pack.stderr, /^fx\.kpack: 9 kernels for [^\n]*\n$/);
  const list = run("npx", ["--no-install", "kpack", "list", "fx.kpack", "--json"], consumer);
  assert.equal(parseJson<{ readonly entries: readonly unknown[] }>(list.stdout).entries.length, 9);

  const program = `
import { isKpackError, memorySink, none, type Archive, writeArchive } from "rocm-kpack";
import { openArchive, openFile, pack } from "rocm-kpack/node";
const archive: Archive = await openArchive(await openFile("fx.kpack"));
const [entry] = archive.entries;
if (!entry) throw new Error("empty");
const kernel: Uint8Array = await archive.readKernel(entry, { checkHash: true });
const sink = memorySink();
const kernels = [{ kernel: { size: kernel.length, read: async () => kernel }, entries: [{ binaryKey: "k#0", target: entry.target }] }];
await writeArchive(sink, kernels, { groupName: "g", family: "f", scheme: none });
const error: unknown = await pack({ inputs: ["fx.kpack"], output: "no.kpack", onFinding: () => undefined }).catch((fault: unknown) => fault);
console.log(kernel.length, sink.bytes().length > kernel.length, isKpackError(error, "NO_DEVICE_CODE"));
await archive[Symbol.asyncDispose]();
`;
  writeFileSync(join(consumer, "program.ts"), program);
  const ran = run("node", ["program.ts"], consumer);
  assert.match(ran.stdout, /^\d+ true true\n$/, ran.stderr);
  const types = join(consumer, "node_modules/@types");
  mkdirSync(types, { recursive: true });
  symlinkSync(join(PROJECT, "node_modules/@types/node"), join(types, "node"));
  symlinkSync(join(PROJECT, "node_modules/undici-types"), join(consumer, "node_modules/undici-types"));
  const options = [
    "--strict",
    "--skipLibCheck",
    "false",
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--lib",
    "es2024,esnext.disposable",
    "--noEmit",
    "--types",
    "node",
    "program.ts",
  ];
  const compiled = run("tsc", options, consumer);
  assert.equal(compiled.status, 0, compiled.stdout);
});
