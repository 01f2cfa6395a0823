import assert from "node:assert/strict";
import { test } from "node:test";
import { isKpackError } from "../../src/errors/errors.ts";
import { buildBundle, compressBundle, concat, padded, scanAll } from "./bundle-builder.ts";

const MILLISECONDS = 1500;

test("whatever is changed in a file of bundles, reading gives bytes of the file or an error of ours", async () => {
  const plain = buildBundle(
    [
      { id: "host-x86_64-unknown-linux--" },
      { id: "hipv4-amdgcn-amd-amdhsa--gfx942", content: "kernel".repeat(50) },
    ],
    { alignment: 64 },
  );
  const good = concat(
    padded(plain, 128),
    compressBundle(plain, { version: 3 }),
    compressBundle(plain, { version: 2, method: "zlib" }),
    compressBundle(plain, { version: 1 }),
    padded(plain, 128),
  );
  const random = generator(20260201);
  const end = performance.now() + MILLISECONDS;
  let refused = 0;
  let read = 0;
  while (performance.now() < end) {
    const bytes = mutate(good, random);
    try {
      const { bundles } = await scanAll(bytes, { limits: { bundleSize: 1 << 20 } });
      for (const bundle of bundles) {
        assert.ok(bundle.offset + bundle.length <= bytes.length);
        for (const entry of bundle.entries) {
          const content = await bundle.readEntry(entry);
          assert.equal(content.length, entry.size);
          if (bundle.container === "plain") {
            const start = bundle.offset + entry.offset;
            assert.deepEqual(content, bytes.subarray(start, start + entry.size));
          }
        }
      }
      read += 1;
    } catch (error) {
      if (!isKpackError(error)) throw error;
      refused += 1;
    }
  }
  assert.ok(refused > 50 && read > 50, `${refused} refused, ${read} read`);
});

function mutate(good: Uint8Array, random: (below: number) => number): Uint8Array {
  const bytes = good.slice();
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = random(bytes.length);
    const how = random(4);
    if (how === 0) bytes[at] = random(256);
    else if (how === 1) bytes.fill(0xff, at, at + 8);
    else if (how === 2) bytes.fill(0, at, at + 1 + random(32));
    else return bytes.subarray(0, at);
  }
  return bytes;
}

/** The same numbers in every run. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
