import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { attributeFrames, describeGraph, framesOf } from "../../src/operations/graph.ts";
import { describeArchive } from "../../src/operations/info.node.ts";
import { listFile } from "../../src/operations/list.node.ts";
import { StoredSizes } from "../../src/operations/stored-sizes.ts";
import type { FrameMap } from "../../src/scheme/scheme.ts";
import { entryOf } from "../support/archive-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { chainedContents, exoticGraphs, graphArchive, type RawGraph } from "../support/raw-graph.ts";
import { openBytes } from "../support/kernels.ts";
import { FIXTURES, kpack } from "../support/run-kpack.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** Frames as `[stored, content, ...dictionaries]`, kernels as lists of `[frame, size]`. */
function frameMap(
  frames: readonly (readonly number[])[],
  kernels: readonly (readonly (readonly [number, number])[])[],
): FrameMap {
  return {
    frames: frames.map(([size = 0, contentSize = 0, ...dictionaries]) => ({
      extent: { offset: 64, size },
      contentSize,
      dictionaries,
    })),
    kernels: kernels.map((slices) => slices.map(([frame, size]) => ({ frame, offset: 0, size }))),
  };
}

/** A solid frame of two kernels, one of one kernel, one dictionary for both; one kernel has two entries. */
function smallGraph(): RawGraph {
  const [a, b, c] = chainedContents(3, 4000) as [Uint8Array, Uint8Array, Uint8Array];
  return {
    frames: [{ content: b, dictionaries: [2] }, { content: a, dictionaries: [2] }, { content: c }],
    kernels: [[[0, 0, 6000]], [[0, 6000, 2000]], [[1, 0, 8000]]],
    depth: 2,
    entries: map(
      ["lib/a.so#0", map(["gfx1100", entryOf(0, 6000)], ["gfx942", entryOf(2, 8000)])],
      ["lib/b.so#0", map(["gfx1100", entryOf(1, 2000)], ["gfx942", entryOf(2, 8000)])],
    ),
    toc: [["gfx_arches", ["gfx1100", "gfx942"]]],
  };
}

function archiveIn(folder: string, graph: RawGraph): string {
  const path = join(folder, "graph.kpack");
  writeFileSync(path, graphArchive(graph));
  return path;
}

describe("the parts of shared bytes", () => {
  it("follow the sizes of slices and contents", () => {
    const { kernels, unusedSize } = attributeFrames(
      frameMap(
        [
          [100, 300, 2],
          [50, 100, 2],
          [40, 500],
        ],
        [[[0, 200]], [[0, 100]], [[1, 100]]],
      ),
    );
    // The dictionary's 40 go 3 : 1 to the frames, the first frame's 130 go 2 : 1 to its kernels.
    assert.deepEqual(
      kernels.map((size) => Math.round(size * 1000) / 1000),
      [86.667, 43.333, 60],
    );
    assert.equal(unusedSize, 0);
  });

  it("divide a frame that is a kernel and a dictionary among both, and pass chains on", () => {
    const chain = frameMap(
      [
        [10, 100, 1],
        [20, 100, 2],
        [40, 100],
      ],
      [[[0, 100]], [[1, 100]]],
    );
    assert.deepEqual(attributeFrames(chain).kernels, [40, 30]);
    assert.deepEqual(framesOf(chain, 0), { own: [0], dictionaries: [1, 2] });
    assert.equal(describeGraph(chain).depth, 3);
  });

  it("add up to all stored bytes in every graph that the format allows", async () => {
    for (const [name, graph] of Object.entries(exoticGraphs())) {
      await using archive = await openBytes(graphArchive(graph));
      const frames = archive.decompressor.describeFrames?.() ?? assert.fail(name);
      const { kernels, unusedSize } = attributeFrames(frames);
      const stored = frames.frames.reduce((sum, { extent }) => sum + extent.size, 0);
      const parts = kernels.reduce((sum, size) => sum + size, unusedSize);
      assert.ok(Math.abs(parts - stored) < 1e-6, `${name}: ${parts} of ${stored}`);
      assert.ok(describeGraph(frames).depth <= 8, name);
    }
  });
});

