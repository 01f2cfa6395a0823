import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { findInputs } from "../../src/operations/find-inputs.node.ts";
import { kpackError } from "../support/expect-error.ts";
import { digestsOf, entriesOf, fixture, packed, writeTree } from "../support/pack-inputs.ts";
import { document, kpack } from "../support/run-kpack.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const TARGETS = ["gfx906", "gfx1100", "gfx942"] as const;

/** One code object for each target, in the order of the targets. */
async function writeInputs(folder: string): Promise<void> {
  for (const [index, target] of TARGETS.entries())
    writeTree(folder, { [`in/${index}.hsaco`]: await fixture(`A/hsaco/vadd_${target}.hsaco`) });
}

async function inputsBelow(folder: string): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { path } of findInputs([folder])) names.push(path.slice(folder.length + 1));
  return names;
}

describe("pack to a path that is taken by a folder", () => {
  it("is refused before an input is looked at", async (context) => {
    const folder = tempFolder(context);
    const error = await kpackError(
      async () => await packed({ inputs: [join(folder, "nowhere")], output: folder }),
      "WRITE_FAILED",
    );
    assert.match(error.message, /cannot be written: it is a folder/);
    assert.match(String(error.hint), /path of a file/);
  });

  it("is refused before a kernel is packed, with --split-by too", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    mkdirSync(join(folder, "out/g_gfx942.kpack"), { recursive: true });
    const attempt = {
      inputs: [join(folder, "in")],
      output: join(folder, "out"),
      splitBy: "target",
      groupName: "g",
      onProgress: () => assert.fail("a kernel was packed"),
    } as const;
    const error = await kpackError(async () => await packed(attempt), "WRITE_FAILED");
    assert.equal(error.file, join(folder, "out/g_gfx942.kpack"));
    assert.deepEqual(filesBelow(join(folder, "out")), []);
    const ran = await kpack([
      "pack",
      join(folder, "in"),
      "--split-by",
      "target",
      "--group",
      "g",
      "-o",
      attempt.output,
    ]);
    assert.deepEqual([ran.status, filesBelow(join(folder, "out"))], [2, []]);
  });
});

describe("pack --split-by target when a later archive cannot get its name", () => {
  /** Puts a folder in the last archive's place while the kernels are packed. */
  const obstructed = async (folder: string): Promise<ReturnType<typeof kpackError>> =>
    await kpackError(
      async () =>
        await packed({
          inputs: [join(folder, "in")],
          output: join(folder, "out"),
          splitBy: "target",
          groupName: "g",
          onProgress: ({ done, total }) => {
            if (done === total) mkdirSync(join(folder, "out/g_gfx942.kpack/inside"), { recursive: true });
          },
        }),
      "WRITE_FAILED",
    );

  it("takes back those that have theirs", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    const error = await obstructed(folder);
    assert.equal(error.file, join(folder, "out/g_gfx942.kpack"));
    assert.deepEqual(filesBelow(join(folder, "out")), []);
  });

  it("keeps those that replaced an older file, and says which", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    const older = join(folder, "out/g_gfx906.kpack");
    mkdirSync(join(folder, "out"));
    writeFileSync(older, "older");
    const error = await obstructed(folder);
    assert.equal(error.file, join(folder, "out/g_gfx942.kpack"));
    assert.match(String(error.hint), /replaced already: .*g_gfx906\.kpack\. /);
    assert.doesNotMatch(String(error.hint), /gfx1100/);
    assert.deepEqual(filesBelow(join(folder, "out")), ["g_gfx906.kpack"]);
    assert.equal((await entriesOf(older)).length, 1);
  });
});

describe("pack whose output lies among its inputs", () => {
  it("does not take up its own files, nor those of an earlier run", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    const inside = join(folder, "in");
    await packed({ inputs: [inside], output: join(folder, "right.kpack") });
    const right = await digestsOf(join(folder, "right.kpack"));
    for (const output of [join(inside, "a.kpack"), join(inside, "a.kpack"), join(inside, "0/b.kpack")]) {
      let seen = 0;
      const looks: Promise<void>[] = [];
      await packed({
        inputs: [inside],
        output,
        verify: true,
        onProgress: () => {
          if (filesBelow(inside).some((name) => name.endsWith(".tmp"))) seen += 1;
          looks.push(inputsBelow(inside).then((names) => assert.doesNotMatch(names.join(" "), /\.tmp/)));
        },
      });
      await Promise.all(looks);
      assert.ok(seen > 0, "the temporary file was there");
      assert.deepEqual(await digestsOf(output), right);
    }
    const split = { inputs: [inside], output: inside, splitBy: "target", groupName: "g" } as const;
    for (let round = 0; round < 2; round++)
      assert.equal((await packed(split)).plan.kernels.length, TARGETS.length);
  });

  it("passes over what a killed process left, unless it is named", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    const left = "in/.kpack-123-0abc.tmp";
    writeTree(folder, { [left]: await fixture("A/hsaco/reduce_gfx906.hsaco") });
    const output = join(folder, "out.kpack");
    const { plan } = await packed({ inputs: [join(folder, "in")], output });
    assert.equal(plan.kernels.length, TARGETS.length);
    assert.equal((await packed({ inputs: [join(folder, left)], output })).plan.kernels.length, 1);
  });
});

describe("an input outside the root", () => {
  it("is an error that names the library's field, and the option in its hint", async (context) => {
    const folder = tempFolder(context);
    await writeInputs(folder);
    const args = [
      "pack",
      join(folder, "in"),
      "--root",
      join(folder, "other"),
      "-o",
      join(folder, "x"),
      "--json",
    ];
    const { field, hint } = document(await kpack(args));
    assert.equal(field, "root");
    assert.match(String(hint), /--root/);
  });
});
