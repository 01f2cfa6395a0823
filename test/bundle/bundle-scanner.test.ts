import assert from "node:assert/strict";
import { test } from "node:test";
import { scanBundles } from "../../src/bundle/bundle-scanner.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { isKpackError, type KpackErrorCode } from "../../src/errors/errors.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import type { Source } from "../../src/source/source.ts";
import { buildBundle, compressBundle, concat, contentsOf, padded, scanAll } from "./bundle-builder.ts";

const HOST = "host-x86_64-unknown-linux--";
const GFX942 = "hipv4-amdgcn-amd-amdhsa--gfx942";
const GFX1100 = "hipv4-amdgcn-amd-amdhsa--gfx1100";

function refusedAs(code: KpackErrorCode, field?: string): (error: unknown) => true {
  return (error) => {
    assert.ok(isKpackError(error), String(error));
    assert.equal(error.code, code);
    if (field !== undefined) assert.equal(error.field, field);
    return true;
  };
}

function small(text: string, alignment = 1): Uint8Array {
  return buildBundle([{ id: HOST }, { id: GFX942, content: text }], { alignment });
}

test("bundles of every kind follow each other, padded to pages or not at all", async () => {
  const kinds = [
    small("plain"),
    compressBundle(small("one", 4096), { version: 1, method: "zlib" }),
    compressBundle(small("two"), { version: 1, method: "zstd" }),
    compressBundle(small("three"), { version: 2, method: "zlib" }),
    compressBundle(small("four"), { version: 2, method: "zstd" }),
    compressBundle(small("five"), { version: 3, method: "zlib" }),
    compressBundle(small("six"), { version: 3, method: "zstd" }),
    small("aligned", 4096),
  ];
  const expected = ["plain", "one", "two", "three", "four", "five", "six", "aligned"].flatMap(
    (text, index) => [`${index} ${HOST} `, `${index} ${GFX942} ${text}`],
  );
  for (const alignment of [1, 16, 4096]) {
    const { bundles, findings } = await scanAll(concat(...kinds.map((kind) => padded(kind, alignment))));
    assert.deepEqual(await contentsOf(bundles), expected);
    assert.deepEqual(findings, []);
  }
});

test("entries can be read again, in any order, also when their bundle was decompressed long ago", async () => {
  const texts = Array.from({ length: 20 }, (_, index) => `kernel ${index}`);
  const { bundles } = await scanAll(
    concat(...texts.map((text) => compressBundle(small(text), { version: 3 }))),
  );
  const expected = texts.flatMap((text, index) => [`${index} ${HOST} `, `${index} ${GFX942} ${text}`]);
  assert.deepEqual(await contentsOf(bundles), expected);
  assert.deepEqual(await contentsOf(bundles), expected);
  const first = bundles[0]?.entries[1];
  const all = await Promise.all([1, 2, 3].map(async () => first && bundles[0]?.readEntry(first)));
  for (const bytes of all) assert.equal(new TextDecoder().decode(bytes), "kernel 0");
});

test("a given buffer is filled, when it is large enough", async () => {
  const { bundles } = await scanAll(concat(compressBundle(small("compressed"), { version: 3 })));
  const [bundle] = bundles;
  const entry = bundle?.entries[1];
  assert.ok(bundle && entry);
  const buffer = new Uint8Array(100);
  const bytes = await bundle.readEntry(entry, { buffer });
  assert.equal(bytes.buffer, buffer.buffer);
  assert.equal(bytes.length, "compressed".length);
  assert.notEqual((await bundle.readEntry(entry, { buffer: new Uint8Array(2) })).length, 2);
});

test("a magic inside an entry is data", async () => {
  const content = concat(small("not this"), compressBundle(small("nor this"), { version: 3 }));
  const inner = buildBundle(
    [
      { id: GFX942, content },
      { id: GFX1100, content: "CCOB" },
    ],
    { alignment: 4096 },
  );
  for (const bytes of [inner, compressBundle(inner, { version: 2 })]) {
    const { bundles } = await scanAll(bytes);
    assert.equal(bundles.length, 1);
    const [bundle] = bundles;
    const [first] = bundle?.entries ?? [];
    assert.deepEqual(first && (await bundle?.readEntry(first)), content);
  }
});

