import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode } from "@msgpack/msgpack";
import {
  type KernelToWrite,
  memorySink,
  nodeCodecs,
  none,
  normalizeBinaryKey,
  type Progress,
  writeArchive,
  zstdPerKernel,
} from "../../src/node.ts";
import { kpackError } from "../support/expect-error.ts";
import { kernelsToWrite, kernelToWrite, openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });
const A = sampleKernel(1, 3000);
const B = sampleKernel(2, 3000);

describe("writing an archive", () => {
  it("writes every key that ROCm's readers need, in the usual order, and nothing after the TOC", async () => {
    for (const scheme of [none, zstd]) {
      const { bytes } = await writeToMemory(kernelsToWrite([A]), { scheme, groupName: "blas", family: "f" });
      const archive = await openBytes(bytes);
      assert.deepEqual(archive.findings, []);
      assert.deepEqual([...archive.toc.presentKeys].slice(0, 6), [
        "format_version",
        "group_name",
        "gfx_arch_family",
        "gfx_arches",
        "toc",
        "compression_scheme",
      ]);
      const toc = decode(bytes.subarray(archive.tocOffset)) as Record<string, unknown>; // throws on more bytes
      assert.equal(toc["group_name"], "blas");
      assert.deepEqual(toc["toc"], {
        "lib/k0.so#0": { gfx942: { type: "hsaco", ordinal: 0, original_size: 3000 } },
      });
      assert.deepEqual(bytes.subarray(16, 64), new Uint8Array(48));
    }
  });

  it("makes zstd frames with content size and checksum, by the level that is asked for", async () => {
    const kernel = sampleKernel(3, 100_000);
    const sizes: number[] = [];
    for (const level of [1, 19]) {
      const scheme = zstdPerKernel({ codecs: nodeCodecs, level });
      const { bytes } = await writeToMemory(kernelsToWrite([kernel]), { scheme });
      const [extent] = await (await openBytes(bytes)).decompressor.storedExtents(0);
      assert.ok(extent);
      const descriptor = bytes[extent.offset + 4] ?? 0;
      assert.equal(descriptor & 0x04, 0x04, "checksum");
      assert.notEqual(descriptor & 0xe0, 0, "content size");
      sizes.push(extent.size);
    }
    assert.ok((sizes[1] ?? 0) < (sizes[0] ?? 0), `${sizes.join(", ")}`);
  });

  it("refuses levels that zstd does not have", () => {
    for (const level of [0, 23, -1, 3.5, Number.NaN])
      assert.throws(() => zstdPerKernel({ codecs: nodeCodecs, level }), RangeError);
  });

  it("needs a codec for zstd, and says which", async () => {
    const scheme = zstdPerKernel({ codecs: {} });
    const error = await kpackError(
      async () => await writeToMemory(kernelsToWrite([A]), { scheme }),
      "MISSING_CODEC",
    );
    assert.match(error.hint ?? "", /rocm-kpack\/node/);
    const { bytes } = await writeToMemory(kernelsToWrite([A]), { scheme: zstd });
    const archive = await openBytes(bytes, { schemes: [scheme] });
    await kpackError(async () => await archive.readKernel("lib/k0.so#0", "gfx942"), "MISSING_CODEC");
  });

  it("lists the targets of the entries as they come, or those that it is given", async () => {
    const kernels = [
      kernelToWrite(A, { binaryKey: "a", target: "gfx942" }, { binaryKey: "b", target: "gfx90a:xnack-" }),
      kernelToWrite(B, { binaryKey: "a", target: "gfx1100" }, { binaryKey: "c", target: "gfx942" }),
    ];
    const one = await writeToMemory(kernels, { scheme: none });
    assert.deepEqual(one.summary.targets, ["gfx942", "gfx90a:xnack-", "gfx1100"]);
    assert.deepEqual((await openBytes(one.bytes)).targets, ["gfx942", "gfx90a:xnack-", "gfx1100"]);
    const two = await writeToMemory(kernels, { scheme: none, targets: ["gfx1100", "gfx9"] });
    assert.deepEqual((await openBytes(two.bytes)).targets, ["gfx1100", "gfx9"]);
  });

  it("turns backslashes of a key into slashes", async () => {
    assert.equal(normalizeBinaryKey("bin\\sub\\a.exe#0"), "bin/sub/a.exe#0");
    const { bytes } = await writeToMemory(
      [kernelToWrite(A, { binaryKey: "bin\\sub\\a.exe#0", target: "gfx942" })],
      { scheme: none },
    );
    assert.deepEqual(await (await openBytes(bytes)).readKernel("bin/sub/a.exe#0", "gfx942"), A);
  });

  it("sorts the TOC by the entries' positions, whatever the kernels' order", async () => {
    const kernels = [
      kernelToWrite(
        A,
        { binaryKey: "z", target: "t1", position: 2 },
        { binaryKey: "a", target: "t1", position: 0 },
      ),
      kernelToWrite(
        B,
        { binaryKey: "a", target: "t2", position: 3 },
        { binaryKey: "m", target: "t1", position: 1 },
      ),
    ];
    const { bytes } = await writeToMemory(kernels, { scheme: none });
    const archive = await openBytes(bytes);
    assert.deepEqual(
      [...archive.entries].map(({ id, ordinal, index }) => [id, ordinal, index]),
      [
        ["a t1", 0, 0],
        ["a t2", 1, 1],
        ["m t1", 1, 2],
        ["z t1", 0, 3],
      ],
    );
  });

  it("takes kernels from an async generator, one at a time", async () => {
    let open = 0;
    async function* make(): AsyncGenerator<KernelToWrite> {
      for (const [index, kernel] of [A, B].entries()) {
        open += 1;
        yield kernelToWrite(kernel, { binaryKey: `k${index}`, target: "t" });
      }
    }
    const { summary } = await writeToMemory(make(), { scheme: zstd });
    assert.equal(open, 2);
    assert.equal(summary.kernels, 2);
    assert.equal(summary.originalSize, 6000);
  });

  it("tells how far it is", async () => {
    const seen: Progress[] = [];
    await writeToMemory(kernelsToWrite([A, B, A]), { scheme: zstd, onProgress: (one) => seen.push(one) });
    assert.deepEqual(
      seen.map(({ done, unit }) => [done, unit]),
      [
        [3000, "bytes"],
        [6000, "bytes"],
        [9000, "bytes"],
      ],
    );
  });

  it("holds no more kernels at once than it says", async () => {
    let prepared = 0;
    let most = 0;
    const scheme: typeof none = {
      ...none,
      createCompressor: (context) => {
        const inner = none.createCompressor(context);
        return {
          prepareKernel: async (kernel, options) => {
            prepared += 1;
            most = Math.max(most, prepared);
            await new Promise((resolve) => setTimeout(resolve, 1));
            const input = await inner.prepareKernel(kernel, options);
            prepared -= 1;
            return input;
          },
          finalize: async (inputs, area, options) => await inner.finalize(inputs, area, options),
        };
      },
    };
    const kernels = Array.from({ length: 30 }, (_, index) => sampleKernel(index, 500));
    for (const jobs of [1, 3]) {
      most = 0;
      await writeToMemory(kernelsToWrite(kernels), { scheme, jobs });
      assert.equal(most, jobs);
    }
  });
});

