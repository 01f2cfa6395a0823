import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openArchive, openFile, pack, resolveBinary } from "../../src/node.ts";
import { buildHost } from "../support/host-builder.ts";
import { sha256 } from "../support/kernels.ts";
import { TemporaryTree } from "../support/trees.ts";

/**
 * Debian's library is not converted, so its kernels are packed per target, and a host binary with as many wrappers takes
 * its place. KPACK_DEBIAN_LIBS is the folder of librocrand.so.1.1, unpacked by .ci/run.
 */
const folder = process.env["KPACK_DEBIAN_LIBS"];
const reason = folder === undefined ? "KPACK_DEBIAN_LIBS is not set" : false;
const NAME = "lib/librocrand.so.1.1";

test("every kernel of Debian's librocrand is what the loader finds for its target", {
  skip: reason,
}, async () => {
  using tree = new TemporaryTree();
  mkdirSync(join(tree.path, "lib"));
  const library = join(tree.path, NAME);
  copyFileSync(join(folder ?? "", "librocrand.so.1.1"), library);
  const archives = join(tree.path, ".kpack");
  await pack({
    inputs: [library],
    root: tree.path,
    output: archives,
    splitBy: "target",
    groupName: "rocrand",
    onFinding: ({ message }) => assert.fail(message),
  });
  const files = readdirSync(archives);
  assert.ok(files.length > 3, files.join(", "));
  let resolved = 0;
  for (const file of files) {
    await using archive = await openArchive(await openFile(join(archives, file)));
    const entries = [...archive.entries];
    const [target = ""] = archive.targets;
    const wrappers = entries.map(({ binaryKey }) => Number(binaryKey.split("#")[1]));
    const searchPaths = ["../.kpack/rocrand_@GFXARCH@.kpack"];
    tree.write(NAME, buildHost({ kernelName: NAME, searchPaths, wrappers }));
    const report = await resolveBinary(library, { isas: [target] });
    assert.equal(report.wrappers.length, entries.length);
    for (const { wrapper, answer } of report.wrappers) {
      const entry = entries[wrapper];
      assert.ok(entry && answer.kernel, `${target}: ${JSON.stringify(answer.failure)}`);
      assert.equal(answer.kernel.sha256, sha256(await archive.readKernel(entry)));
      resolved += 1;
    }
  }
  assert.ok(resolved >= files.length);
});
