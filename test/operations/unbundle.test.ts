import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { unbundle } from "../../src/operations/unbundle.node.ts";
import { buildBundle } from "../bundle/bundle-builder.ts";
import { fixturesOf } from "../bundle/host-fixtures.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { sha256 } from "../support/kernels.ts";
import { fixture, writeTree } from "../support/pack-inputs.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

describe("unbundle", () => {
  const inputs = [...fixturesOf("host_binary"), ...fixturesOf("bundle")].filter(([, { bundles }]) =>
    bundles?.some(({ entries }) =>
      entries.some(({ triple, size }) => !triple.startsWith("host") && size > 0),
    ),
  );

  it("gives the payload of every entry that is not the host's", async (context) => {
    const folder = tempFolder(context);
    for (const [name, { bundles = [] }] of inputs) {
      const files = await unbundle([fixturePath(name)], join(folder, name));
      const wanted = bundles.flatMap(({ entries }) =>
        entries
          .filter(({ triple, size }) => !triple.startsWith("host") && size > 0)
          .map((entry) => `${entry.triple} ${entry.sha256}`),
      );
      assert.deepEqual(
        files.map(({ id, path }) => `${id} ${sha256(readFileSync(path))}`),
        wanted,
        name,
      );
      assert.equal(filesBelow(join(folder, name)).length, wanted.length, name);
    }
  });

  it("names files by target, input, bundle and kind of payload", async (context) => {
    const folder = tempFolder(context);
    await unbundle([fixturePath("C/libfx_compressed.so")], join(folder, "fat"), { targets: ["gfx90a"] });
    assert.deepEqual(filesBelow(join(folder, "fat")), [
      "gfx90a_xnack+/libfx_compressed.so.0.hsaco",
      "gfx90a_xnack-/libfx_compressed.so.0.hsaco",
    ]);
    await unbundle([fixturePath("B/ok/plain_id_spellings.hipfb")], join(folder, "spirv"), {
      targets: ["amdgcnspirv"],
    });
    assert.deepEqual(filesBelow(join(folder, "spirv")), ["amdgcnspirv/plain_id_spellings.hipfb.0.spv"]);
    await unbundle([fixturePath("A/hsaco/vadd_gfx942.hsaco")], join(folder, "bare"));
    assert.deepEqual(filesBelow(join(folder, "bare")), ["gfx942/vadd_gfx942.hsaco"]);
  });

  it("never writes one file over another, nor outside of its folder", async (context) => {
    const folder = tempFolder(context);
    const content = await fixture("A/hsaco/vadd_gfx906.hsaco");
    const ids = [
      "hipv4-amdgcn-amd-amdhsa--gfx906",
      "openmp-amdgcn-amd-amdhsa--gfx906",
      "hipv4-amdgcn-amd-amdhsa--gfx906/../../../evil",
    ];
    const bundle = buildBundle(ids.map((id) => ({ id, content })));
    writeTree(folder, { "in/a/x.hipfb": bundle, "in/b/x.hipfb": bundle, "in/c/x.hipfb.0-1.hsaco": content });
    const names = ["c/x.hipfb.0-1.hsaco", "a/x.hipfb", "b/x.hipfb"].map((name) => join(folder, "in", name));
    const files = await unbundle(names, join(folder, "out"));
    assert.equal(files.length, 7);
    assert.equal(new Set(files.map(({ path }) => path)).size, 7);
    assert.equal(filesBelow(join(folder, "out")).length, 7);
    assert.equal(filesBelow(folder).length, 10);
  });

  it("says what there is when nothing is chosen, and writes nothing", async (context) => {
    const folder = tempFolder(context);
    const error = await kpackError(
      async () =>
        await unbundle([fixturePath("C/libfx_single.so")], join(folder, "out"), { targets: ["gfx90a"] }),
      "NOTHING_FOUND",
    );
    assert.equal(error.found, "gfx1100, gfx942");
    await kpackError(
      async () => await unbundle([fixturePath("C/libfx_hostonly.so")], join(folder, "out")),
      "NOTHING_FOUND",
    );
    assert.deepEqual(filesBelow(folder), []);
  });
});
