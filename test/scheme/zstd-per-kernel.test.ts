import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { zstdCompressSync } from "node:zlib";
import { type Codecs, type KernelToWrite, nodeCodecs, writeArchive, zstdPerKernel } from "../../src/node.ts";
import { frameOffsets, zstdArchive } from "../support/archive-builder.ts";
import type { CountedKernels } from "../support/count-kernels.worker.ts";
import { kpackError } from "../support/expect-error.ts";
import { CountingSink } from "../support/faulty-sinks.ts";
import { kernelsToWrite, openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";

const KERNELS = [700, 300, 900, 500].map((size, index) => sampleKernel(index, size));
const FRAMES = KERNELS.map((kernel) => new Uint8Array(zstdCompressSync(kernel)));
const TABLE = frameOffsets(FRAMES);

function withTable(table: unknown): Uint8Array {
  return zstdArchive(KERNELS, FRAMES, { toc: [["zstd_frame_offsets", table]] });
}

function changed(change: (view: DataView, table: Uint8Array) => Uint8Array | undefined): Uint8Array {
  const table = TABLE.slice();
  return withTable(change(new DataView(table.buffer), table) ?? table);
}

describe("the table of frame offsets", () => {
  it("is what the writer writes: the absolute offset of each frame's first byte", async () => {
    const { bytes } = await writeToMemory(kernelsToWrite(KERNELS), {
      scheme: zstdPerKernel({ codecs: nodeCodecs }),
    });
    const archive = await openBytes(bytes);
    const table = archive.field("zstd_frame_offsets");
    assert.ok(table instanceof Uint8Array);
    assert.equal(table.length, 8 * KERNELS.length);
    const view = new DataView(table.buffer, table.byteOffset);
    for (const ordinal of KERNELS.keys()) {
      const offset = Number(view.getBigUint64(ordinal * 8, true));
      assert.deepEqual([...bytes.subarray(offset, offset + 4)], [0x28, 0xb5, 0x2f, 0xfd]);
    }
  });

  it("leads to the same kernels as walking does", async () => {
    for (const bytes of [withTable(TABLE), zstdArchive(KERNELS, FRAMES)]) {
      const archive = await openBytes(bytes);
      for (const ordinal of [3, 0, 2, 1])
        assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), KERNELS[ordinal]);
      await archive.decompressor.verifyArea?.(() => assert.fail("nothing is odd"));
    }
  });

  it("must be a bin of whole u64", async () => {
    const field = /^zstd_frame_offsets$/;
    await kpackError(async () => await openBytes(withTable(TABLE.subarray(1))), "SIZE_MISMATCH", field);
    await kpackError(async () => await openBytes(withTable([1, 2, 3, 4])), "WRONG_TYPE", field);
    await kpackError(async () => await openBytes(withTable("12345678")), "WRONG_TYPE", field);
  });

  it("that contradicts the frames is an error, never other bytes", async () => {
    const swap = (view: DataView): undefined => {
      const [one, two] = [view.getBigUint64(8, true), view.getBigUint64(16, true)];
      view.setBigUint64(8, two, true);
      view.setBigUint64(16, one, true);
    };
    const tables: Readonly<Record<string, Uint8Array>> = {
      "one byte late": changed((view) => void view.setBigUint64(8, view.getBigUint64(8, true) + 1n, true)),
      "one byte early": changed((view) => void view.setBigUint64(8, view.getBigUint64(8, true) - 1n, true)),
      "in the header": changed((view) => void view.setBigUint64(8, 16n, true)),
      "in the TOC": changed((view) => void view.setBigUint64(8, BigInt(64 + 4000), true)),
      "past every file": changed((view) => void view.setBigUint64(8, 2n ** 64n - 1n, true)),
      "another frame's": changed((view) => void view.setBigUint64(8, view.getBigUint64(0, true), true)),
      swapped: changed(swap),
    };
    for (const [name, bytes] of Object.entries(tables)) {
      const archive = await openBytes(bytes);
      const error = await kpackError(async () => await archive.decompressor.decompressKernel(1));
      assert.match(error.field ?? "", /^zstd_frame_offsets\[[12]\]$|^size of frame 1$/, name);
      assert.equal(error.code, "OUT_OF_BOUNDS", name);
      assert.deepEqual(await archive.decompressor.decompressKernel(3), KERNELS[3], name);
      const verify = async (): Promise<void> => await archive.decompressor.verifyArea?.(() => undefined);
      await kpackError(verify, "OUT_OF_BOUNDS", /^zstd_frame_offsets\[1\]$/);
    }
  });

  it("with another number of frames than the area is an error when the kernels are counted", async () => {
    const archive = await openBytes(withTable(TABLE.subarray(0, 24)));
    await kpackError(
      async () => await archive.decompressor.kernelCount(),
      "OUT_OF_BOUNDS",
      /^zstd_frame_offsets$/,
    );
    const error = await kpackError(
      async () => await archive.decompressor.decompressKernel(3),
      "ORDINAL_OUT_OF_RANGE",
    );
    assert.equal(error.expected, "0 to 2");
  });
});

describe("what ROCm's runtime would not open is not written", () => {
  /** A codec whose frames are as large as it is told; nothing ever looks into them. */
  function fakeCodecs(sizes: readonly number[]): Codecs {
    const memory = new Uint8Array(Math.max(...sizes));
    let next = 0;
    const zstd = {
      compress: async () => memory.subarray(0, sizes[next++]),
      decompress: async () => await Promise.reject(new Error("not here")),
      decompressUnsized: async () => await Promise.reject(new Error("not here")),
    };
    return { zstd };
  }

  async function writeFrames(sizes: readonly number[]): Promise<CountingSink> {
    const kernels: readonly KernelToWrite[] = kernelsToWrite(
      sizes.map((_, index) => sampleKernel(index, 64)),
    );
    const sink = new CountingSink();
    const scheme = zstdPerKernel({ codecs: fakeCodecs(sizes) });
    await writeArchive(sink, kernels, { groupName: "g", family: "f", scheme, jobs: 1 });
    return sink;
  }

  it("4 GiB of compressed kernels are the most, to the byte", async () => {
    const gib = 2 ** 30;
    const last = gib - 4 - 4 * 4; // the count and four sizes
    const sink = await writeFrames([gib, gib, gib, last]);
    assert.ok(sink.position > 64 + 2 ** 32);
    const error = await kpackError(
      async () => await writeFrames([gib, gib, gib, last + 1]),
      "READER_LIMIT",
      /^zstd_size$/,
    );
    assert.equal(error.name, "LimitError");
    assert.equal(error.found, 2 ** 32 + 1);
    assert.match(error.hint ?? "", /one archive per target/);
  });

  it("1,048,576 kernels are the most", async () => {
    // In a thread of its own: the test runner's hooks make each of a million promises ten times as slow.
    const worker = new Worker(new URL("../support/count-kernels.worker.ts", import.meta.url));
    const [result] = (await once(worker, "message")) as [CountedKernels];
    assert.deepEqual(result, {
      name: "LimitError",
      code: "READER_LIMIT",
      field: "kernels",
      found: 1_048_577,
      framesGiven: 1_048_577,
      areaEnd: 64 + 4 + 1_048_576 * 13,
    });
  });
});