test("decompressed content may hold several bundles", async () => {
  const content = concat(padded(small("a")), small("b"), small("c"));
  const { bundles } = await scanAll(concat(compressBundle(content, { version: 3 }), small("d")));
  assert.deepEqual(
    await contentsOf(bundles),
    ["a", "b", "c", "d"].flatMap((text, index) => [`${index} ${HOST} `, `${index} ${GFX942} ${text}`]),
  );
  assert.deepEqual(
    bundles.map(({ contentOffset }) => contentOffset),
    [0, 4096, 4096 + small("b").length, 0],
  );
});

test("megabytes of padding are passed in few reads", async () => {
  const bytes = concat(small("a"), new Uint8Array(20_000_003), small("b"));
  let reads = 0;
  const memory = memorySource(bytes);
  const counting: Source = {
    ...memory,
    read: (offset, length, options) => {
      reads += 1;
      return memory.read(offset, length, options);
    },
  };
  const found = [];
  for await (const bundle of scanBundles(
    counting,
    { offset: 0, size: bytes.length },
    { codecs: nodeCodecs },
  )) {
    found.push(bundle);
  }
  assert.equal((await contentsOf(found)).length, 4);
  assert.ok(reads < 40, `${reads} reads`);
});

test("a table larger than the first block is read", async () => {
  const entries = Array.from({ length: 3000 }, (_, index) => ({
    id: `${GFX942}:f${index}+`,
    content: `${index}`,
  }));
  const { bundles } = await scanAll(buildBundle(entries));
  assert.equal((await contentsOf(bundles)).at(-1), `0 ${GFX942}:f2999+ 2999`);
});

test("counts and sizes that cannot be are refused before anything is allocated", async () => {
  const claimed = (count: bigint): Uint8Array => buildBundle([], { count });
  await assert.rejects(scanAll(claimed(2n ** 32n)), refusedAs("COUNT_TOO_LARGE", "bundle[0].entry count"));
  await assert.rejects(scanAll(claimed(2n ** 64n - 1n)), refusedAs("COUNT_TOO_LARGE"));
  await assert.rejects(scanAll(claimed(1n)), refusedAs("TRUNCATED", "bundle[0].entry count"));
  const entry = (offset: bigint, size: bigint): Uint8Array =>
    buildBundle([{ id: "hip-x", content: "12345678", offset, size }]);
  await assert.rejects(scanAll(entry(61n, 9n)), refusedAs("TRUNCATED", "bundle[0].entries[0] (hip-x).size"));
  await assert.rejects(scanAll(entry(2n ** 64n - 1n, 2n)), refusedAs("OUT_OF_BOUNDS"));
  await assert.rejects(scanAll(entry(0n, 8n)), refusedAs("OVERLAP"));
  const huge = 2n ** 40n;
  await assert.rejects(
    scanAll(compressBundle(small("x"), { version: 3, uncompressedSize: huge })),
    refusedAs("LIMIT_EXCEEDED", "bundle[0].uncompressedSize"),
  );
  for (const method of ["zlib", "zstd"] as const) {
    for (const version of [1, 2, 3] as const) {
      await assert.rejects(
        scanAll(compressBundle(small("x"), { version, method, uncompressedSize: 4_000_000_000 })),
        refusedAs("SIZE_MISMATCH", "bundle[0].uncompressedSize"),
      );
    }
  }
});

test("a frame that does not state its size is decoded up to the declared size", async () => {
  const content = small("no content size");
  const options = { version: 2, withoutContentSize: true } as const;
  assert.equal((await scanAll(compressBundle(content, options))).bundles.length, 1);
  for (const uncompressedSize of [content.length - 1, content.length + 1]) {
    await assert.rejects(scanAll(compressBundle(content, { ...options, uncompressedSize })), (error) =>
      isKpackError(error, "SIZE_MISMATCH", "DECOMPRESSION_FAILED"),
    );
  }
});

test("a limit of the caller's holds", async () => {
  const bytes = compressBundle(small("x".repeat(1000)), { version: 3 });
  await assert.rejects(scanAll(bytes, { limits: { bundleSize: 1000 } }), refusedAs("LIMIT_EXCEEDED"));
});

