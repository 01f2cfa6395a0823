import assert from "node:assert/strict";
import { test } from "node:test";
import { diagnose } from "../../src/operations/doctor/doctor.node.ts";
import { buildHost } from "../support/host-builder.ts";
import { archiveBytes, keys, TemporaryTree } from "../support/trees.ts";

/** Kernel databases and Python packages, where a tree has several of them. */

test("one index serves the code objects of all flag variants", async () => {
  using tree = new TemporaryTree();
  for (const name of [
    "Kernels.so-000-gfx90a.hsaco",
    "Kernels.so-000-gfx90a-xnack+.hsaco",
    "Kernels.so-000-gfx90a-xnack-.hsaco",
    "TensileLibrary_Type_SS_fallback_gfx90a-xnack-.hsaco",
    "TensileLibrary_lazy_gfx90a.dat",
  ]) {
    tree.write(`lib/rocblas/library/${name}`, "x");
  }
  assert.deepEqual((await diagnose([tree.path])).findings, []);
});

test("an index is not without code objects when a variant has them", async () => {
  using tree = new TemporaryTree();
  tree.write("lib/rocblas/library/Kernels.so-000-gfx942-xnack+.hsaco", "x");
  tree.write("lib/rocblas/library/TensileLibrary_lazy_gfx942.dat", "x");
  tree.write("lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat", "x");
  const { findings } = await diagnose([tree.path]);
  assert.deepEqual(
    findings.map(({ code, evidence }) => [code, evidence]),
    [
      [
        "KP601",
        ["rocblas for gfx90a: 0 code object(s), 1 index(es); it lacks the code objects (.co, .hsaco)"],
      ],
    ],
  );
});

test("each copy of a kernel database is judged by itself", async () => {
  using tree = new TemporaryTree();
  tree.write("x/rocblas/library/T_gfx1100.co", "x");
  tree.write("x/rocblas/library/T_gfx1100.dat", "x");
  tree.write("y/rocblas/library/T_gfx1100.co", "x");
  tree.write("x/share/miopen/db/gfx90a68.kdb", "x");
  tree.write("y/share/miopen/db/gfx1100_48.db.txt", "x");
  const report = await diagnose([tree.path], { isas: ["gfx1100"] });
  assert.deepEqual(
    report.findings.map(({ code, files }) => [code, files]),
    [
      ["KP601", [tree.at("y/rocblas/library")]],
      ["KP602", [tree.at("x/share/miopen/db")]],
    ],
  );
  assert.deepEqual(
    report.databases.map(({ library, folder, files }) => [library, folder, files]),
    [
      ["miopen", tree.at("x/share/miopen/db"), 1],
      ["miopen", tree.at("y/share/miopen/db"), 1],
      ["rocblas", tree.at("x/rocblas/library"), 2],
      ["rocblas", tree.at("y/rocblas/library"), 1],
    ],
  );
});

/** A package with a library and its archive, and files of its own that its RECORD lists besides. */
async function torch(tree: TemporaryTree, site: string, more: string): Promise<void> {
  const host = { kernelName: "a.so", searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 1 };
  tree.write(`${site}/torch/lib/a.so`, buildHost(host));
  const archive = await archiveBytes({ targets: { gfx1100: keys("a.so", 1) } });
  tree.write(`${site}/torch/.kpack/g_gfx1100.kpack`, archive);
  tree.write(`${site}/torch-2.dist-info/METADATA`, "Name: torch\nVersion: 2\n");
  tree.write(`${site}/torch-2.dist-info/RECORD`, `torch/lib/a.so,,\n${more}`);
}

test("a shared library that a package lists and that is gone is an error", async () => {
  using tree = new TemporaryTree();
  await torch(tree, "site-packages", "torch/lib/gone.so,sha256=x,10\ntorch/gone.so.7,,\ntorch/gone.py,,\n");
  tree.write("site-packages/plain-1.dist-info/RECORD", "plain/gone.so,,\n");
  const { findings } = await diagnose([tree.path]);
  assert.deepEqual(
    findings.map(({ code, files }) => [code, files]),
    [
      ["KP501", [tree.at("site-packages/torch/gone.so.7")]],
      ["KP501", [tree.at("site-packages/torch/lib/gone.so")]],
    ],
  );
});

test("a package that is met through a link has its libraries, and is one package", async () => {
  using tree = new TemporaryTree();
  await torch(tree, "venv/lib/site-packages", "torch/.kpack/g_gfx1100.kpack,,\n");
  tree.link("venv/lib64", "lib");
  tree.link("link", "venv");
  for (const path of ["venv", "link", "venv/lib64"]) {
    const { packages, findings } = await diagnose([tree.at(path)]);
    assert.deepEqual(findings, []);
    assert.deepEqual(
      packages.map(({ name, files }) => [name, files.length]),
      [["torch", 2]],
    );
  }
});
