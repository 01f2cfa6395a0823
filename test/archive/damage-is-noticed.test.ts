import assert from "node:assert/strict";
import { describe, it } from "node:test";
import xxhash from "xxhash-wasm";
import { loadXxh64 } from "../../src/hash/xxh64.ts";
import { builtInSchemes, nodeCodecs, none, zstdPerKernel } from "../../src/node.ts";
import { noneArchive } from "../support/archive-builder.ts";
import { deflateScheme } from "../support/deflate-scheme.ts";
import { kpackError } from "../support/expect-error.ts";
import { kernelsToWrite, openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";

const KERNELS = [100, 0, 333, 200].map((size, index) => sampleKernel(index, size));
const zstd = zstdPerKernel({ codecs: nodeCodecs });

describe("bit rot", () => {
  it("in scheme none is noticed by the kernels' hashes, whatever bit it is", async () => {
    const { bytes } = await writeToMemory(kernelsToWrite(KERNELS), { scheme: none });
    const clean = await openBytes(bytes);
    const [extent] = await clean.decompressor.storedExtents(2);
    assert.ok(extent);
    for (let at = extent.offset; at < extent.offset + extent.size; at++) {
      const rotten = bytes.slice();
      rotten[at] = (rotten[at] ?? 0) ^ (1 << (at % 8));
      const archive = await openBytes(rotten);
      const error = await kpackError(
        async () => await archive.readKernel("lib/k2.so#0", "gfx942", { checkHash: true }),
        "CHECKSUM_MISMATCH",
        /^lib\/k2\.so#0 gfx942$/,
      );
      assert.equal(error.expected, `XXH64 ${clean.kernelHash(2)}`);
      assert.equal((await archive.readKernel("lib/k2.so#0", "gfx942")).length, 333);
      assert.deepEqual(
        await archive.readKernel("lib/k3.so#0", "gfx1100", { checkHash: true }),
        KERNELS[3],
        "others",
      );
    }
  });

  it("in scheme zstd-per-kernel is noticed without asking, whatever bit of a frame it is", async () => {
    const { bytes } = await writeToMemory(kernelsToWrite(KERNELS), { scheme: zstd, extraFields: false });
    const [extent] = await (await openBytes(bytes)).decompressor.storedExtents(2);
    assert.ok(extent);
    let same = 0;
    for (let bit = extent.offset * 8; bit < (extent.offset + extent.size) * 8; bit++) {
      const rotten = bytes.slice();
      rotten[bit >> 3] = (rotten[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const archive = await openBytes(rotten);
      try {
        // Some bits do not matter: the content's checksum says that the bytes are right all the same.
        assert.deepEqual(await archive.readKernel("lib/k2.so#0", "gfx942"), KERNELS[2]);
        same += 1;
      } catch (error) {
        assert.ok(error instanceof Error && "isKpackError" in error, String(error));
      }
    }
    assert.ok(same < extent.size / 4, `${same} flips of ${extent.size * 8} were harmless`);
  });

  it("in a scheme of somebody else is noticed by the archive's own hashes", async () => {
    const { bytes } = await writeToMemory(kernelsToWrite(KERNELS), { scheme: deflateScheme });
    const schemes = [...builtInSchemes, deflateScheme];
    const [extent] = await (await openBytes(bytes, { schemes })).decompressor.storedExtents(0);
    assert.ok(extent);
    for (let at = extent.offset; at < extent.offset + extent.size; at++) {
      const rotten = bytes.slice();
      rotten[at] = (rotten[at] ?? 0) ^ 0x40;
      const archive = await openBytes(rotten, { schemes });
      const read = async (): Promise<Uint8Array> =>
        await archive.readKernel("lib/k0.so#0", "gfx942", { checkHash: true });
      const error: unknown = await read().then(
        (kernel) => assert.deepEqual(kernel, KERNELS[0]),
        (reason: unknown) => reason,
      );
      if (error !== undefined)
        assert.match(String((error as { code?: unknown }).code), /CHECKSUM_MISMATCH|DECOMPRESSION_FAILED/);
    }
  });
});

describe("the kernels' hashes", () => {
  it("are XXH64 of each kernel, by ordinal", async () => {
    const { bytes } = await writeToMemory(
      kernelsToWrite([new Uint8Array(0), new TextEncoder().encode("a")]),
      {
        scheme: none,
      },
    );
    const archive = await openBytes(bytes);
    // The reference values of the xxHash project.
    assert.equal(archive.kernelHash(0), "ef46db3751d8e999");
    assert.equal(archive.kernelHash(1), "d24ec4f1a98c6e5b");
    assert.equal(archive.kernelHash(2), undefined);
    assert.equal(archive.field("kernel_hash_algorithm"), "xxh64");
  });

  it("of a long kernel do not depend on how it is cut into parts", async () => {
    const hash = await loadXxh64();
    const { h64Raw } = await xxhash();
    for (const size of [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_001]) {
      const bytes = sampleKernel(size, size);
      assert.equal(hash(bytes), h64Raw(bytes));
    }
  });

  it("are left out on request, and not asked for where there are none", async () => {
    const { bytes } = await writeToMemory(kernelsToWrite(KERNELS), { scheme: none, extraFields: false });
    const archive = await openBytes(bytes);
    assert.equal(archive.kernelHash(0), undefined);
    assert.deepEqual([...archive.toc.presentKeys].slice(-2), ["compression_scheme", "blobs"]);
    assert.deepEqual(await archive.readKernel("lib/k0.so#0", "gfx942", { checkHash: true }), KERNELS[0]);
  });

  it("in a form that is not known are a warning and are not checked", async () => {
    const kernel = KERNELS[0] as Uint8Array;
    for (const toc of [
      [
        ["kernel_hash_algorithm", "sha1"],
        ["kernel_hashes", new Uint8Array(8)],
      ],
      [["kernel_hashes", new Uint8Array(8)]],
      [
        ["kernel_hash_algorithm", "xxh64"],
        ["kernel_hashes", new Uint8Array(7)],
      ],
      [
        ["kernel_hash_algorithm", "xxh64"],
        ["kernel_hashes", "text"],
      ],
    ] as const) {
      const archive = await openBytes(noneArchive([kernel], { toc }));
      assert.deepEqual(
        archive.findings.map(({ code, field }) => [code, field]),
        [["WRONG_HASH_FIELD", "kernel_hashes"]],
      );
      assert.deepEqual(await archive.readKernel("a.so#0", "gfx942", { checkHash: true }), kernel);
    }
  });
});
