import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KernelHashes } from "../../src/archive/kernel-hashes.ts";
import { addDiff } from "../../src/cli/commands/diff.ts";
import { diffPaths } from "../../src/operations/diff.node.ts";
import { none, openFile } from "../../src/node.ts";
import { openArchive } from "../../src/archive/open-archive.node.ts";
import { convertArchive } from "../../src/operations/convert.node.ts";
import { createFile } from "../../src/sink/file-sink.node.ts";
import { fixtureBytes, patched } from "../bundle/host-fixtures.ts";
import { noneArchive } from "../support/archive-builder.ts";
import { kpackError } from "../support/expect-error.ts";
import { sampleKernel } from "../support/kernels.ts";
import { map } from "../support/raw-msgpack.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

const vadd = fixtureBytes("A/hsaco/vadd_gfx942.hsaco");

/** The code object with another byte behind a key of its metadata. */
function withCount(key: string, value: number): Uint8Array {
  return patched(vadd, [[Buffer.from(vadd).indexOf(key) + key.length, 1, value]]);
}

/** One entry that does not state its kernel's size. */
const WITHOUT_SIZE = map(["a#0", map(["gfx942", map(["type", "hsaco"], ["ordinal", 0])])]);

async function run(...args: readonly string[]): Promise<{ readonly status: number; readonly text: string }> {
  return await runCommand(addDiff, "diff", ...args);
}

