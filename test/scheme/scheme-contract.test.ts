import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { builtInSchemes, nodeCodecs } from "../../src/node.ts";
import {
  type Archive,
  type CompressionScheme,
  memorySink,
  memorySource,
  none,
  openArchive,
  writeArchive,
  zstdPerKernel,
} from "../../src/index.ts";
import { deflateScheme } from "../support/deflate-scheme.ts";
import { kpackError } from "../support/expect-error.ts";
import { kernelsToWrite, kernelToWrite, sampleKernel } from "../support/kernels.ts";
import { slowSource } from "../support/sources.ts";

const SCHEMES: Readonly<Record<string, CompressionScheme>> = {
  none,
  "zstd-per-kernel, level 1": zstdPerKernel({ codecs: nodeCodecs, level: 1 }),
  "zstd-per-kernel, level 3": zstdPerKernel({ codecs: nodeCodecs }),
  "zstd-per-kernel, level 19": zstdPerKernel({ codecs: nodeCodecs, level: 19 }),
  "somebody else's scheme": deflateScheme,
};
const KERNELS = [5000, 0, 1, 300_000, 77, 4096, 300].map((size, index) => sampleKernel(index, size));

for (const [name, scheme] of Object.entries(SCHEMES)) {
  const schemes = [none, zstdPerKernel({ codecs: nodeCodecs }), deflateScheme];

  async function written(kernels: readonly Uint8Array[], extraFields = true): Promise<Archive> {
    const sink = memorySink();
    const options = { groupName: "g", family: "f", scheme, extraFields };
    await writeArchive(sink, kernelsToWrite(kernels), options);
    return await openArchive(slowSource(memorySource(sink.bytes(), "written")), { schemes });
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
      const sorted = extents.toSorted((a, b) => a.offset - b.offset || a.size - b.size);
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
      const sink = memorySink();
      await writeArchive(sink, kernelsToWrite(KERNELS), {
        groupName: "g",
        family: "f",
        scheme,
        extraFields: false,
      });
      const bytes = sink.bytes();
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
      const sink = memorySink();
      await writeArchive(sink, kernelsToWrite(KERNELS), { groupName: "g", family: "f", scheme });
      const limits = { kernelSize: 5000 };
      const archive = await openArchive(memorySource(sink.bytes()), { schemes, limits });
      const error = await kpackError(async () => await archive.readKernel("lib/k3.so#0", "gfx1100"));
      assert.match(error.code, scheme === deflateScheme ? /DECOMPRESSION_FAILED/ : /LIMIT_EXCEEDED/);
      assert.deepEqual(await archive.readKernel("lib/k0.so#0", "gfx942"), KERNELS[0]);
    });
  });
}

describe("a scheme that an archive is not told of", () => {
  it("is named in the error, with the known ones", async () => {
    const sink = memorySink();
    const scheme = deflateScheme;
    await writeArchive(sink, kernelsToWrite(KERNELS), { groupName: "g", family: "f", scheme });
    const error = await kpackError(
      async () => await openArchive(memorySource(sink.bytes()), { schemes: builtInSchemes }),
      "UNKNOWN_SCHEME",
      /^compression_scheme$/,
    );
    assert.equal(error.found, "example-deflate");
    assert.equal(error.expected, "none, zstd-per-kernel");
  });
});

describe("a scheme that breaks the rules", () => {
  const options = { groupName: "g", family: "f" };
  const misbehave = (changes: Partial<CompressionScheme<Uint8Array>>): CompressionScheme<Uint8Array> => ({
    ...deflateScheme,
    ...changes,
  });

  it("by leaving kernels unread is found out", async () => {
    const scheme = misbehave({
      createCompressor: () => ({
        prepareKernel: async ({ bytes }) => bytes.slice(),
        finalize: async (inputs) => {
          for await (const _ of inputs) break;
          return {};
        },
      }),
    });
    await assert.rejects(
      writeArchive(memorySink(), kernelsToWrite(KERNELS), { ...options, scheme }),
      /did not take all its inputs/,
    );
  });

  it("by going through the kernels twice is found out", async () => {
    const scheme = misbehave({
      createCompressor: () => ({
        prepareKernel: async ({ bytes }) => bytes.slice(),
        finalize: async (inputs) => {
          for await (const _ of inputs);
          for await (const _ of inputs);
          return {};
        },
      }),
    });
    await assert.rejects(
      writeArchive(memorySink(), kernelsToWrite(KERNELS), { ...options, scheme }),
      /only once/,
    );
  });

  it("by taking a TOC field that is the format's own, or the hashes', is found out", async () => {
    for (const name of ["toc", "compression_scheme", "kernel_hashes"]) {
      const scheme = misbehave({
        createCompressor: () => ({
          prepareKernel: async ({ bytes }) => bytes.slice(),
          finalize: async (inputs) => {
            for await (const _ of inputs);
            return { [name]: 1 };
          },
        }),
      });
      await assert.rejects(writeArchive(memorySink(), kernelsToWrite(KERNELS), { ...options, scheme }), {
        name: "TypeError",
        message: new RegExp(`may not write the TOC field ${name}`),
      });
    }
  });

  it("by writing into the header or past what it wrote is found out", async () => {
    for (const offset of [0, 63, 65]) {
      const scheme = misbehave({
        createCompressor: () => ({
          prepareKernel: async ({ bytes }) => bytes.slice(),
          finalize: async (inputs, area) => {
            for await (const _ of inputs);
            await area.write(Uint8Array.of(1));
            await area.patch(offset, Uint8Array.of(1));
            return {};
          },
        }),
      });
      await assert.rejects(
        writeArchive(memorySink(), kernelsToWrite(KERNELS), { ...options, scheme }),
        RangeError,
      );
    }
  });
});

describe("a scheme that needs more than one look", () => {
  it("may read kernels again while it finalizes, and is told what each is", async () => {
    const seen: string[] = [];
    const scheme: CompressionScheme<() => Promise<Uint8Array>> = {
      name: "twice",
      fieldNames: ["blobs"],
      openDecompressor: (fields, context) => none.openDecompressor(fields, context),
      createCompressor: () => ({
        async prepareKernel({ id, target, binaryKey, read }): Promise<() => Promise<Uint8Array>> {
          assert.equal(id, `${binaryKey} ${target}`);
          seen.push(id);
          return async () => await read();
        },
        async finalize(inputs, area) {
          const all: (() => Promise<Uint8Array>)[] = [];
          for await (const input of inputs) all.push(input);
          const blobs = [];
          for (const read of all) {
            const { offset, size } = await area.write(await read());
            blobs.push({ size, offset });
          }
          return { blobs };
        },
      }),
    };
    const sink = memorySink();
    const [a, b] = [sampleKernel(1, 900), sampleKernel(2, 800)];
    await writeArchive(
      sink,
      [
        kernelToWrite(a, { binaryKey: "x#0", target: "gfx906" }),
        kernelToWrite(b, { binaryKey: "y#0", target: "gfx942" }),
      ],
      { groupName: "g", family: "f", scheme },
    );
    const archive = await openArchive(memorySource(sink.bytes()), { schemes: [scheme] });
    assert.deepEqual(seen, ["x#0 gfx906", "y#0 gfx942"]);
    assert.deepEqual(await archive.readKernel("x#0", "gfx906", { checkHash: true }), a);
    assert.deepEqual(await archive.readKernel("y#0", "gfx942", { checkHash: true }), b);
  });
});
