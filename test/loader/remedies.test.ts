import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { LoaderBehaviour } from "../../src/loader/archive-search.ts";
import type { LoaderVariables } from "../../src/loader/environment.ts";
import { resolveBinary } from "../../src/operations/resolve.node.ts";
import { noneArchive } from "../support/archive-builder.ts";
import { buildHost } from "../support/host-builder.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

/** What is advised must help: while a list of the environment counts, nothing that is installed elsewhere does. */

const NAME = "lib/a.so";
let tree: TemporaryTree;

before(async () => {
  tree = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 2 };
  tree.write(NAME, buildHost(host));
  const add = async (target: string, count: number): Promise<void> => {
    const bytes = await archiveBytes({ targets: { [target]: keys(NAME, count) } });
    tree.write(`o/g_${target}.kpack`, bytes);
  };
  await add("gfx90a", 1);
  await add("gfx90a:xnack-", 2);
  await add("gfx942", 2);
});

after(() => tree[Symbol.dispose]());

interface Advice {
  readonly number: number | undefined;
  readonly remedy: string;
}

async function advice(
  isa: string,
  variables: LoaderVariables,
  behaviour: LoaderBehaviour = "current",
): Promise<Advice> {
  const options = { isas: [isa], index: 1, variables, behaviour, workingFolder: tree.path };
  const [wrapper] = (await resolveBinary(tree.at(NAME), options)).wrappers;
  return { number: wrapper?.answer.failure?.status.number, remedy: wrapper?.remedy ?? "" };
}

const at = (...targets: readonly string[]): string =>
  targets.map((target) => tree.at(`o/g_${target}.kpack`)).join(":");
const FLAGS = "gfx90a:sramecc+:xnack-";
const SPLIT = /splits at each ":", also inside the name g_gfx90a:xnack-\.kpack/;

test("with ROCM_KPACK_PATH a target that is missing is missing in the list", async () => {
  const { number, remedy } = await advice("gfx942", { ROCM_KPACK_PATH: at("gfx90a") });
  assert.equal(number, 14);
  assert.match(remedy, /^Unset ROCM_KPACK_PATH, or list an archive for gfx942 too/);
});

test("with ROCM_KPACK_PATH a kernel that is missing is missing in the list", async () => {
  const { number, remedy } = await advice("gfx90a", { ROCM_KPACK_PATH: at("gfx90a") });
  assert.equal(number, 5);
  assert.match(remedy, /^Unset ROCM_KPACK_PATH, or list archives of the same build as a\.so/);
});

test("a name that was split is told whatever failure comes of it", async () => {
  for (const [others, number] of [
    [[], 13],
    [["gfx942"], 14],
    [["gfx90a"], 5],
  ] as const) {
    const split = await advice(FLAGS, { ROCM_KPACK_PATH: at("gfx90a:xnack-", ...others) });
    assert.equal(split.number, number);
    assert.match(split.remedy, SPLIT);
    const last = await advice(FLAGS, { ROCM_KPACK_PATH: at(...others, "gfx90a:xnack-") });
    assert.match(last.remedy, SPLIT);
  }
  const relative = await advice(FLAGS, { ROCM_KPACK_PATH: "o/g_gfx942.kpack:o/g_gfx90a:xnack-.kpack" });
  assert.match(relative.remedy, SPLIT);
});

test("a name that was split in the prefix list is told too", async () => {
  const { number, remedy } = await advice(FLAGS, { ROCM_KPACK_PATH_PREFIX: at("gfx942", "gfx90a:xnack-") });
  assert.equal(number, 14);
  assert.match(remedy, SPLIT);
  assert.match(remedy, /^ROCM_KPACK_PATH_PREFIX/);
});

test("a name that was split is not told where its archive has not what is missing", async () => {
  const target = await advice("gfx1100", { ROCM_KPACK_PATH: at("gfx90a:xnack-", "gfx942") });
  assert.equal(target.number, 14);
  assert.match(target.remedy, /^Unset ROCM_KPACK_PATH, or list an archive for gfx1100/);
  const kernel = await advice("gfx90a", { ROCM_KPACK_PATH: at("gfx90a:xnack-", "gfx90a") });
  assert.equal(kernel.number, 5);
  assert.match(kernel.remedy, /^Unset ROCM_KPACK_PATH, or list archives of the same build/);
});

test("an archive that hides another is taken out of the list", async () => {
  tree.link("o/small.kpack", "g_gfx90a.kpack");
  const { remedy } = await advice(
    "gfx90a",
    { ROCM_KPACK_PATH: "o/small.kpack:o/small.kpack" },
    "before-2026-08",
  );
  assert.match(remedy, /take small\.kpack out of ROCM_KPACK_PATH/);
});

test("a scheme that the runtime does not know is what has to be changed", async () => {
  const bytes = noneArchive([codeObject("gfx1100")], {
    toc: [
      ["compression_scheme", "solid"],
      ["gfx_arches", ["gfx1100"]],
    ],
  });
  const { number, remedy } = await advice("gfx1100", { ROCM_KPACK_PATH: tree.write("o/solid.kpack", bytes) });
  assert.equal(number, 5);
  assert.match(remedy, /^Get solid\.kpack in the scheme zstd-per-kernel/);
});

test("what stands under the name that is looked for is named: a wrong archive, or a link to nowhere", async () => {
  using other = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 1 };
  const library = other.write(NAME, buildHost(host));
  other.write(".kpack/g_gfx942.kpack", await archiveBytes({ targets: { gfx1100: keys(NAME, 1) } }));
  other.link(".kpack/g_gfx90a.kpack", "nowhere");
  const wrong = await resolveBinary(library, { isas: ["gfx942"] });
  assert.equal(wrong.wrappers[0]?.answer.failure?.status.number, 14);
  assert.equal(
    wrong.wrappers[0]?.remedy,
    `Replace ${other.at(".kpack/g_gfx942.kpack")} by an archive for gfx942 of the same build: ` +
      "the one that is there holds gfx1100 only.",
  );
  const linked = await resolveBinary(library, { isas: ["gfx90a"] });
  const reason = "a symbolic link to nowhere is there, which leads to no file";
  assert.deepEqual(
    linked.search?.paths.map(({ fate, reason }) => [fate, reason]),
    [["missing", reason]],
  );
  assert.equal(linked.wrappers[0]?.answer.failure?.status.number, 13);
  assert.equal(
    linked.wrappers[0]?.remedy,
    `Mend the link ${other.at(".kpack/g_gfx90a.kpack")}, or put an archive there: ${reason}.`,
  );
});
