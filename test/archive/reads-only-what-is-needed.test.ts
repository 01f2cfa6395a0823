import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Archive,
  type CompressionScheme,
  type Extent,
  memorySource,
  nodeCodecs,
  none,
  openArchive,
  zstdPerKernel,
} from "../../src/node.ts";
import { fixtureBytes } from "../support/archive-fixtures.ts";
import { kernelsToWrite, sampleKernel, writeToMemory } from "../support/kernels.ts";
import { CountingSource, type RecordedRead } from "../support/sources.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });
/** Frames well over 8 KiB, and of different sizes. */
const LARGE = [30_000, 25_000, 61_000, 40_001, 52_000].map((size, index) => sampleKernel(index, size));
const SMALL = Array.from({ length: 300 }, (_, index) => sampleKernel(index, 100 + index));

interface Opened {
  readonly archive: Archive;
  readonly source: CountingSource;
}

async function openCounting(bytes: Uint8Array): Promise<Opened> {
  const source = new CountingSource(memorySource(bytes));
  return { archive: await openArchive(source), source };
}

async function written(
  scheme: CompressionScheme,
  kernels: readonly Uint8Array[],
  extraFields: boolean,
): Promise<Opened> {
  const { bytes } = await writeToMemory(kernelsToWrite(kernels), { scheme, extraFields });
  return await openCounting(bytes);
}

/** Where the frames of all kernels lie, found on an archive of its own so that nothing is remembered. */
async function extentsOf(source: CountingSource): Promise<readonly Extent[]> {
  const archive = await openArchive(memorySource(await source.read(0, source.size)));
  source.take();
  const extents: Extent[] = [];
  for (let ordinal = 0; ordinal < (await archive.decompressor.kernelCount()); ordinal++)
    extents.push(...(await archive.decompressor.storedExtents(ordinal)));
  return extents;
}

function touches(read: RecordedRead, extent: Extent): boolean {
  return read.offset < extent.offset + extent.size && extent.offset < read.offset + read.length;
}

describe("opening an archive", () => {
  for (const path of ["D/ok/none_small.kpack", "D/ok/zstd_small.kpack", "D/ok/zstd_many5000.kpack"]) {
    it(`${path}: two reads, header and TOC, and no byte of the kernels`, async () => {
      const { archive, source } = await openCounting(fixtureBytes(path));
      assert.deepEqual(source.take(), [
        { offset: 0, length: 64 },
        { offset: archive.tocOffset, length: source.size - archive.tocOffset },
      ]);
      for (const entry of archive.entries) entry.fields();
      assert.ok(archive.find("lib/nothing", "gfx942") === undefined);
      assert.deepEqual(source.take(), [], "listing reads nothing more");
    });
  }

  it("takes the source over: disposed of with the archive, or at once when opening fails", async () => {
    const { archive, source } = await openCounting(fixtureBytes("D/ok/none_base.kpack"));
    assert.equal(source.disposals, 0);
    await archive[Symbol.asyncDispose]();
    assert.equal(source.disposals, 1);
    for (const path of ["D/bad/magic.kpack", "D/bad/toc_nil.kpack", "D/bad/zstd_size_3.kpack"]) {
      const broken = new CountingSource(memorySource(fixtureBytes(path)));
      await assert.rejects(openArchive(broken));
      assert.equal(broken.disposals, 1, path);
    }
  });
});