describe("diff of two archives", () => {
  it("names what is gone, new and changed, and what became fewer", async () => {
    using tree = new TemporaryTree();
    const before = tree.write(
      "before.kpack",
      await archiveBytes({
        targets: {
          gfx942: [["lib/a.so#0", vadd], "lib/a.so#1", "lib/b.so#0"],
          gfx1100: keys("lib/a.so", 2),
          gfx906: keys("lib/a.so", 2),
        },
      }),
    );
    const changed = withCount(".vgpr_count", 12);
    const after = tree.write(
      "after.kpack",
      await archiveBytes({
        targets: {
          gfx942: [["lib/a.so#0", changed], "lib/b.so#0", "lib/c.so#0"],
          gfx1100: keys("lib/a.so", 2),
          gfx1201: keys("lib/a.so", 1),
        },
      }),
    );
    const { status, text } = await run(before, after);
    assert.equal(status, 1);
    assert.equal(
      text.trimEnd(),
      `
target lost: gfx906
target new: gfx1201
fewer kernels: lib/a.so#1 has 1, had 2
- gfx906  lib/a.so#0  2.0 kB
- gfx942  lib/a.so#1  2.0 kB
- gfx906  lib/a.so#1  2.0 kB
+ gfx1201  lib/a.so#0  2.0 kB
+ gfx942  lib/c.so#0  2.0 kB
~ gfx942  lib/a.so#0  same size, other bytes
    ~ vadd
      VGPRs 8 -> 12

2 kernels added, 3 removed, 1 changed, 3 the same
`.trim(),
    );
    const report = await diffPaths(before, after);
    const [diff] = report.archives;
    assert.deepEqual([report.isSame, report.hasTrouble, report.findings], [false, false, []]);
    assert.deepEqual(diff?.fewerKernels, [{ kind: "binaryKey", name: "lib/a.so#1", before: 2, after: 1 }]);
    assert.deepEqual(
      diff?.changed[0]?.functions?.map(({ name, before: old, after: now }) => [name, old?.vgprs, now?.vgprs]),
      [["vadd", 8, 12]],
    );
    const json: unknown = JSON.parse((await run(before, after, "--json")).text);
    assert.partialDeepStrictEqual(json, {
      schema: "kpack/diff/1",
      isSame: false,
      hasTrouble: false,
      archives: [
        {
          path: "",
          state: "both",
          same: 3,
          lostTargets: ["gfx906"],
          newTargets: ["gfx1201"],
          fewerKernels: [{ kind: "binaryKey", name: "lib/a.so#1", before: 2, after: 1 }],
          changed: [
            {
              binaryKey: "lib/a.so#0",
              functions: [{ name: "vadd", before: { vgprs: 8 }, after: { vgprs: 12 } }],
            },
          ],
        },
      ],
    });
  });

  it("compares every resource", async () => {
    using tree = new TemporaryTree();
    const archive = async (name: string, kernel: Uint8Array): Promise<string> =>
      tree.write(name, await archiveBytes({ targets: { gfx942: [["a#0", kernel]] } }));
    const before = await archive("before.kpack", vadd);
    const resources = [
      [".vgpr_count", "VGPRs 8 -> 9"],
      [".sgpr_count", "SGPRs 14 -> 9"],
      [".agpr_count", "AGPRs 0 -> 9"],
      [".vgpr_spill_count", "VGPR spills 0 -> 9"],
      [".sgpr_spill_count", "SGPR spills 0 -> 9"],
      [".group_segment_fixed_size", "LDS 0 -> 9"],
      [".private_segment_fixed_size", "scratch 0 -> 9"],
    ] as const;
    for (const [key, line] of resources) {
      const after = await archive("after.kpack", withCount(key, 9));
      assert.ok((await run(before, after)).text.includes(`\n      ${line}\n`), line);
      const without = await run(before, after, "--no-resources");
      assert.equal(without.status, 1);
      assert.ok(!without.text.includes(line));
    }
    const other = await archive("after.kpack", withCount(".wavefront_size", 32));
    assert.match((await run(before, other)).text, /same size, other bytes; same resources/);
    const renamed = await archive("after.kpack", fixtureBytes("A/hsaco/reduce_gfx942.hsaco"));
    assert.match((await run(before, renamed)).text, /-> .* bytes\)\n {4}- vadd\n {4}\+ /);
  });

  it("is 0 for the same kernels in another scheme, with hashes and without", async () => {
    using tree = new TemporaryTree();
    const before = tree.write(
      "before.kpack",
      await archiveBytes({ targets: { gfx942: keys("a", 5), gfx1100: keys("a", 5) } }),
    );
    const after = tree.at("after.kpack");
    for (const extraFields of [true, false]) {
      await using archive = await openArchive(await openFile(before));
      await using sink = await createFile(after);
      await convertArchive(archive, sink, { scheme: none, extraFields });
      await sink.commit();
      const { status, text } = await run(before, after);
      assert.equal(status, 0);
      assert.equal(text, "0 kernels added, 0 removed, 0 changed, 10 the same\n");
    }
  });

  it("takes sizes that an archive does not state from the kernels", async () => {
    using tree = new TemporaryTree();
    const archive = (name: string, kernel: Uint8Array): string =>
      tree.write(name, noneArchive([kernel], { entries: WITHOUT_SIZE }));
    const before = archive("before.kpack", sampleKernel(1, 2000));
    const longer = archive("longer.kpack", sampleKernel(2, 3000));
    const other = archive("other.kpack", sampleKernel(3, 2000));
    for (const resources of [true, false]) {
      const [diff] = (await diffPaths(before, longer, { resources })).archives;
      assert.deepEqual([diff?.changed[0]?.sizeBefore, diff?.changed[0]?.sizeAfter], [2000, 3000]);
    }
    const lineOf = async (...args: readonly string[]): Promise<string | undefined> =>
      (await run(...args)).text.split("\n")[0];
    assert.equal(
      await lineOf(before, longer),
      "~ gfx942  a#0  2.0 kB -> 3.0 kB (+1000 bytes); resources not known",
    );
    assert.equal(await lineOf(before, other), "~ gfx942  a#0  same size, other bytes; resources not known");
    assert.equal(await lineOf(before, other, "--no-resources"), "~ gfx942  a#0  same size, other bytes");
  });

  it("does not say that sizes are the same where they are not known", async () => {
    using tree = new TemporaryTree();
    const archive = (name: string, kernel: Uint8Array, hash: bigint): string => {
      const toc = Object.entries(KernelHashes.fields([hash]));
      return tree.write(name, noneArchive([kernel], { entries: WITHOUT_SIZE, toc }));
    };
    const before = archive("before.kpack", sampleKernel(1, 2000), 1n);
    const after = archive("after.kpack", sampleKernel(2, 3000), 2n);
    const { status, text } = await run(before, after, "--no-resources");
    assert.deepEqual([status, text.split("\n")[0]], [1, "~ gfx942  a#0  other bytes"]);
    // Nor that kernels are the same by a hash alone.
    const claimed = archive("claimed.kpack", sampleKernel(2, 3000), 1n);
    const { hasTrouble, findings } = await diffPaths(before, claimed);
    assert.deepEqual([hasTrouble, findings[0]?.code], [true, "CHECKSUM_MISMATCH"]);
  });

  it("says that the resources of a code object without metadata are not known", async () => {
    using tree = new TemporaryTree();
    const archive = async (name: string, kernel: Uint8Array): Promise<string> =>
      tree.write(name, await archiveBytes({ targets: { gfx942: [["a#0", kernel]] } }));
    const before = await archive("before.kpack", codeObject("gfx942", 1));
    for (const kernel of [codeObject("gfx942", 2), vadd]) {
      const after = await archive("after.kpack", kernel);
      assert.match((await run(before, after)).text, /; resources not known$/m);
      const [diff] = (await diffPaths(before, after)).archives;
      assert.deepEqual([diff?.changed.length, diff?.changed[0]?.functions], [1, undefined]);
    }
  });

  it("does not decode kernels with the same hash", async () => {
    using tree = new TemporaryTree();
    const bytes = await archiveBytes({ targets: { gfx942: keys("a", 3) }, scheme: none });
    const before = tree.write("before.kpack", bytes);
    const after = tree.write("after.kpack", patched(bytes, [[1000, 1, (bytes[1000] ?? 0) ^ 1]]));
    assert.equal((await run(before, after)).status, 0);
  });

  it("counts a target as lost that gfx_arches alone no longer lists", async () => {
    using tree = new TemporaryTree();
    const targets = { gfx906: keys("lib/a.so", 2), gfx1100: keys("lib/a.so", 2) };
    const before = tree.write("before.kpack", await archiveBytes({ targets }));
    for (const [listed, lost] of [
      [["gfx906"], ["gfx1100"]],
      [[], ["gfx906", "gfx1100"]],
    ] as const) {
      const after = tree.write("after.kpack", await archiveBytes({ targets, listed }));
      const end = "\n0 kernels added, 0 removed, 0 changed, 4 the same\n";
      assert.deepEqual(await run(before, after), {
        status: 1,
        text: [...lost.map((target) => `target lost: ${target}`), end].join("\n"),
      });
      assert.deepEqual(await run(after, before), {
        status: 1,
        text: [...lost.map((target) => `target new: ${target}`), end].join("\n"),
      });
    }
  });
});

