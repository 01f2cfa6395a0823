import assert from "node:assert/strict";
import { test } from "node:test";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { buildHost } from "../support/host-builder.ts";
import { documentsAt, parseDocument } from "../support/json-document.ts";
import { kpack } from "../support/run-kpack.ts";
import { TemporaryTree } from "../support/trees.ts";

const HOST = { kernelName: "a.so", searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 1 };

test("doctor of the current folder finds the libraries of Python packages", async () => {
  using tree = new TemporaryTree();
  tree.write("torch/lib/a.so", buildHost(HOST));
  tree.write("torch-2.dist-info/METADATA", "Name: torch\nVersion: 2\n");
  tree.write("torch-2.dist-info/RECORD", "torch/lib/a.so,,\n");
  for (const path of [".", "./torch-2.dist-info/..", "../" + (tree.path.split("/").at(-1) ?? "")]) {
    const { stdout } = await kpack(["doctor", path, "--json"], { cwd: tree.path });
    assert.deepEqual(
      documentsAt(parseDocument(stdout), "packages").map(({ name }) => name),
      ["torch"],
      path,
    );
  }
});

test("notes about an ISA fit the terminal", async () => {
  using tree = new TemporaryTree();
  tree.write("lib/a.so", buildHost(HOST));
  const { stderr, status } = await kpack(["doctor", tree.path, "--isa", "gfx942"]);
  assert.equal(status, 1);
  assert.match(stderr, /^an agent of gfx942 reports sramecc and xnack too/);
  for (const line of stderr.split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
});
