import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { builtInSchemes, nodeCodecs } from "../../src/node.ts";
import {
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
import { CONTRACT_KERNELS, testSchemeContract } from "../support/scheme-contract.ts";

const SCHEMES: Readonly<Record<string, CompressionScheme>> = {
  none,
  "zstd-per-kernel, level 1": zstdPerKernel({ codecs: nodeCodecs, level: 1 }),
  "zstd-per-kernel, level 3": zstdPerKernel({ codecs: nodeCodecs }),
  "zstd-per-kernel, level 19": zstdPerKernel({ codecs: nodeCodecs, level: 19 }),
  "somebody else's scheme": deflateScheme,
};
const KERNELS = CONTRACT_KERNELS;

for (const [name, scheme] of Object.entries(SCHEMES))
  testSchemeContract(name, scheme, scheme === deflateScheme ? /^DECOMPRESSION_FAILED$/ : undefined);

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
    assert.equal(error.expected, "none, zstd-per-kernel, zstd-cross-kernel");
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
