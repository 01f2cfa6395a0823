import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type CompressionScheme,
  memorySource,
  openArchive,
  type Source,
  zstdCrossKernel,
} from "../../../src/index.ts";
import { ContentCache } from "../../../src/scheme/cross-kernel/content-cache.ts";
import { CountingCodecs } from "../../support/counting-codecs.ts";
import { chainedContents, graphArchive, kernelsOfGraph, type RawGraph } from "../../support/raw-graph.ts";
import { slowSource } from "../../support/sources.ts";

describe("the cache of contents", () => {
  function counting(): {
    readonly get: (frame: number, size: number) => Promise<Uint8Array>;
    decoded: number[];
  } & {
    readonly with: (budget: number) => ContentCache;
  } {
    const decoded: number[] = [];
    let cache = new ContentCache(0);
    return {
      decoded,
      with: (budget) => (cache = new ContentCache(budget)),
      get: async (frame, size) =>
        await cache.get(frame, async () => {
          decoded.push(frame);
          await new Promise((resolve) => setImmediate(resolve));
          return new Uint8Array(size).fill(frame);
        }),
    };
  }

  it("keeps what was used last, within its budget", async () => {
    const { get, decoded, with: setBudget } = counting();
    setBudget(100);
    for (const frame of [1, 2, 3]) await get(frame, 30);
    await get(1, 30); // used again: 2 is now the oldest
    await get(4, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4]);
    for (const frame of [1, 3, 4]) await get(frame, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4], "all three are there");
    await get(2, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4, 2], "2 had to go");
    await get(1, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4, 2, 1], "and then 1");
  });

  it("lets several go for a large one, and keeps none that is larger than the budget", async () => {
    const { get, decoded, with: setBudget } = counting();
    setBudget(100);
    for (const frame of [1, 2, 3]) await get(frame, 30);
    await get(4, 101);
    for (const frame of [1, 2, 3]) await get(frame, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4], "one that is too large pushes nothing out");
    await get(5, 100);
    await get(5, 100);
    assert.deepEqual(decoded, [1, 2, 3, 4, 5]);
    await get(3, 30);
    assert.deepEqual(decoded, [1, 2, 3, 4, 5, 3]);
  });

  it("with no budget decodes each time, but once for those who ask at the same time", async () => {
    const { get, decoded, with: setBudget } = counting();
    setBudget(0);
    const contents = await Promise.all([get(1, 30), get(1, 30), get(2, 30), get(1, 30)]);
    assert.deepEqual(decoded, [1, 2]);
    assert.equal(contents[0], contents[3]);
    await get(1, 30);
    assert.deepEqual(decoded, [1, 2, 1]);
  });

  it("fails all who wait for a decoding that fails, and nobody after them", async () => {
    const cache = new ContentCache(100);
    let calls = 0;
    const decode = async (): Promise<Uint8Array> => {
      calls += 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (calls === 1) throw new Error("damaged");
      return Uint8Array.of(calls);
    };
    const all = await Promise.allSettled([1, 1, 1].map((frame) => cache.get(frame, decode)));
    assert.deepEqual(
      all.map(({ status }) => status),
      ["rejected", "rejected", "rejected"],
    );
    assert.equal(calls, 1);
    assert.deepEqual(await cache.get(1, decode), Uint8Array.of(2));
    assert.deepEqual(await cache.get(1, decode), Uint8Array.of(2));
  });

  it("survives a decoder that throws at once", async () => {
    const cache = new ContentCache(100);
    await assert.rejects(
      cache.get(1, () => {
        throw new Error("at once");
      }),
      /at once/,
    );
    assert.deepEqual(await cache.get(1, async () => Uint8Array.of(1)), Uint8Array.of(1));
  });
});

