import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addShrink } from "../../src/cli/commands/shrink.ts";
import { type CompressionScheme, nodeCodecs, none, zstdCrossKernel } from "../../src/node.ts";
import { describeArchive } from "../../src/operations/info.node.ts";
import { shrink } from "../../src/operations/shrink.node.ts";
import { planShrink } from "../../src/operations/shrink-plan.node.ts";
import { parseJson } from "../support/parse-json.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

describe("the size that shrink expects", () => {
  /** Eight kernels for two targets each, of which two entries of one target share a kernel. */
  async function archive(scheme?: CompressionScheme): Promise<Uint8Array> {
    const shared = codeObject("gfx942", "shared", 20_000);
    const of = (target: string): readonly (readonly [string, Uint8Array])[] =>
      Array.from({ length: 8 }, (_, index) => [`a#${index}`, codeObject(target, index, 20_000)]);
    const gfx942 = [...of("gfx942"), ["b#0", shared] as const, ["b#1", shared] as const];
    return await archiveBytes({ targets: { gfx942, gfx1100: of("gfx1100") }, ...(scheme && { scheme }) });
  }

  it("is near the one that comes out, for kernels that are stored by themselves", async () => {
    using tree = new TemporaryTree();
    const stored = tree.write("stored.kpack", await archive());
    const plain = tree.write("plain.kpack", await archive(none));
    const solid = tree.write("solid.kpack", await archive(zstdCrossKernel({ codecs: nodeCodecs })));
    const cases: readonly (readonly [string, string, CompressionScheme | undefined])[] = [
      [stored, "gfx942", undefined],
      [stored, "gfx1100", undefined],
      [plain, "gfx942", undefined],
      [stored, "gfx942", none],
      [plain, "gfx942", none],
      [solid, "gfx1100", none],
    ];
    for (const [index, [input, target, scheme]] of cases.entries()) {
      const output = tree.at(`${index}.kpack`);
      const { plan, sizeAfter } = await shrink({ inputs: [input], keep: [target], output, scheme });
      assert.ok(plan.sizeAfter !== undefined);
      const error = Math.abs(plan.sizeAfter - sizeAfter) / sizeAfter;
      assert.ok(error < 0.02, `case ${index}: ${plan.sizeAfter}, and ${sizeAfter} came out`);
    }
  });

  it("cannot be told before kernels are compressed across each other, or in another scheme or level", async () => {
    using tree = new TemporaryTree();
    const stored = tree.write("stored.kpack", await archive());
    const solid = tree.write("solid.kpack", await archive(zstdCrossKernel({ codecs: nodeCodecs })));
    for (const args of [
      [solid],
      [stored, solid],
      [solid, "-s", "zstd-per-kernel"],
      [stored, "--level", "19"],
      [stored, "-s", "zstd-cross-kernel"],
    ]) {
      const plan = [...args, "--keep", "gfx1100", "--dry-run"];
      const { text } = await runCommand(addShrink, "shrink", ...plan);
      assert.match(text, /before; the size after cannot be told before archives are compressed anew$/m);
      assert.doesNotMatch(text, / after \(/);
      const document = parseJson<object>((await runCommand(addShrink, "shrink", ...plan, "--json")).text);
      assert.equal("sizeAfter" in document, false);
      assert.equal("sizeBefore" in document, true);
    }
    // What loses nothing is copied as it is.
    const { sizeBefore, sizeAfter } = await planShrink({ inputs: [solid], keep: ["gfx942", "gfx1100"] });
    assert.equal(sizeAfter, sizeBefore);
  });

  it("has each target's share of shared frames, as info has", async () => {
    using tree = new TemporaryTree();
    const solid = tree.write("solid.kpack", await archive(zstdCrossKernel({ codecs: nodeCodecs })));
    const { shares } = await planShrink({ inputs: [solid], keep: ["gfx942"] });
    const { targets, storedSize } = await describeArchive(solid);
    const sizes = Object.fromEntries(shares.map(({ target, size }) => [target, size]));
    assert.deepEqual(
      sizes,
      Object.fromEntries(targets.map(({ target, attributedSize }) => [target, attributedSize])),
    );
    assert.ok(Math.abs(shares.reduce((sum, { size }) => sum + size, 0) - storedSize) <= shares.length);
  });
});

describe("many targets", () => {
  it("stand on lines that fit, in the plan and in what is said when none stays", async (context) => {
    using tree = new TemporaryTree();
    const all = Array.from({ length: 30 }, (_, index) => `gfx${1100 + index}`);
    const targets = Object.fromEntries(all.map((target) => [target, keys("lib/a.so", 1)]));
    const input = tree.write("a.kpack", await archiveBytes({ targets }));
    const { text } = await runCommand(addShrink, "shrink", input, "--keep", "gfx1100", "--dry-run");
    for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
    assert.match(text.replaceAll(/\n */g, " "), new RegExp(`: without ${all.slice(1).join(", ")} `));
    const write = context.mock.method(process.stderr, "write", () => true);
    const refused = await runCommand(addShrink, "shrink", input, "--keep", "gfx906", "--dry-run");
    const said = write.mock.calls.map(({ arguments: [part] }) => String(part)).join("");
    write.mock.restore();
    assert.equal(refused.status, 1);
    for (const line of said.split("\n")) assert.ok(line.length <= 100, line);
    assert.match(said.replaceAll(/\n */g, " "), new RegExp(`found ${all.join(", ")}\\)`));
  });
});