describe("reading one kernel", () => {
  it("of scheme none: one read of exactly the kernel", async () => {
    const { archive, source } = await written(none, LARGE, false);
    const extents = await extentsOf(source);
    for (const entry of archive.entries) {
      await archive.readKernel(entry);
      const extent = extents[entry.ordinal];
      assert.deepEqual(source.take(), [{ offset: extent?.offset, length: LARGE[entry.ordinal]?.length }]);
    }
  });

  for (const kernels of [LARGE, SMALL]) {
    it(`of ${kernels.length} zstd frames with a table: one read of the frame and its size`, async () => {
      const { archive, source } = await written(zstd, kernels, true);
      const extents = await extentsOf(source);
      for (const entry of [...archive.entries].toReversed().slice(0, 50)) {
        assert.deepEqual(await archive.readKernel(entry, { checkHash: true }), kernels[entry.ordinal]);
        const { offset, size } = extents[entry.ordinal] as Extent;
        assert.deepEqual(source.take(), [{ offset: offset - 4, length: size + 4 }]);
      }
    });
  }

  it("of large zstd frames without a table: sizes of 4 bytes before it, and they are remembered", async () => {
    const { archive, source } = await written(zstd, LARGE, false);
    const extents = await extentsOf(source);
    const entries = [...archive.entries];
    await archive.readKernel(entries[3]!);
    const reads = source.take();
    const sizes = reads.slice(0, -1);
    assert.equal(sizes.length, 1 + 4, "the count and the sizes of four frames");
    for (const read of sizes) assert.equal(read.length, 4);
    assert.deepEqual(reads.at(-1), { offset: extents[3]?.offset, length: extents[3]?.size });
    for (const read of reads)
      for (const [ordinal, extent] of extents.entries())
        assert.ok(ordinal === 3 || !touches(read, extent), `frame ${ordinal} was read`);
    await archive.readKernel(entries[3]!);
    assert.equal(source.take().length, 1, "the second time");
    await archive.readKernel(entries[1]!);
    assert.equal(source.take().length, 1, "one before it");
    await archive.readKernel(entries[4]!);
    assert.deepEqual(
      source.take().map(({ length }) => length),
      [4, extents[4]?.size],
      "the next one",
    );
  });

  it("of small zstd frames without a table: few reads, none past the area", async () => {
    const { archive, source } = await openCounting(fixtureBytes("D/ok/zstd_many5000.kpack"));
    source.take();
    await archive.readKernel("lib/lib25/k2500.so#1", "gfx942");
    const reads = source.take();
    assert.ok(reads.length <= 4, `${reads.length} reads`);
    for (const { offset, length } of reads) {
      assert.ok(length <= 256 * 1024 && offset >= 64 && offset + length <= archive.tocOffset);
    }
    await archive.readKernel("lib/lib25/k2501.so#2", "gfx1100");
    assert.ok(source.take().length <= 2);
    await archive.readKernel("lib/lib00/k0000.so#0", "gfx942");
    assert.equal(source.take().length, 1);
  });

  it("of small zstd frames in order without a table: the area is walked through once", async () => {
    const { archive, source } = await openCounting(fixtureBytes("D/ok/zstd_many5000.kpack"));
    source.take();
    for (const { ordinal } of archive.entries) await archive.decompressor.storedExtents(ordinal);
    const walked = source.take().reduce((sum, { length }) => sum + length, 0);
    assert.ok(walked <= archive.tocOffset + 256 * 1024, `${walked} bytes`);
  });

  it("with a table: where kernels are stored is known without a read", async () => {
    const { archive, source } = await written(zstd, LARGE, true);
    const wanted = await extentsOf(source);
    source.take();
    for (const { ordinal } of archive.entries) {
      assert.deepEqual(await archive.decompressor.storedExtents(ordinal), [wanted[ordinal]]);
    }
    assert.deepEqual(source.take(), []);
  });

  it("many times at once walks each size once", async () => {
    const { archive, source } = await written(zstd, LARGE, false);
    const entries = [...archive.entries];
    await Promise.all([...entries, ...entries].map(async (entry) => await archive.readKernel(entry)));
    const reads = source.take().filter(({ length }) => length === 4);
    const sizes = new Set(reads.map(({ offset }) => offset));
    assert.equal(sizes.size, 1 + LARGE.length);
    const repeated = reads.filter(({ offset }) => offset !== 64).length;
    assert.equal(repeated, LARGE.length);
  });

  it("whose entries share an ordinal reads the one frame", async () => {
    const { archive, source } = await openCounting(fixtureBytes("D/odd/shared_ordinal.kpack"));
    await archive.readKernel("lib/liba.so#0", "gfx906");
    const first = source.take().at(-1);
    await archive.readKernel("lib/alias.so#0", "gfx906");
    assert.deepEqual(source.take(), [first]);
  });
});

describe("reading many kernels", () => {
  it("reads ahead no further than the number of jobs", async () => {
    const { archive, source } = await written(none, LARGE, false);
    for (const jobs of [1, 3]) {
      source.take();
      for await (const _ of archive.readKernels({ jobs })) break;
      assert.equal(source.take().length, jobs);
    }
  });

  it("takes the entries that it is given, in their order", async () => {
    const { archive, source } = await written(zstd, LARGE, true);
    const wanted = [...archive.entries].filter(({ ordinal }) => ordinal % 2 === 0).toReversed();
    const ordinals: number[] = [];
    for await (const { entry } of archive.readKernels({ entries: wanted })) ordinals.push(entry.ordinal);
    assert.deepEqual(ordinals, [4, 2, 0]);
    assert.equal(source.take().length, 2 + 3);
  });

  it("refuses a number of jobs that is none", async () => {
    const { archive } = await written(none, LARGE, false);
    for (const jobs of [0, -1, 1.5, Number.NaN])
      await assert.rejects(archive.readKernels({ jobs }).next(), RangeError);
  });
});
