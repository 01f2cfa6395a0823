import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode } from "@msgpack/msgpack";
import * as fc from "fast-check";
import {
  builtInSchemes,
  type CompressionScheme,
  type KernelToWrite,
  type MessagePackValue,
  nodeCodecs,
  none,
  normalizeBinaryKey,
  zstdPerKernel,
} from "../../src/node.ts";
import { encodeValue } from "../../src/msgpack/message-pack-writer.ts";
import { deflateScheme } from "../support/deflate-scheme.ts";
import { openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";
import { canonical, messagePackValue } from "../support/message-pack-values.ts";
import { rewrite } from "../support/rewrite.ts";

const schemes = [...builtInSchemes, deflateScheme];
const scheme: fc.Arbitrary<CompressionScheme> = fc.constantFrom(
  none,
  zstdPerKernel({ codecs: nodeCodecs, level: 1 }),
  zstdPerKernel({ codecs: nodeCodecs, level: 5 }),
  deflateScheme,
);
const key = fc.oneof(
  fc.constantFrom("lib/a.so#0", "lib\\a.so#1", "a", "", "lib/\u00e9", "lib/e\u0301", "__proto__", "toc"),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const target = fc.oneof(
  fc.constantFrom("gfx942", "gfx90a:xnack-", "gfx942:sramecc+:xnack-", "gfx9-4-generic", "ordinal"),
  fc.string({ unit: "binary", maxLength: 8 }),
);

interface Entry {
  readonly key: string;
  readonly target: string;
  /** Few different ones, so that some kernels are identical. */
  readonly kernel: number;
  readonly size: number;
  readonly metadata: MessagePackValue | undefined;
}

const entry: fc.Arbitrary<Entry> = fc.record({
  key,
  target,
  kernel: fc.nat(3),
  size: fc.oneof(fc.nat(40), fc.nat(6000), fc.constant(0)),
  metadata: fc.option(messagePackValue, { nil: undefined }),
});

const options = fc.record({
  scheme,
  jobs: fc.integer({ min: 1, max: 5 }),
  shareIdentical: fc.boolean(),
  extraFields: fc.boolean(),
});

function bytesOf({ kernel, size }: Entry): Uint8Array {
  return sampleKernel(kernel, size);
}

function toWrite(entries: readonly Entry[]): readonly KernelToWrite[] {
  return entries.map((one) => {
    const bytes = bytesOf(one);
    const fields = one.metadata === undefined ? [] : [{ name: "metadata", value: encodeValue(one.metadata) }];
    return {
      kernel: { size: bytes.length, read: async () => bytes },
      entries: [{ binaryKey: one.key, target: one.target, fields }],
    };
  });
}

/** The right outcome, found the simple way. Entries of one binary stand together, in the order in which they come. */
function expected(entries: readonly Entry[]): unknown {
  const groups = Map.groupBy(entries, (one) => normalizeBinaryKey(one.key));
  return [...groups].flatMap(([binary, ones]) =>
    ones.map((one) => [
      binary,
      one.target,
      one.size,
      Buffer.from(bytesOf(one)).toString("hex"),
      canonical(one.metadata ?? null),
    ]),
  );
}

async function contentOf(bytes: Uint8Array): Promise<unknown> {
  await using archive = await openBytes(bytes, { schemes });
  assert.deepEqual(archive.findings, []);
  const content: unknown[] = [];
  for await (const { entry: one, bytes: kernel } of archive.readKernels({ checkHash: true, jobs: 3 })) {
    content.push([
      one.binaryKey,
      one.target,
      one.originalSize,
      Buffer.from(kernel).toString("hex"),
      canonical(one.fields().get("metadata") ?? null),
    ]);
    assert.equal(archive.find(one.binaryKey, one.target)?.index, one.index);
  }
  return content;
}

describe("any archive", () => {
  const entries = fc.uniqueArray(entry, {
    maxLength: 25,
    selector: (one) => JSON.stringify([normalizeBinaryKey(one.key), one.target]),
  });

  it("that is written is read back: keys, targets, sizes, metadata, kernels", async () => {
    await fc.assert(
      fc.asyncProperty(entries, options, async (list, how) => {
        const { bytes, summary } = await writeToMemory(toWrite(list), how);
        assert.deepEqual(await contentOf(bytes), expected(list));
        const kernels = new Set(list.map((one) => Buffer.from(bytesOf(one)).toString("hex")));
        assert.equal(summary.kernels, how.shareIdentical ? kernels.size : list.length);
        assert.equal(summary.archiveSize, bytes.length);
        assert.equal(
          summary.originalSize,
          list.reduce((sum, one) => sum + one.size, 0),
        );
      }),
      { numRuns: 150 },
    );
  });

  it("says the same after it was rewritten in another scheme and with other options", async () => {
    await fc.assert(
      fc.asyncProperty(entries, options, options, async (list, first, second) => {
        const { bytes } = await writeToMemory(toWrite(list), first);
        const again = await rewrite(await openBytes(bytes, { schemes }), second.scheme, second);
        assert.deepEqual(await contentOf(again), expected(list));
      }),
      { numRuns: 100 },
    );
  });

  it("is the same file whatever the number of jobs", async () => {
    await fc.assert(
      fc.asyncProperty(entries, options, async (list, how) => {
        const [one, many] = [
          await writeToMemory(toWrite(list), { ...how, jobs: 1 }),
          await writeToMemory(toWrite(list), { ...how, jobs: 8 }),
        ];
        assert.ok(Buffer.from(one.bytes).equals(many.bytes));
        assert.deepEqual(one.summary, many.summary);
      }),
      { numRuns: 60 },
    );
  });

  it("has a TOC that another MessagePack library reads to its last byte", async () => {
    await fc.assert(
      fc.asyncProperty(entries, options, async (list, how) => {
        const { bytes } = await writeToMemory(
          toWrite(
            list
              .filter(({ key: name }) => name !== "__proto__")
              .map((one) => ({ ...one, metadata: undefined })),
          ),
          how,
        );
        const view = new DataView(bytes.buffer);
        const toc = decode(bytes.subarray(Number(view.getBigUint64(8, true)))) as Record<string, unknown>;
        assert.equal(toc["compression_scheme"], how.scheme.name);
        for (const name of Object.keys(toc["toc"] as object))
          assert.ok(list.some((one) => normalizeBinaryKey(one.key) === name));
      }),
      { numRuns: 60 },
    );
  });
});