describe("diff in trouble", () => {
  it("is 2 for broken, missing and unfit files", async () => {
    using tree = new TemporaryTree();
    const bytes = await archiveBytes({ targets: { gfx942: keys("a", 1) } });
    const good = tree.write("good.kpack", bytes);
    const broken = tree.write("broken.kpack", bytes.slice(0, 200));
    assert.equal((await run(good, broken, "-q")).status, 2);
    assert.equal((await run(broken, broken, "-q")).status, 2);
    assert.equal((await run(good, tree.at("missing.kpack"), "-q")).status, 2);
    assert.equal((await run(good, tree.path, "-q")).status, 2);
    tree.write("empty/readme.txt", "");
    assert.equal((await run(tree.at("empty"), tree.at("empty"), "-q")).status, 2);
    await kpackError(() => diffPaths(tree.at("empty"), tree.at("empty")), "NOTHING_FOUND");
  });

  it("is 2 when a kernel cannot be decoded, and the others are compared", async () => {
    using tree = new TemporaryTree();
    const before = tree.write("before.kpack", await archiveBytes({ targets: { gfx942: ["a#0", "a#1"] } }));
    const bytes = await archiveBytes({ targets: { gfx942: ["a#0", ["a#1", vadd]] } });
    // The last bytes before the TOC belong to the last kernel's frame.
    const tocOffset = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(8, true));
    const after = tree.write("after.kpack", patched(bytes, [[tocOffset - 30, 8, 0n]]));
    const report = await diffPaths(before, after);
    assert.equal(report.hasTrouble, true);
    assert.deepEqual([report.archives[0]?.same, report.archives[0]?.changed.length], [1, 0]);
    assert.equal((await run(before, after, "-q")).status, 2);
  });
});

describe("diff of two trees", () => {
  it("pairs archives by their paths", async () => {
    using tree = new TemporaryTree();
    const write = async (path: string, target: string, count: number): Promise<string> =>
      tree.write(path, await archiveBytes({ targets: { [target]: keys("a", count) } }));
    await write("old/.kpack/same_gfx942.kpack", "gfx942", 2);
    await write("new/.kpack/same_gfx942.kpack", "gfx942", 2);
    await write("old/.kpack/less_gfx942.kpack", "gfx942", 3);
    await write("new/.kpack/less_gfx942.kpack", "gfx942", 2);
    await write("old/gone_gfx906.kpack", "gfx906", 1);
    await write("new/more_gfx1201.kpack", "gfx1201", 1);
    tree.write("new/readme.txt", "no archive");
    const { status, text } = await run(tree.at("old"), tree.at("new"));
    assert.equal(status, 1);
    assert.equal(
      text.trimEnd(),
      `
.kpack/less_gfx942.kpack
fewer kernels: gfx942 has 2, had 3
fewer kernels: a#2 has 0, had 1
- gfx942  a#2  2.0 kB

gone_gfx906.kpack: only in the first
target lost: gfx906
- gfx906  a#0  2.0 kB

more_gfx1201.kpack: only in the second
target new: gfx1201
+ gfx1201  a#0  2.0 kB

1 kernel added, 2 removed, 0 changed, 2 the same; nothing differs in 1 other archive
`.trim(),
    );
    assert.equal((await run(tree.at("old"), tree.at("old"))).status, 0);
    tree.write("new/gone_gfx906.kpack", "KPAK");
    const broken = await diffPaths(tree.at("old"), tree.at("new"));
    assert.deepEqual(
      [broken.hasTrouble, broken.archives.map(({ state }) => state)],
      [true, ["both", "unreadable", "added"]],
    );
    const rest = await run(tree.at("old"), tree.at("new"), "-q");
    assert.equal(rest.status, 2);
    assert.match(
      rest.text,
      /\n1 kernel added, .*, 2 the same; nothing .* archive; not all could be compared\n$/,
    );
  });

  it("counts nothing where nothing could be compared", async () => {
    using tree = new TemporaryTree();
    tree.write("old/a.kpack", "KPAK");
    tree.write("new/a.kpack", await archiveBytes({ targets: { gfx942: keys("a", 1) } }));
    assert.deepEqual(await run(tree.at("old"), tree.at("new"), "-q"), {
      status: 2,
      text: "a.kpack: cannot be compared\n",
    });
    const files = await run(tree.at("old/a.kpack"), tree.at("new/a.kpack"), "-q");
    assert.deepEqual(files, { status: 2, text: "" });
  });
});