describe("info and list of an archive whose kernels share frames", () => {
  it("show frames, dictionaries and who depends on whom", async (context) => {
    const path = archiveIn(tempFolder(context), smallGraph());
    const { graph, targets, binaries, storedSize } = await describeArchive(path);
    assert.ok(graph);
    assert.deepEqual(
      graph.frames.map(({ dictionaries, usedBy, kernels }) => [dictionaries, usedBy, kernels]),
      [
        [[2], 0, [0, 1]],
        [[2], 0, [2]],
        [[], 2, []],
      ],
    );
    assert.deepEqual([graph.depth, graph.unusedSize], [2, 0]);
    const frameBytes = graph.frames.reduce((sum, frame) => sum + frame.storedSize, 0);
    assert.equal(storedSize, frameBytes);
    for (const parts of [targets, binaries]) {
      const sum = parts.reduce((total, { attributedSize = 0 }) => total + attributedSize, 0);
      assert.ok(Math.abs(sum - frameBytes) <= parts.length, `${sum} of ${frameBytes}`);
    }
    const listing = await listFile(path);
    assert.equal(listing.kind, "archive");
    assert.deepEqual(
      listing.entries.map(({ ordinal, frames }) => [
        ordinal,
        frames?.slices.map(({ frame, offset, size }) => [frame, offset, size]),
        frames?.dependsOn,
      ]),
      [
        [0, [[0, 0, 6000]], [2]],
        [2, [[1, 0, 8000]], [2]],
        [1, [[0, 6000, 2000]], [2]],
        [2, [[1, 0, 8000]], [2]],
      ],
    );
  });

  it("go through the slices of a kernel once, however many entries it has", async (context) => {
    const path = archiveIn(tempFolder(context), smallGraph());
    const listing = await listFile(path);
    assert.equal(listing.kind, "archive");
    const [first, second] = listing.entries.filter(({ ordinal }) => ordinal === 2);
    assert.ok(first?.frames);
    assert.equal(first.frames, second?.frames);
    assert.equal(first.storedSize, second?.storedSize);
    const archive = await openBytes(graphArchive(smallGraph()));
    const asked = context.mock.method(archive.decompressor, "storedExtents");
    const sizes = new StoredSizes(archive, undefined);
    for (const { ordinal } of archive.entries) assert.ok((await sizes.of(ordinal)) > 0);
    assert.deepEqual(
      asked.mock.calls.map(({ arguments: [ordinal] }) => ordinal),
      [0, 2, 1],
    );
  });

  it("say nothing of frames where each kernel is stored by itself", async () => {
    const path = join(FIXTURES, "D/ok/zstd_base.kpack");
    const info = await describeArchive(path);
    assert.equal(info.graph, undefined);
    assert.ok(info.targets.every(({ attributedSize }) => attributedSize === undefined));
    const listing = await listFile(path);
    assert.equal(listing.kind, "archive");
    assert.ok(listing.entries.every(({ frames }) => frames === undefined));
  });
});

/** As test/cli/golden.test.ts, for an archive that is built here. */
const GOLDEN = join(FIXTURES, "golden/cli");
const CASES: Readonly<Record<string, string>> = {
  "frames-info": "info TMP/graph.kpack",
  "frames-info-binary": "info TMP/graph.kpack --by binary",
  "frames-info-target": "info TMP/graph.kpack --by target",
  "frames-info-frame": "info TMP/graph.kpack --by frame",
  "frames-info-none": "info D/ok/zstd_base.kpack --by frame",
  "frames-info-json": "info TMP/graph.kpack --json",
  "frames-list": "list TMP/graph.kpack",
  "frames-list-json": "list TMP/graph.kpack --json",
};

describe("golden output of an archive whose kernels share frames", () => {
  for (const [name, line] of Object.entries(CASES)) {
    it(`${name}: kpack ${line}`, async (context) => {
      const folder = tempFolder(context);
      archiveIn(folder, smallGraph());
      const ran = await kpack(line.split(" ").map((part) => part.replace("TMP", folder)));
      const stderr = ran.stderr === "" ? "" : `--- stderr\n${ran.stderr}`;
      const text = `$ kpack ${line}\n${ran.stdout}${stderr}--- exit status ${ran.status}\n`;
      const found = text.replaceAll(folder, "TMP");
      if (!name.endsWith("-json"))
        for (const row of found.split("\n")) assert.ok(row.length <= TEXT_WIDTH, row);
      const path = join(GOLDEN, `${name}.txt`);
      if (process.env["KPACK_UPDATE_GOLDEN"]) {
        mkdirSync(GOLDEN, { recursive: true });
        writeFileSync(path, found);
      }
      assert.equal(found, readFileSync(path, "utf8"), "KPACK_UPDATE_GOLDEN=1 writes the files anew");
    });
  }
});
