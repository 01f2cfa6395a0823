import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Archive,
  type CompressionScheme,
  memorySink,
  memorySource,
  openArchive,
  writeArchive,
} from "../../src/index.ts";
import { kpackError } from "./expect-error.ts";
import { kernelsToWrite, sampleKernel } from "./kernels.ts";
import { slowSource } from "./sources.ts";

export const CONTRACT_KERNELS: readonly Uint8Array[] = [5000, 0, 1, 300_000, 77, 4096, 300].map(
  (size, index) => sampleKernel(index, size),
);
const KERNELS = CONTRACT_KERNELS;

/** What every scheme promises, whatever it stores. */
export function testSchemeContract(
  name: string,
  scheme: CompressionScheme,
  /** What it says of a kernel that is over the limit. */
  overLimit: RegExp = /^LIMIT_EXCEEDED$/,
): void {
  const schemes = [scheme];

  /** Archives of the kernels above, made once. */
  const made = new Map<boolean, Promise<Uint8Array>>();

  async function write(kernels: readonly Uint8Array[], extraFields: boolean): Promise<Uint8Array> {
    const sink = memorySink();
    await writeArchive(sink, kernelsToWrite(kernels), { groupName: "g", family: "f", scheme, extraFields });
    return sink.bytes();
  }

  async function bytesOf(kernels: readonly Uint8Array[], extraFields = true): Promise<Uint8Array> {
    if (kernels !== KERNELS) return await write(kernels, extraFields);
    const bytes = made.get(extraFields) ?? write(kernels, extraFields);
    made.set(extraFields, bytes);
    return (await bytes).slice();
  }

  async function written(kernels: readonly Uint8Array[], extraFields = true): Promise<Archive> {
    const bytes = await bytesOf(kernels, extraFields);
    return await openArchive(slowSource(memorySource(bytes, "written")), { schemes });
  }

  describe(`the scheme ${name}`, () => {
    for (const extraFields of [true, false]) {
      it(`gives every kernel back, in any order (extra fields: ${extraFields})`, async () => {
        const archive = await written(KERNELS, extraFields);
        assert.equal(archive.schemeName, scheme.name);
        assert.equal(await archive.decompressor.kernelCount(), KERNELS.length);
        for (const ordinal of [6, 0, 3, 1, 5, 2, 4, 4, 6])
          assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), KERNELS[ordinal]);
      });
    }

    it("gives every kernel back through memory that is used again", async () => {
      for (const jobs of [1, 2, 5]) {
        const archive = await written(KERNELS);
        const entries = [...archive.entries];
        const wanted = [...entries, ...entries.toReversed(), ...entries];
        const ordinals: number[] = [];
        for await (const { entry, bytes } of archive.readKernels({
          entries: wanted,
          jobs,
          reuseMemory: true,
        })) {
          ordinals.push(entry.ordinal);
          assert.deepEqual(bytes, KERNELS[entry.ordinal]);
          await new Promise(setImmediate); // others are decoded meanwhile
          assert.deepEqual(bytes, KERNELS[entry.ordinal]);
        }
        assert.deepEqual(
          ordinals,
          wanted.map(({ ordinal }) => ordinal),
        );
      }
    });

    it("serves many readers at once", async () => {
      const archive = await written(KERNELS, false);
      const reads = Array.from({ length: 40 }, async (_, index) => {
        const ordinal = (index * 5) % KERNELS.length;
        assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), KERNELS[ordinal]);
      });
      assert.equal((await Promise.all(reads)).length, 40);
    });

    it("knows where each kernel lies: inside the area, apart from the others", async () => {
      const archive = await written(KERNELS);
      const extents = [];
      for (const ordinal of KERNELS.keys())
        extents.push(...(await archive.decompressor.storedExtents(ordinal)));
      // Kernels that are stored together have one extent.
      const distinct = new Map(extents.map((extent) => [`${extent.offset} ${extent.size}`, extent]));
      const sorted = [...distinct.values()].toSorted((a, b) => a.offset - b.offset || a.size - b.size);
      let end = 64;
      for (const { offset, size } of sorted) {
        assert.ok(offset >= end);
        end = offset + size;
      }
      assert.ok(end <= archive.tocOffset);
      const findings: string[] = [];
      await archive.decompressor.verifyArea?.(({ code }) => findings.push(code));
      assert.deepEqual(findings, []);
    });

    it("refuses ordinals out of range, and says what the range is", async () => {
      const archive = await written(KERNELS);
      for (const ordinal of [7, -1, 1.5, 2 ** 32, Number.NaN]) {
        const error = await kpackError(
          async () => await archive.decompressor.decompressKernel(ordinal),
          "ORDINAL_OUT_OF_RANGE",
        );
        assert.equal(error.expected, "0 to 6");
      }
    });

    it("holds no kernels when there are none", async () => {
      const archive = await written([]);
      assert.equal(await archive.decompressor.kernelCount(), 0);
      await kpackError(async () => await archive.decompressor.decompressKernel(0), "ORDINAL_OUT_OF_RANGE");
    });

    it("writes the same bytes whatever the number of jobs", async () => {
      const results: Buffer[] = [];
      for (const jobs of [1, 2, 3, 8]) {
        const sink = memorySink();
        await writeArchive(sink, kernelsToWrite(KERNELS), {
          groupName: "g",
          family: "f",
          scheme,
          jobs,
        });
        results.push(Buffer.from(sink.bytes()));
      }
      for (const result of results) assert.ok(result.equals(results[0] as Buffer));
    });

    it("says which of its fields is missing", async () => {
      const bytes = await bytesOf(KERNELS, false);
      const field = scheme.fieldNames[0] as string;
      const at = Buffer.from(bytes).lastIndexOf(field);
      bytes[at] = (bytes[at] ?? 0) ^ 0x20; // another name of the same size
      await kpackError(
        async () => await openArchive(memorySource(bytes), { schemes }),
        "MISSING_KEY",
        new RegExp(`^${field}$`),
      );
    });

    it("stops with the signal's reason, before and while it works", async () => {
      const archive = await written(KERNELS);
      const reason = new Error("enough");
      const signal = AbortSignal.abort(reason);
      await assert.rejects(archive.decompressor.decompressKernel(0, { signal }), (error) => error === reason);
      assert.deepEqual(await archive.decompressor.decompressKernel(0), KERNELS[0]);
    });

    it("refuses a kernel over the limit before it makes room for it", async () => {
      const limits = { kernelSize: 50_000 };
      const archive = await openArchive(memorySource(await bytesOf(KERNELS)), { schemes, limits });
      const error = await kpackError(async () => await archive.readKernel("lib/k3.so#0", "gfx1100"));
      assert.match(error.code, overLimit);
      assert.deepEqual(await archive.readKernel("lib/k0.so#0", "gfx942"), KERNELS[0]);
    });
  });
}
