import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { verifyArchive } from "../../../src/index.ts";
import { entryOf } from "../../support/archive-builder.ts";
import { kpackError } from "../../support/expect-error.ts";
import { openBytes } from "../../support/kernels.ts";
import { chainedContents, graphArchive, type RawGraph, storedFrames } from "../../support/raw-graph.ts";
import { map } from "../../support/raw-msgpack.ts";

/** Two kernels in one frame, one in another; both frames have one dictionary. */
const [A, B, DICTIONARY] = chainedContents(3, 4000) as [Uint8Array, Uint8Array, Uint8Array];
const GRAPH: RawGraph = {
  frames: [{ content: A, dictionaries: [2] }, { content: B, dictionaries: [2] }, { content: DICTIONARY }],
  kernels: [[[0, 0, 6000]], [[0, 6000, 2000]], [[1, 0, 8000]]],
  depth: 2,
  entries: map(
    ["lib/a.so#0", map(["gfx942", entryOf(0, 6000)])],
    ["lib/b.so#0", map(["gfx942", entryOf(1, 2000)])],
    ["lib/c.so#0", map(["gfx942", entryOf(2, 8000)])],
  ),
  toc: [["gfx_arches", ["gfx942"]]],
};

/** The archive with the last byte of a frame, which is of its checksum, flipped. */
function damaged(index: number): { readonly bytes: Uint8Array; readonly offset: number } {
  const sizes = storedFrames(GRAPH.frames).map(({ length }) => length);
  const bytes = graphArchive(GRAPH);
  const offset = 64 + sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
  const last = offset + (sizes[index] ?? 0) - 1;
  bytes[last] = (bytes[last] ?? 0) ^ 1;
  return { bytes, offset };
}

describe("a damaged frame", () => {
  it("is told for each kernel under the kernel's name, though it is decoded once", async () => {
    const { bytes, offset } = damaged(0);
    const archive = await openBytes(bytes);
    const read = async (key: string): ReturnType<typeof kpackError> =>
      await kpackError(() => archive.readKernel(key, "gfx942"), "CHECKSUM_MISMATCH");
    const errors = await Promise.all(["lib/a.so#0", "lib/b.so#0"].map(read));
    assert.deepEqual(
      errors.map(({ field }) => field),
      ["frame 0 (lib/a.so#0 gfx942)", "frame 0 (lib/b.so#0 gfx942)"],
    );
    for (const error of errors) {
      assert.equal(error.name, "FormatError");
      assert.equal(error.offset, offset);
      assert.equal(error.file, "test.kpack");
      assert.ok(error.cause instanceof Error);
      assert.match(error.message, /^test\.kpack, frame 0 \(lib\/[ab]\.so#0 gfx942\), at byte /);
    }
    assert.equal((await archive.readKernel("lib/c.so#0", "gfx942")).length, 8000);
    // Without a name there is none to tell.
    await kpackError(async () => await archive.decompressor.decompressKernel(0), undefined, /^frame 0$/);
  });

  it("that is a dictionary is told for every kernel that needs it, by verify too", async () => {
    const archive = await openBytes(damaged(2).bytes);
    const { findings } = await verifyArchive(archive);
    assert.deepEqual(
      findings.filter(({ code }) => code === "CHECKSUM_MISMATCH").map(({ field }) => field),
      ["a", "b", "c"].map((name) => `frame 2 (lib/${name}.so#0 gfx942)`),
    );
  });
});