describe("writing many kernels", () => {
  const kernels = Array.from({ length: 40 }, (_, index) => sampleKernel(index, 500 - index));

  it("may use the memory of one kernel again for the next", async () => {
    // As files do it: the buffer that is handed in is filled, and what was in it before is gone.
    const filling = kernels.map(
      (bytes, index): KernelToWrite => ({
        kernel: {
          size: bytes.length,
          read: async (options) => {
            const buffer = options?.buffer?.subarray(0, bytes.length) ?? new Uint8Array(bytes.length);
            buffer.set(bytes);
            return buffer;
          },
        },
        entries: [{ binaryKey: `k${index}`, target: "t" }],
      }),
    );
    for (const scheme of [none, zstd])
      for (const jobs of [1, 3]) {
        const archive = await openBytes((await writeToMemory(filling, { scheme, jobs })).bytes);
        for (const entry of archive.entries)
          assert.deepEqual(await archive.readKernel(entry, { checkHash: true }), kernels[entry.ordinal]);
      }
  });

  it("reads no further ahead of what was written than twice the jobs", async () => {
    for (const jobs of [1, 3]) {
      let read = 0;
      let written = 0;
      let ahead = 0;
      async function* counted(): AsyncGenerator<KernelToWrite> {
        for (const kernel of kernelsToWrite(kernels)) {
          read += 1;
          ahead = Math.max(ahead, read - written);
          yield kernel;
        }
      }
      const scheme: typeof none = {
        ...none,
        createCompressor: () => ({
          prepareKernel: async ({ bytes }) => bytes.slice(),
          finalize: async (inputs) => {
            for await (const _ of inputs) written += 1;
            return { blobs: [] };
          },
        }),
      };
      await writeToMemory(counted(), { scheme, jobs });
      assert.equal(written, kernels.length);
      assert.ok(ahead <= 2 * jobs + 1, `${ahead} with ${jobs} jobs`);
    }
  });
});

