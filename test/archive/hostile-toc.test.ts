import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hashBytes } from "../../src/archive/toc.ts";
import { encodeUtf8 } from "../../src/bytes/text.ts";
import { buildArchive, entryOf, noneArchive, type TocPairs } from "../support/archive-builder.ts";
import { kpackError } from "../support/expect-error.ts";
import { openBytes, sampleKernel } from "../support/kernels.ts";
import { concat, map, pack, RawBytes } from "../support/raw-msgpack.ts";

/** Tables of contents made to take long: what would take minutes, or all memory, must take no time. */
const A = sampleKernel(1, 100);
/** Generous for a slow machine; without the guards each of these took from ten seconds up. */
const BOUND = { timeout: 8000 };

function withEntry(more: TocPairs): Uint8Array {
  return noneArchive([A], { entries: map(["a.so#0", map(["gfx942", entryOf(0, A.length, more)])]) });
}

function unknownKeys(count: number): TocPairs {
  return Array.from({ length: count }, (_, index) => [`key ${index}`, index]);
}

/** A map with more pairs than fit the arguments of one call. */
function rawMap(pairs: readonly (readonly [unknown, unknown])[]): RawBytes {
  const parts = pairs.flatMap(([key, value]) => [pack(key), pack(value)]);
  return new RawBytes(new Uint8Array(Buffer.concat([header(0xdf, pairs.length), ...parts])));
}

/** An array or map header for a 32-bit count. */
function header(tag: number, count: number): Uint8Array {
  const bytes = Uint8Array.of(tag, 0, 0, 0, 0);
  new DataView(bytes.buffer).setUint32(1, count);
  return bytes;
}

/** As many targets for one binary, all different. */
function manyTargets(count: number): RawBytes {
  const entry = pack(map(["ordinal", 0]));
  const step = 9 + entry.length;
  const bytes = new Uint8Array(count * step);
  for (let index = 0; index < count; index++) {
    bytes[index * step] = 0xa8;
    encodeUtf8Into(bytes, index * step + 1, index);
    bytes.set(entry, index * step + 9);
  }
  return new RawBytes(concat(pack(map(["a", 0])).subarray(0, 3), header(0xdf, count), bytes));
}

function encodeUtf8Into(bytes: Uint8Array, at: number, index: number): void {
  for (let digit = 0; digit < 8; digit++) bytes[at + digit] = 0x30 + ((index >> (4 * digit)) & 15);
}

/** Found by trying: behind the pairs before it, both of a pair lead to one state of FNV-1a from its usual basis. */
const COLLISIONS: readonly string[] = [
  "0ldwai5 1c1xvqn",
  "1y27y7q 12y1ilp",
  "0r744sv 0qyd8c9",
  "1d3r2aq 0uyu48a",
  "1jfxdmq 0hctkxw",
  "1sbzrhh 0678r9j",
  "0emvp13 0ktrzt9",
  "0fre8tz 1h4nyz5",
  "0ty0xvd 166hh2x",
  "0emvp13 0ktrzt9",
  "0fre8tz 1h4nyz5",
  "0ty0xvd 166hh2x",
  "0emvp13 0ktrzt9",
];

/** 8192 keys that all have one FNV-1a hash, as long as its basis is the usual one. */
function collidingKeys(): readonly string[] {
  return COLLISIONS.reduce<readonly string[]>(
    (keys, pair) => keys.flatMap((key) => pair.split(" ").map((block) => key + block)),
    [""],
  );
}

function usualHash(key: string): number {
  return encodeUtf8(key).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5);
}

describe("time", () => {
  it("80,000 unknown keys in one entry", BOUND, async () => {
    const start = performance.now();
    const entry = rawMap([...entryOf(0, A.length).pairs, ...unknownKeys(80_000)]);
    await using archive = await openBytes(
      noneArchive([A], { entries: map(["a.so#0", map(["gfx942", entry])]) }),
    );
    assert.equal(archive.find("a.so#0", "gfx942")?.fields().size, 80_001);
    assert.ok(performance.now() - start < BOUND.timeout); // the runner's own limit stops nothing synchronous
  });

  it("a key that stands twice is found among few and among many", async () => {
    for (const count of [1, 15, 16, 17, 100]) {
      for (const twice of [0, count - 1]) {
        const bytes = withEntry([...unknownKeys(count), [`key ${twice}`, 0]]);
        await kpackError(async () => await openBytes(bytes), "DUPLICATE_KEY", /key \d+$/);
      }
      await openBytes(withEntry(unknownKeys(count)));
    }
  });

  it("80,000 unknown keys of the TOC", BOUND, async () => {
    const toc = rawMap([["toc", map()], ["blobs", []], ...unknownKeys(80_000)]);
    await using archive = await openBytes(buildArchive({ toc }));
    assert.equal(archive.field("key 79999"), 79_999);
  });

  it("binary keys that are chosen to have one hash", BOUND, async () => {
    const keys = collidingKeys();
    assert.equal(new Set(keys.map(usualHash)).size, 1);
    const hashes = new Set(keys.map((key) => hashBytes(encodeUtf8(key), 0, key.length)));
    assert.ok(hashes.size > keys.length / 2, `${hashes.size} hashes of ${keys.length} keys`);
    const entry = map(["gfx942", entryOf(0, A.length)]);
    const bytes = noneArchive([A], { entries: map(...keys.map((key) => [key, entry] as const)) });
    await using archive = await openBytes(bytes);
    for (const key of keys) assert.equal(archive.find(key, "gfx942")?.binaryKey, key);
    assert.equal(archive.find(`${keys[0]}x`, "gfx942"), undefined);
  });
});

describe("the number of targets", () => {
  it("100 million empty ones in gfx_arches are refused", BOUND, async () => {
    const count = 100_000_000;
    const arches = new Uint8Array(count + 5).fill(0xa0);
    arches.set(header(0xdd, count));
    const toc = map(["gfx_arches", new RawBytes(arches)], ["toc", map()]);
    const error = await kpackError(
      async () => await openBytes(buildArchive({ toc })),
      "LIMIT_EXCEEDED",
      /^gfx_arches$/,
    );
    assert.equal(error.found, count);
    assert.equal(error.offset, 64 + 1 + "gfx_arches".length + 1);
  });

  it("two million in the entries are refused", BOUND, async () => {
    const bytes = noneArchive([A], { entries: manyTargets(2_000_000) });
    const error = await kpackError(async () => await openBytes(bytes), "LIMIT_EXCEEDED", /^toc\["a"\]$/);
    assert.match(error.message, /at most 65536 targets/);
  });

  it("65,536 are not", BOUND, async () => {
    const arches = Array.from({ length: 65_536 }, (_, index) => `gfx${index}`);
    const bytes = noneArchive([A], { entries: manyTargets(65_536), toc: [["gfx_arches", arches]] });
    await using archive = await openBytes(bytes);
    assert.deepEqual([archive.entries.length, archive.targets.length], [65_536, 65_536]);
    const more = noneArchive([A], { toc: [["gfx_arches", [...arches, "x"]]] });
    await kpackError(async () => await openBytes(more), "LIMIT_EXCEEDED", /^gfx_arches$/);
    await kpackError(
      async () => await openBytes(noneArchive([A], { entries: manyTargets(65_537) })),
      "LIMIT_EXCEEDED",
    );
  });
});
