import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addInfo } from "../../src/cli/commands/info.ts";
import { addList } from "../../src/cli/commands/list.ts";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { nodeCodecs, zstdCrossKernel } from "../../src/node.ts";
import { describeArchive } from "../../src/operations/info.node.ts";
import { entryOf } from "../support/archive-builder.ts";
import { chainedContents, graphArchive } from "../support/raw-graph.ts";
import { map } from "../support/raw-msgpack.ts";
import { parseJson } from "../support/parse-json.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, keys, TemporaryTree } from "../support/trees.ts";

const TARGETS = { gfx942: keys("lib/a.so", 3) };

describe("the frames of an archive", () => {
  it("are none where kernels are stored by themselves: exit status 1, as text and as JSON", async () => {
    using tree = new TemporaryTree();
    const stored = tree.write("stored.kpack", await archiveBytes({ targets: TARGETS }));
    const scheme = zstdCrossKernel({ codecs: nodeCodecs });
    const shared = tree.write("shared.kpack", await archiveBytes({ targets: TARGETS, scheme }));
    for (const [path, status] of [
      [stored, 1],
      [shared, 0],
    ] as const) {
      assert.equal((await runCommand(addInfo, "info", path, "--by", "frame", "-q")).status, status);
      const ran = await runCommand(addInfo, "info", path, "--by", "frame", "--json");
      assert.equal(ran.status, status);
      const document = parseJson<object>(ran.text);
      assert.partialDeepStrictEqual(document, { schema: "kpack/info/1" });
      assert.equal("graph" in document, status === 0);
      assert.equal((await runCommand(addInfo, "info", path, "--json")).status, 0);
    }
  });
});

describe("the extra fields of an archive", () => {
  it("are those that its scheme does not need, on lines that fit", async () => {
    using tree = new TemporaryTree();
    const hashes = ["kernel_hash_algorithm", "kernel_hashes"];
    const stored = tree.write("stored.kpack", await archiveBytes({ targets: TARGETS }));
    assert.deepEqual((await describeArchive(stored)).extraFields, ["zstd_frame_offsets", ...hashes]);
    const scheme = zstdCrossKernel({ codecs: nodeCodecs });
    const shared = tree.write("shared.kpack", await archiveBytes({ targets: TARGETS, scheme }));
    assert.deepEqual((await describeArchive(shared)).extraFields, hashes);

    const [content] = chainedContents(1, 1000) as [Uint8Array];
    const others = Array.from({ length: 20 }, (_, index) => `vendor_field_${index}`);
    const graph = {
      frames: [{ content }],
      kernels: [[[0, 0, content.length]]] as const,
      depth: 1,
      toc: others.map((name) => [name, 1] as const),
    };
    const entries = map(["a.so#0", map(["gfx942", entryOf(0, content.length)])]);
    const path = tree.write("others.kpack", graphArchive({ ...graph, entries }));
    assert.deepEqual((await describeArchive(path)).extraFields.toSorted(), others.toSorted());
    const { text } = await runCommand(addInfo, "info", path);
    for (const line of text.split("\n"))
      if (!line.startsWith("file ")) assert.ok(line.length <= TEXT_WIDTH, line);
    assert.match(text, /^extra fields {2}vendor_field_0, .*,\n {14}vendor_field_\d+, /m);
  });
});

describe("a binary key without entries", () => {
  it("is counted nowhere", async () => {
    using tree = new TemporaryTree();
    const [content] = chainedContents(1, 1000) as [Uint8Array];
    const path = tree.write(
      "a.kpack",
      graphArchive({
        frames: [{ content }],
        kernels: [[[0, 0, content.length]]],
        depth: 1,
        entries: map(["a.so#0", map(["gfx942", entryOf(0, content.length)])], ["empty.so#0", map()]),
      }),
    );
    const { binaryCount, binaries } = await describeArchive(path);
    assert.deepEqual([binaryCount, binaries.map(({ binaryKey }) => binaryKey)], [1, ["a.so#0"]]);
    assert.match((await runCommand(addInfo, "info", path)).text, /^binaries +1$/m);
    assert.doesNotMatch((await runCommand(addList, "list", path)).text, /empty/);
  });
});