describe("identical kernels", () => {
  const kernels = kernelsToWrite([A, B, A.slice(), A, B.slice()]);

  it("share one ordinal, and each entry still reads its own", async () => {
    for (const scheme of [none, zstd]) {
      const { bytes, summary } = await writeToMemory(kernels, { scheme });
      assert.equal(summary.kernels, 2);
      assert.equal(summary.entries, 5);
      const archive = await openBytes(bytes);
      assert.equal(await archive.decompressor.kernelCount(), 2);
      assert.deepEqual(
        [...archive.entries].map(({ ordinal }) => ordinal),
        [0, 1, 0, 0, 1],
      );
      for (const entry of archive.entries)
        assert.deepEqual(await archive.readKernel(entry, { checkHash: true }), entry.ordinal === 0 ? A : B);
    }
  });

  it("are stored again each time when sharing is off", async () => {
    const { bytes, summary } = await writeToMemory(kernels, { scheme: none, shareIdentical: false });
    assert.equal(summary.kernels, 5);
    const archive = await openBytes(bytes);
    assert.deepEqual(
      [...archive.entries].map(({ ordinal }) => ordinal),
      [0, 1, 2, 3, 4],
    );
    assert.equal(archive.tocOffset, 64 + 15_000);
  });

  it("are compared byte by byte: kernels that claim to be what they are not are not merged", async () => {
    // The first kernel changes after it was stored. Its hash still says that the second is its twin; its bytes do not.
    let reads = 0;
    const changing: KernelToWrite = {
      kernel: {
        size: A.length,
        read: async () => {
          reads += 1;
          return reads === 1 ? A : B;
        },
      },
      entries: [{ binaryKey: "first", target: "t" }],
    };
    const second = kernelToWrite(A, { binaryKey: "second", target: "t" });
    const { bytes, summary } = await writeToMemory([changing, second], { scheme: none });
    assert.equal(reads, 2);
    assert.equal(summary.kernels, 2);
    const archive = await openBytes(bytes);
    for (const key of ["first", "second"])
      assert.deepEqual(await archive.readKernel(key, "t", { checkHash: true }), A);
  });

  it("of one size are told apart by every byte", async () => {
    const variants = Array.from({ length: 64 }, (_, index) => {
      const kernel = A.subarray(0, 64).slice();
      kernel[index] = (kernel[index] ?? 0) ^ 1;
      return kernel;
    });
    const { summary } = await writeToMemory(kernelsToWrite(variants), { scheme: none });
    assert.equal(summary.kernels, 64);
  });
});

describe("what cannot be written", () => {
  it("a key and target twice, also by another spelling of the key or within one kernel", async () => {
    const entry = { binaryKey: "lib/a.so#0", target: "gfx942" };
    const inputs: readonly (readonly KernelToWrite[])[] = [
      [kernelToWrite(A, entry), kernelToWrite(B, entry)],
      [kernelToWrite(A, entry), kernelToWrite(A, entry)],
      [kernelToWrite(A, entry, entry)],
      [kernelToWrite(A, entry), kernelToWrite(B, { ...entry, binaryKey: "lib\\a.so#0" })],
    ];
    for (const kernels of inputs) {
      await kpackError(
        async () => await writeToMemory(kernels, { scheme: zstd }),
        "CONFLICTING_KERNELS",
        /^lib\/a\.so#0 gfx942$/,
      );
    }
  });

  it("kernels over the limit, before they are read", async () => {
    const kernel = { size: 1001, read: async (): Promise<Uint8Array> => assert.fail("was read") };
    const error = await kpackError(
      async () =>
        await writeToMemory([{ kernel, entries: [{ binaryKey: "a", target: "t" }] }], {
          scheme: none,
          limits: { kernelSize: 1000 },
        }),
      "LIMIT_EXCEEDED",
      /^a t$/,
    );
    assert.equal(error.found, 1001);
  });

  it("a kernel without entries, and text that UTF-8 does not know", async () => {
    await assert.rejects(writeToMemory([kernelToWrite(A)], { scheme: none }), TypeError);
    for (const binaryKey of ["half \ud800", "\udc00 half"]) {
      const kernels = [kernelToWrite(A, { binaryKey, target: "t" })];
      await assert.rejects(writeToMemory(kernels, { scheme: none }), TypeError);
    }
  });

  it("into a sink that holds something already, or with no jobs", async () => {
    const sink = memorySink();
    await sink.write(Uint8Array.of(1));
    const options = { groupName: "g", family: "f", scheme: none };
    await assert.rejects(writeArchive(sink, [], options), RangeError);
    for (const jobs of [0, 1.5, Number.NaN])
      await assert.rejects(writeArchive(memorySink(), [], { ...options, jobs }), RangeError);
  });
});
