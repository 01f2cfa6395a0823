import assert from "node:assert/strict";
import { test } from "node:test";
import { addVerify } from "../../src/cli/commands/verify.ts";
import { builtInSchemes } from "../../src/node.ts";
import { fixtureBytes } from "../support/archive-fixtures.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, keys, TemporaryTree } from "../support/trees.ts";

/** What verify says to people about who else reads an archive, and about what it could not compare. */

/** The lines as they were before they were broken, without the folder. */
async function verified(
  name: string,
  bytes: Uint8Array,
): Promise<{ readonly status: number; readonly lines: readonly string[] }> {
  using tree = new TemporaryTree();
  const path = tree.write(name, bytes);
  const { status, text } = await runCommand(addVerify, "verify", path);
  const long = text.split("\n").filter((line) => line.length > 100 && line.trim().includes(" "));
  assert.deepEqual(
    long.filter((line) => !line.includes(tree.path)),
    [],
  );
  const whole = text.replaceAll(/\n {2}(?!…)/g, " ").replaceAll(`${tree.path}/`, "");
  return { status, lines: whole.trimEnd().split("\n") };
}

const KEYS = { gfx906: ["a.so#0"], gfx1100: ["a.so#0"] };

test("the runtime accepts an archive whose gfx_arches lacks a target, but finds no kernel for it", async () => {
  const { status, lines } = await verified(
    "a.kpack",
    await archiveBytes({ targets: KEYS, listed: ["gfx906"] }),
  );
  assert.equal(status, 0);
  assert.deepEqual(lines.slice(0, 2), [
    "warning: a.kpack: gfx_arches lacks gfx1100: ROCm's runtime never finds its kernels [TARGET_NOT_LISTED]",
    "Accepted by ROCm's Python tools, both versions of its runtime, and HRX, " +
      "but the runtime finds no kernel for gfx1100.",
  ]);
});

test("a limit of this tool is none of others", async () => {
  const { status, lines } = await verified("b.kpack", fixtureBytes("D/bad/bomb_true_4GiB.kpack"));
  assert.equal(status, 1);
  assert.deepEqual(lines.slice(1, 3), [
    "ROCm's Python tools, ROCm's runtime of February 2026, ROCm's runtime since summer 2026: not known: " +
      "a limit of this tool keeps a kernel from being read [LIMIT_EXCEEDED]",
    "HRX: would refuse it: lib/b.so#0 gfx1100 is larger than 256 MiB",
  ]);
});

test("hashes that nothing could be compared with are not said to be absent; damage is said once", async () => {
  const bytes = await archiveBytes({ targets: { gfx906: ["a.so#0"] } });
  bytes[500] = (bytes[500] ?? 0) ^ 0xff;
  const { status, lines } = await verified("c.kpack", bytes);
  assert.equal(status, 1);
  assert.deepEqual(lines, [
    "error: c.kpack, frame 0 (a.so#0 gfx906), at byte 72: the content checksum of the frame is wrong: " +
      "bytes were damaged [CHECKSUM_MISMATCH]",
    "ROCm's Python tools, ROCm's runtime of February 2026, ROCm's runtime since summer 2026, HRX: " +
      "would refuse it: a kernel cannot be read [CHECKSUM_MISMATCH]",
    "c.kpack: BAD (1 entry, 0 bytes decoded, no kernel could be compared with its hash)",
  ]);
});

test("what is wrong with a frame is said of each kernel in it, of a few only in text", async () => {
  const scheme = builtInSchemes.find(({ name }) => name === "zstd-cross-kernel") ?? assert.fail();
  const bytes = await archiveBytes({ targets: { gfx906: keys("a.so", 6) }, scheme });
  bytes[500] = (bytes[500] ?? 0) ^ 0xff;
  const { status, lines } = await verified("d.kpack", bytes);
  assert.equal(status, 1);
  const errors = lines.filter((line) => line.startsWith("error: "));
  assert.equal(new Set(errors).size, errors.length, lines.join("\n"));
  assert.match(errors[0] ?? "", /frame 0 \(a\.so#0 gfx906\)/);
  assert.ok(errors.length < 6);
  const more = `  … and ${6 - errors.length} more of this kind (--json lists all)`;
  assert.ok(lines.includes(more), lines.join("\n"));
});
