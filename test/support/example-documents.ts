import assert from "node:assert/strict";
import { addBench } from "../../src/cli/commands/bench.ts";
import { addDiff } from "../../src/cli/commands/diff.ts";
import { addDoctor } from "../../src/cli/commands/doctor.ts";
import { addExplain } from "../../src/cli/commands/explain.ts";
import { addInspect } from "../../src/cli/commands/inspect.ts";
import { addResolve } from "../../src/cli/commands/resolve.ts";
import { addShrink } from "../../src/cli/commands/shrink.ts";
import { fixtureBytes } from "../bundle/host-fixtures.ts";
import { fixturePath } from "./archive-fixtures.ts";
import { buildHost } from "./host-builder.ts";
import { type JsonDocument, parseDocument } from "./json-document.ts";
import { runCommand } from "./run-command.ts";
import { archiveBytes, keys, TemporaryTree } from "./trees.ts";

/** Documents that together have every field, of the commands whose output is in no golden file. */

const NAME = "lib/libtorch_hip.so";

type AddCommand = Parameters<typeof runCommand>[0];

async function print(add: AddCommand, ...args: readonly string[]): Promise<JsonDocument> {
  return parseDocument((await runCommand(add, ...args, "--json")).text);
}

export async function exampleDocuments(): Promise<readonly JsonDocument[]> {
  const documents = await Promise.all([
    ofDiff(),
    ofShrink(),
    ofInspect(),
    ofResolve(),
    ofDoctor(),
    ofOthers(),
  ]);
  return documents.flat();
}

async function ofDiff(): Promise<readonly JsonDocument[]> {
  using tree = new TemporaryTree();
  const kernels = ["A/hsaco/vadd_gfx942.hsaco", "A/hsaco/reduce_gfx942.hsaco"].map(fixtureBytes);
  const [old, now] = [kernels[0] ?? assert.fail(), kernels[1] ?? assert.fail()];
  const before = { gfx942: [["a#0", old] as const, "a#1"], gfx906: ["a#0"] };
  const after = { gfx942: [["a#0", now] as const, "a#2"], gfx1100: ["a#0"] };
  tree.write("old/a.kpack", await archiveBytes({ targets: before }));
  tree.write("new/a.kpack", await archiveBytes({ targets: after }));
  tree.write("new/broken.kpack", "KPAK");
  return [await print(addDiff, "diff", tree.at("old"), tree.at("new"))];
}

async function ofShrink(): Promise<readonly JsonDocument[]> {
  using tree = new TemporaryTree();
  const targets = { gfx942: keys("a", 1), gfx906: keys("a", 1) };
  tree.write("in/a.kpack", await archiveBytes({ targets }));
  tree.link("in/link.kpack", "a.kpack");
  const args = ["shrink", tree.at("in"), "--keep", "gfx942", "-o", tree.at("out")];
  return [await print(addShrink, ...args, "--dry-run"), await print(addShrink, ...args, "--quiet")];
}

async function ofInspect(): Promise<readonly JsonDocument[]> {
  const files = ["A/hsaco/vadd_gfx942.hsaco", "C/libfx_multi3.so", "D/ok/zstd_features.kpack"];
  return await Promise.all(
    files.map(async (file) => await print(addInspect, "inspect", fixturePath(file), "--quiet")),
  );
}

async function ofResolve(): Promise<readonly JsonDocument[]> {
  using tree = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 2 };
  tree.write(NAME, buildHost(host));
  tree.write(".kpack/torch_gfx90a.kpack", await archiveBytes({ targets: { gfx90a: keys(NAME, 1) } }));
  const broken = tree.write("broken.kpack", "KPAK");
  const args = ["resolve", tree.at(NAME), "--isa", "gfx90a:sramecc+:xnack-"];
  return [
    await print(addResolve, ...args, "--env", `ROCM_KPACK_PATH_PREFIX=${broken}`),
    await print(addResolve, ...args, "--env", `ROCM_KPACK_PATH=${broken}`),
  ];
}

async function ofDoctor(): Promise<readonly JsonDocument[]> {
  using tree = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 2 };
  tree.write("torch/lib/libtorch_hip.so", buildHost(host));
  tree.write("fat.so", fixtureBytes("C/libfx_multi3.so"));
  tree.write("torch/.kpack/torch_gfx90a.kpack", await archiveBytes({ targets: { gfx90a: keys(NAME, 1) } }));
  tree.write("torch-2.13.dist-info/RECORD", "torch/lib/libtorch_hip.so,sha256=a,5\n");
  tree.write("torch-2.13.dist-info/METADATA", "Name: torch\nVersion: 2.13.0\n");
  tree.write("lib/rocblas/library/Kernels_gfx1100.co", "x");
  return [await print(addDoctor, "doctor", tree.path, "--isa", "gfx90a", "--quiet")];
}

async function ofOthers(): Promise<readonly JsonDocument[]> {
  const scheme = "zstd-cross-kernel:fast";
  const input = fixturePath("C/libfx_single.so");
  return [
    await print(addExplain, "explain", "KP303"),
    await print(addBench, "bench", input, "--schemes", scheme, "--layout-scheme", scheme, "--quiet"),
  ];
}
