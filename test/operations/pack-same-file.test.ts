import assert from "node:assert/strict";
import { copyFileSync, linkSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openArchive, openFile, pack } from "../../src/node.ts";
import { kpackError } from "../support/expect-error.ts";
import { TemporaryTree } from "../support/trees.ts";

const OBJECT = "test/fixtures/A/hsaco/vadd_gfx942.hsaco";
const quiet = { onFinding: () => undefined };

test("an archive may not replace a file that it is made of, whatever the path to it", async () => {
  using tree = new TemporaryTree();
  const input = join(tree.path, "a.hsaco");
  copyFileSync(OBJECT, input);
  symlinkSync(input, join(tree.path, "link"));
  linkSync(input, join(tree.path, "hard"));
  for (const output of ["a.hsaco", "link", "hard"].map((name) => join(tree.path, name))) {
    await kpackError(async () => await pack({ inputs: [input], output, ...quiet }), "WRITE_FAILED");
  }
  assert.deepEqual(readFileSync(input), readFileSync(OBJECT));
});

test("an input that is given twice is packed once", async () => {
  using tree = new TemporaryTree();
  const output = join(tree.path, "a.kpack");
  const { archives } = await pack({
    inputs: [OBJECT, `./${OBJECT}`, join(process.cwd(), OBJECT)],
    output,
    ...quiet,
  });
  assert.equal(archives[0]?.entries, 1);
  await using archive = await openArchive(await openFile(output));
  assert.equal(archive.entries.length, 1);
});
