import assert from "node:assert/strict";
import { test } from "node:test";
import { diagnose } from "../../src/operations/doctor/doctor.node.ts";
import { entryOf, noneArchive } from "../support/archive-builder.ts";
import { buildHost } from "../support/host-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject, TemporaryTree } from "../support/trees.ts";

/** What the finding that an archive is not for every reader says, for one kernel under the scheme none. */
async function refusals(kernel: Uint8Array, entry: unknown): Promise<readonly string[]> {
  using tree = new TemporaryTree();
  const entries = map(["a.so#0", map(["gfx942", entry])]);
  tree.write("g_gfx942.kpack", noneArchive([kernel], { entries }));
  const { findings } = await diagnose([tree.path]);
  return findings.filter(({ code }) => code === "KP302").flatMap(({ evidence }) => evidence);
}

test("an archive that ends the process of the older loader hides no other", async () => {
  using tree = new TemporaryTree();
  const host = { kernelName: "a.so", searchPaths: ["@GFXARCH@.kpack", "b.kpack"], wrappers: 1 };
  tree.write("a.so", buildHost(host));
  tree.write("gfx942.kpack", await archiveBytes({ targets: { gfx942: ["a.so#0"] } }));
  const entries = map(["a.so#0", map(["gfx942", entryOf("no number", 1)])]);
  tree.write("b.kpack", noneArchive([codeObject("gfx942")], { entries }));
  const { findings, coverage } = await diagnose([tree.path]);
  assert.deepEqual(
    findings.map(({ code }) => code),
    ["KP301"],
  );
  assert.deepEqual(
    coverage.map(({ missing, missingBefore }) => [missing, missingBefore]),
    [[[], [0]]],
  );
});

test("under the scheme none HRX is judged by the blob, not by original_size", async () => {
  const kernel = codeObject("gfx942");
  const empty = ["HRX refuses it: a.so#0 gfx942 has 0 bytes"];
  for (const entry of [entryOf(0, 0), entryOf(0, 2 ** 31), map(["ordinal", 0])]) {
    assert.deepEqual(await refusals(kernel, entry), []);
    assert.deepEqual(await refusals(new Uint8Array(0), entry), empty);
  }
});