test("total sizes of 0, below the header's and past the end are refused", async () => {
  const of = (totalSize: number | bigint, version: 2 | 3): Uint8Array =>
    compressBundle(small("x"), { version, totalSize });
  for (const version of [2, 3] as const) {
    await assert.rejects(scanAll(of(0, version)), refusedAs("SIZE_MISMATCH", "bundle[0].totalSize"));
    await assert.rejects(scanAll(of(23, version)), refusedAs("SIZE_MISMATCH", "bundle[0].totalSize"));
    await assert.rejects(scanAll(of(100_000, version)), refusedAs("TRUNCATED", "bundle[0].totalSize"));
  }
});

test("an id that stands twice and a device entry without bytes are found", async () => {
  const bytes = buildBundle([
    { id: HOST },
    { id: GFX942, content: "1" },
    { id: GFX942, content: "2" },
    { id: GFX1100 },
  ]);
  const { bundles, findings } = await scanAll(bytes);
  assert.deepEqual(
    findings.map(({ code, field }) => [code, field]),
    [
      ["DUPLICATE_ENTRY_ID", "bundle[0].entries[2]"],
      ["EMPTY_ENTRY", "bundle[0].entries[3]"],
    ],
  );
  assert.equal(bundles[0]?.entries.length, 4);
  assert.equal(bundles[0]?.entries.filter(({ id, size }) => !id.isHost && size > 0).length, 2);
});

test("an entry without bytes may point anywhere", async () => {
  const { bundles } = await scanAll(
    buildBundle([
      { id: HOST, offset: 2n ** 50n },
      { id: GFX942, content: "x" },
    ]),
  );
  assert.deepEqual(await contentsOf(bundles), [`0 ${HOST} `, `0 ${GFX942} x`]);
});

test("what follows the last bundle is a finding, a bundle that is cut off an error", async () => {
  const after = async (tail: Uint8Array): Promise<readonly string[]> =>
    (await scanAll(concat(padded(small("x")), tail))).findings.map(({ code }) => code);
  assert.deepEqual(await after(new Uint8Array(100)), []);
  assert.deepEqual(await after(new Uint8Array(100).fill(7)), ["TRAILING_BYTES"]);
  assert.deepEqual(await after(Uint8Array.of(0x10, 0xff, 0x10, 0xad, 1, 0, 0, 0)), ["UNKNOWN_CONTAINER"]);
  await assert.rejects(after(small("cut").subarray(0, 9)), refusedAs("TRUNCATED", "bundle[1].magic"));
  await assert.rejects(after(small("cut").subarray(0, -1)), refusedAs("TRUNCATED"));
});

test("bytes that are no bundle are passed over when it is known where the next begins", async () => {
  const first = padded(small("a"));
  const bytes = concat(new Uint8Array(64).fill(1), first, new Uint8Array(64).fill(2), small("b"));
  const knownStarts = [64, 64 + first.length + 64];
  const { bundles, findings } = await scanAll(bytes, { knownStarts });
  assert.deepEqual(
    bundles.map(({ offset }) => offset),
    knownStarts,
  );
  assert.deepEqual(
    findings.map(({ code }) => code),
    ["UNKNOWN_BYTES", "UNKNOWN_BYTES"],
  );
});

test("an aborted scan rejects with the signal's reason, and one caller's signal ends no other's work", async () => {
  const reason = new Error("enough");
  await assert.rejects(scanAll(small("x"), { signal: AbortSignal.abort(reason) }), reason);
  const { bundles } = await scanAll(
    concat(...Array.from({ length: 6 }, (_, n) => compressBundle(small(`${n}`), { version: 3 }))),
  );
  const [bundle] = bundles;
  const entry = bundle?.entries[1];
  assert.ok(bundle && entry);
  const controller = new AbortController();
  const aborted = bundle.readEntry(entry, { signal: controller.signal });
  const other = bundle.readEntry(entry);
  controller.abort(reason);
  await assert.rejects(aborted, reason);
  assert.equal(new TextDecoder().decode(await other), "0");
});

test("without a codec, compressed bundles say what is missing", async () => {
  const bytes = compressBundle(small("x"), { version: 3 });
  await assert.rejects(scanAll(bytes, { codecs: {} }), refusedAs("MISSING_CODEC"));
  assert.equal((await scanAll(small("x"), { codecs: {} })).bundles.length, 1);
});
