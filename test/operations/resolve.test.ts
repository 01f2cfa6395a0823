import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { test } from "node:test";
import { addResolve } from "../../src/cli/commands/resolve.ts";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { resolveBinary } from "../../src/operations/resolve.node.ts";
import { fixtureBytes, fixturesOf } from "../bundle/host-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { buildHost } from "../support/host-builder.ts";
import { documentsAt, parseDocument } from "../support/json-document.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";
import { sha256 } from "../support/kernels.ts";

const NAME = "lib/libtorch_hip.so";

async function torchTree(): Promise<TemporaryTree> {
  const tree = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 3 };
  tree.write(NAME, buildHost(host));
  tree.write(".kpack/torch_gfx90a.kpack", await archiveBytes({ targets: { gfx90a: keys(NAME, 3) } }));
  tree.write(
    ".kpack/torch_gfx90a:xnack-.kpack",
    await archiveBytes({ targets: { "gfx90a:xnack-": keys(NAME, 1) } }),
  );
  return tree;
}

/** The text with the tree's path replaced, so that it is the same each time. */
function stable(text: string, tree: TemporaryTree): string {
  return text.replaceAll(tree.path, "TREE").trimEnd();
}

test("one wrapper shows every step", async () => {
  using tree = await torchTree();
  const isa = "gfx90a:sramecc+:xnack-";
  const { status, text } = await runCommand(
    addResolve,
    "resolve",
    tree.at(NAME),
    "--isa",
    isa,
    "--index",
    "2",
  );
  assert.equal(status, 0);
  assert.equal(
    stable(text, tree),
    `
TREE/lib/libtorch_hip.so
  wrapper 2, key lib/libtorch_hip.so#2
  for gfx90a:sramecc+:xnack-; loader: current

HIPK metadata
  kernel_name  lib/libtorch_hip.so
  search path  ../.kpack/torch_@GFXARCH@.kpack

Environment (only what --env gives)
  none

Paths, in the order in which they are looked at
   1  missing TREE/.kpack/torch_gfx90a:sramecc+:xnack-.kpack
   2  missing TREE/.kpack/torch_gfx90a:sramecc+.kpack
   3  opened  TREE/.kpack/torch_gfx90a:xnack-.kpack
   4  opened  TREE/.kpack/torch_gfx90a.kpack

Candidates, in the order in which they are tried
   1  gfx90a:xnack-: KPACK_ERROR_KERNEL_NOT_FOUND (5), torch_gfx90a:xnack-.kpack: of
      lib/libtorch_hip.so for gfx90a:xnack- it has #0 only
   2  gfx90a: found, torch_gfx90a.kpack

Found: ordinal 2, 2.0 kB, for gfx90a
  TREE/.kpack/torch_gfx90a.kpack
  XXH64    ${/XXH64 +([0-9a-f]{16})/.exec(text)?.[1]}, as the archive says
  SHA-256  ${sha256(codeObject("gfx90a", `${NAME}#2`))}`.trimStart(),
  );
});