describe("an archive's decoded frames", () => {
  const SIZE = 40_000;
  const contents = chainedContents(14, SIZE / 2);
  /** Ten kernels; the even ones have the dictionary 10, the odd ones 11; frames 12 and 13 hold many small kernels. */
  const graph: RawGraph = {
    frames: contents.map((content, index) => ({
      content,
      dictionaries: index < 10 ? [10 + (index % 2)] : [],
    })),
    kernels: [
      ...Array.from({ length: 10 }, (_, frame) => [[frame, 0, SIZE] as const]),
      ...Array.from({ length: 8 }, (_, index) => [[12 + (index % 2), index * 1000, 1000] as const]),
    ],
    depth: 2,
  };
  const kernels = kernelsOfGraph(graph);
  const bytes = graphArchive(graph);

  async function open(cacheSize?: number): Promise<{
    readonly codecs: CountingCodecs;
    readonly read: ReadKernel;
    readonly scheme: CompressionScheme;
  }> {
    const codecs = new CountingCodecs();
    const scheme = zstdCrossKernel({ codecs, cacheSize });
    const archive = await openArchive(slowSource(memorySource(bytes)), { schemes: [scheme] });
    return {
      codecs,
      scheme,
      read: async (ordinal, signal) => await archive.decompressor.decompressKernel(ordinal, { signal }),
    };
  }
  type ReadKernel = (ordinal: number, signal?: AbortSignal) => Promise<Uint8Array>;

  it("are decoded once when all kernels are asked for at the same time", async () => {
    const { codecs, read } = await open();
    const all = await Promise.all([...kernels.keys()].map((ordinal) => read(ordinal)));
    for (const [ordinal, kernel] of all.entries()) assert.deepEqual(kernel, kernels[ordinal]);
    assert.equal(codecs.take().length, 14, "each frame once");
    await read(0);
    assert.equal(codecs.take().length, 1, "its own frame again, the dictionary not");
    await read(12);
    assert.equal(codecs.take().length, 0);
  });

  it("are decoded again when the budget is too small to keep them", async () => {
    const { codecs, read } = await open(SIZE);
    await read(0);
    await read(2);
    assert.equal(codecs.take().length, 3, "one dictionary fits");
    await read(1);
    await read(0);
    assert.equal(codecs.take().length, 4, "two do not");
    const none = await open(0);
    for (let times = 0; times < 3; times++) await none.read(0);
    assert.equal(none.codecs.take().length, 6);
    const all = await Promise.all([...kernels.keys()].map((ordinal) => none.read(ordinal)));
    for (const [ordinal, kernel] of all.entries()) assert.deepEqual(kernel, kernels[ordinal]);
  });

  it("are decoded once by readers that use memory again, where kernels come frame by frame", async () => {
    const { codecs, scheme } = await open();
    const archive = await openArchive(slowSource(memorySource(bytes)), { schemes: [scheme] });
    const frameOf = ({ ordinal }: { readonly ordinal: number }): number =>
      archive.decompressor.frameOf?.(ordinal) ?? -1;
    const byFrame = [...archive.entries].toSorted((a, b) => frameOf(a) - frameOf(b));
    for (const [entries, jobs] of [
      [byFrame, 1],
      [byFrame, 3],
      [byFrame.toReversed(), 2],
    ] as const) {
      const order: number[] = [];
      for await (const { entry, bytes: kernel } of archive.readKernels({
        entries,
        jobs,
        reuseMemory: true,
      })) {
        order.push(entry.ordinal);
        assert.deepEqual(kernel, kernels[entry.ordinal]);
        await new Promise(setImmediate); // others are decoded meanwhile
        assert.deepEqual(kernel, kernels[entry.ordinal]);
      }
      assert.deepEqual(
        order,
        entries.map(({ ordinal }) => ordinal),
      );
      assert.ok(
        codecs.take().length <= 14,
        "each frame once; the dictionaries are there from the second time on",
      );
    }
  });

  it("are there for the others when one reader is aborted", async () => {
    const { codecs, read } = await open();
    const reason = new Error("enough");
    const controller = new AbortController();
    const aborted = [0, 10].map((ordinal) => read(ordinal, controller.signal));
    const others = [2, 4, 12, 14].map((ordinal) => read(ordinal));
    controller.abort(reason);
    const outcomes = await Promise.allSettled(aborted);
    for (const outcome of outcomes) assert.equal(outcome.status === "rejected" && outcome.reason, reason);
    const found = await Promise.all(others);
    for (const [index, ordinal] of [2, 4, 12, 14].entries()) assert.deepEqual(found[index], kernels[ordinal]);
    assert.deepEqual(await read(0), kernels[0]);
    const shared = codecs.take().length;
    assert.ok(shared >= 5 && shared <= 6, "the dictionary and the shared frame once each");
  });

  it("are waited for no longer than until an abort", async () => {
    const { scheme } = await open();
    const source = memorySource(bytes);
    const never: Source = {
      ...source,
      name: "never",
      size: source.size,
      read: async (offset, length, options) =>
        offset > 0 && offset < bytes.length / 2
          ? await new Promise<never>(() => undefined)
          : await source.read(offset, length, options),
    };
    const archive = await openArchive(never, { schemes: [scheme] });
    const shared = [10, 12].map(async (ordinal) => {
      const controller = new AbortController();
      const reason = new Error("enough");
      const reading = archive.decompressor.decompressKernel(ordinal, { signal: controller.signal });
      setImmediate(() => controller.abort(reason));
      await assert.rejects(reading, (error) => error === reason);
    });
    await Promise.all(shared);
  });

  it("leave a reader usable after a failure, whenever the reads under way end", async () => {
    const damaged = bytes.slice();
    const { scheme } = await open();
    const frames = (
      await openArchive(memorySource(bytes), { schemes: [scheme] })
    ).decompressor.describeFrames?.();
    const dictionary = frames?.frames[10]?.extent;
    const own = frames?.frames[0]?.extent;
    assert.ok(dictionary && own);
    damaged[dictionary.offset + dictionary.size - 10] =
      0x55 ^ (damaged[dictionary.offset + dictionary.size - 10] ?? 0);
    const source = memorySource(damaged);
    // The kernel's own bytes come into the reader's memory long after its dictionary has failed.
    const late: Source = {
      ...source,
      name: "late",
      size: source.size,
      async read(offset, length, options) {
        const found = await source.read(offset, length, options);
        if (offset === own.offset) await new Promise((resolve) => setTimeout(resolve, 30));
        const buffer = options?.buffer;
        if (!buffer || buffer.length < length) return found;
        buffer.set(found);
        return buffer.subarray(0, length);
      },
    };
    const archive = await openArchive(late, { schemes: [scheme] });
    const reader = archive.decompressor.openReader?.();
    assert.ok(reader);
    for (let times = 0; times < 3; times++) {
      await assert.rejects(reader.decompressKernel(0));
      assert.deepEqual(await reader.decompressKernel(1), kernels[1]);
    }
    reader.close();
    await assert.rejects(reader.decompressKernel(1));
  });

  it("are not held by a small kernel that was cut out of a large one", async () => {
    const large = new Uint8Array(1 << 20).map((_, index) => (index * 2654435761) >>> 16);
    const sizes = [0, 10, 1000, (1 << 17) - 1, 1 << 17, 1 << 20];
    const cut: RawGraph = {
      frames: [{ content: large }],
      kernels: sizes.map((size) => [[0, 0, size] as const]),
      depth: 1,
    };
    const archive = await openArchive(memorySource(graphArchive(cut)), {
      schemes: [zstdCrossKernel({ codecs: new CountingCodecs() })],
    });
    for (const [ordinal, size] of sizes.entries()) {
      const kernel = await archive.decompressor.decompressKernel(ordinal);
      assert.deepEqual(kernel, large.subarray(0, size));
      assert.ok(kernel.buffer.byteLength <= Math.max(65_536, size * 8), `${size} bytes`);
    }
  });
});