test("all wrappers are a table, and the failures of one kind are explained once", async () => {
  using tree = await torchTree();
  const isa = "gfx90a:sramecc+:xnack-";
  const args = ["resolve", tree.at(NAME), "--isa", isa, "--loader", "before-2026-08"];
  const { status, text } = await runCommand(addResolve, ...args);
  assert.equal(status, 1);
  const table = stable(text, tree).slice(text.indexOf("WRAPPER") - (tree.path.length - 4) * 5);
  assert.equal(
    table,
    `
WRAPPER  INDEX  TARGET           SIZE  ARCHIVE OR FAILURE
      0     #0  gfx90a:xnack-  2.0 kB  torch_gfx90a:xnack-.kpack
      1     #1  -                   -  KPACK_ERROR_KERNEL_NOT_FOUND (5)
      2     #2  -                   -  KPACK_ERROR_KERNEL_NOT_FOUND (5)

2 wrappers: KPACK_ERROR_KERNEL_NOT_FOUND (5): of lib/libtorch_hip.so for gfx90a:xnack- it has #0
  only
  What to do: Use ROCm later than 7.14, which goes on to the next archive, or take
  torch_gfx90a:xnack-.kpack away: it has only some of the kernels and hides the others.

1 of 3 wrappers found`.trimStart(),
  );
  for (const line of stable(text, tree).split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
});

test("--json has the same steps", async () => {
  using tree = await torchTree();
  const { text } = await runCommand(addResolve, "resolve", tree.at(NAME), "--isa", "gfx90a:xnack-", "--json");
  const document = parseDocument(stable(text, tree));
  assert.deepEqual(Object.keys(document), [
    "schema",
    "binary",
    "format",
    "behaviour",
    "isas",
    "environment",
    "notes",
    "findings",
    "metadata",
    "paths",
    "archives",
    "wrappers",
  ]);
  assert.equal(document["schema"], "kpack/resolve/1");
  assert.deepEqual(documentsAt(document, "paths")[0], {
    origin: "embedded",
    text: "../.kpack/torch_@GFXARCH@.kpack",
    isa: "gfx90a:xnack-",
    target: "gfx90a:xnack-",
    path: "TREE/.kpack/torch_gfx90a:xnack-.kpack",
    realPath: "TREE/.kpack/torch_gfx90a:xnack-.kpack",
    openedBefore: false,
    fate: "opened",
  });
  const [first] = documentsAt(document, "wrappers");
  assert.deepEqual([first?.["wrapper"], first?.["key"], first?.["index"]], [0, `${NAME}#0`, 0]);
});

test("the loader's variables come from --env alone", async () => {
  using tree = await torchTree();
  const args = ["resolve", tree.at(NAME), "--isa", "gfx90a", "--index", "0"];
  process.env["ROCM_KPACK_DISABLE"] = "1";
  try {
    assert.equal((await runCommand(addResolve, ...args)).status, 0);
  } finally {
    delete process.env["ROCM_KPACK_DISABLE"];
  }
  const refused = await runCommand(addResolve, ...args, "--env", "ROCM_KPACK_DISABLE=1");
  assert.equal(refused.status, 1);
  assert.match(refused.text, /KPACK_ERROR_NOT_IMPLEMENTED \(8\)[^]*Unset ROCM_KPACK_DISABLE/);
  const two = [
    "--env",
    `ROCM_KPACK_PATH=${tree.at(".kpack/torch_gfx90a.kpack")}`,
    "--env",
    "ROCM_KPACK_DEBUG=1",
  ];
  assert.match((await runCommand(addResolve, ...args, ...two)).text, /\(ROCM_KPACK_PATH\)/);
  assert.equal((await runCommand(addResolve, ...args, "--env", "PATH=/bin")).status, 2);
  assert.equal((await runCommand(addResolve, ...args, "--env", "ROCM_KPACK_PATH")).status, 2);
});

test("metadata that the loader cannot read is error 12 for every wrapper", async () => {
  using tree = new TemporaryTree();
  const isas = ["gfx942"];
  for (const metadata of [{ kernel_name: "a", kpack_search_paths: [] }, { kpack_search_paths: ["x"] }, [1]]) {
    const report = await resolveBinary(tree.write("a.so", buildHost({ metadata, wrappers: 2 })), { isas });
    assert.deepEqual(
      report.wrappers.map(({ answer }) => answer.failure?.status.number),
      [12, 12],
    );
    assert.match(report.wrappers[0]?.remedy ?? "", /Install the library anew/);
  }
  const found = tree.write(
    "a.so",
    buildHost({ kernelName: "a.so", searchPaths: [1, "@GFXARCH@.kpack"], wrappers: 1 }),
  );
  tree.write("gfx942.kpack", await archiveBytes({ targets: { gfx942: ["a.so#0"] } }));
  const { wrappers } = await resolveBinary(found, { isas });
  assert.equal(wrappers[0]?.answer.kernel?.ordinal, 0);
});

test("the index that a wrapper holds counts, not its position", async () => {
  using tree = new TemporaryTree();
  const host = { kernelName: "a.so", searchPaths: ["@GFXARCH@.kpack"], wrappers: [1, 0, 5] };
  const path = tree.write("a.so", buildHost(host));
  tree.write("gfx942.kpack", await archiveBytes({ targets: { gfx942: keys("a.so", 2) } }));
  const { wrappers } = await resolveBinary(path, { isas: ["gfx942"] });
  assert.deepEqual(
    wrappers.map(({ answer }) => [answer.key, answer.kernel?.ordinal]),
    [
      ["a.so#1", 1],
      ["a.so#0", 0],
      ["a.so#5", undefined],
    ],
  );
});

test("wrappers that ask for one index get one answer", async () => {
  using tree = new TemporaryTree();
  const host = { kernelName: "a.so", searchPaths: ["@GFXARCH@.kpack"], wrappers: [0, 0, 1, 1] };
  const path = tree.write("a.so", buildHost(host));
  tree.write("gfx942.kpack", await archiveBytes({ targets: { gfx942: ["a.so#0"] } }));
  const { wrappers } = await resolveBinary(path, { isas: ["gfx942"] });
  assert.deepEqual(
    wrappers.map(({ wrapper, answer }) => [wrapper, answer.kernel?.ordinal]),
    [
      [0, 0],
      [1, 0],
      [2, undefined],
      [3, undefined],
    ],
  );
  assert.equal(wrappers[0]?.answer, wrappers[1]?.answer);
  assert.equal(wrappers[2]?.answer, wrappers[3]?.answer);
});

test("what the loader is not asked about is said", async () => {
  using tree = new TemporaryTree();
  const isas = ["gfx942"];
  const fat = tree.write("fat.so", fixtureBytes("C/libfx_single.so"));
  await kpackError(async () => await resolveBinary(fat, { isas }), "NOTHING_FOUND");
  const host = { kernelName: "a", searchPaths: ["b"], wrappers: 2 };
  const half = tree.write("half.so", buildHost({ ...host, magic: ["HIPK", "HIPF"] }));
  await kpackError(async () => await resolveBinary(half, { isas }), "HALF_CONVERTED", /wrapper\[1\]/);
  const whole = tree.write("whole.so", buildHost(host));
  await kpackError(async () => await resolveBinary(whole, { isas, index: 2 }), "NOTHING_FOUND", /--index/);
  const text = tree.write("text", "no binary");
  await kpackError(async () => await resolveBinary(text, { isas }), "NO_DEVICE_CODE");
  assert.equal((await runCommand(addResolve, "resolve", tree.at("none"), "--isa", "gfx942")).status, 2);
  assert.equal((await runCommand(addResolve, "resolve", whole)).status, 2);
});

for (const [name] of fixturesOf("transformed")) {
  test(`${name} resolves against an archive of its keys`, async () => {
    using tree = new TemporaryTree();
    const file = name.split("/").at(-1) ?? "";
    const path = tree.write(`lib/${file}`, "");
    copyFileSync(new URL(`../fixtures/${name}`, import.meta.url), path);
    const { metadata, wrappers } = await resolveBinary(path, { isas: ["gfx1100"] });
    assert.ok(wrappers.every(({ answer }) => answer.failure !== undefined));
    // ROCm's converter loses the pointers of these two.
    const isLost = file === "fx_app_nopie" || file === "libfx_relr.so";
    assert.equal(wrappers[0]?.answer.failure?.status.number, isLost ? 12 : 13);
    const { kernelName = "" } = metadata ?? {};
    const archive = { targets: { gfx1100: keys(kernelName, wrappers.length) } };
    tree.write(".kpack/fx_gfx1100.kpack", await archiveBytes(archive));
    const report = await resolveBinary(path, { isas: ["gfx1100"] });
    assert.equal(
      report.wrappers.every(({ answer }) => answer.kernel !== undefined),
      !isLost,
    );
  });
}
