import assert from "node:assert/strict";
import { it } from "node:test";
import { loadXxh64 } from "../../src/hash/xxh64.ts";

/** Neither Node's types nor the library's know it. */
function engine(): { instantiate(bytes: Uint8Array): Promise<unknown> } {
  const { WebAssembly: found } = globalThis as unknown as { WebAssembly: ReturnType<typeof engine> };
  return found;
}

it("a hash that could not be loaded is loaded by the next call", async (context) => {
  const instantiate = context.mock.method(engine(), "instantiate", async () => {
    throw new RangeError("could not allocate memory");
  });
  await assert.rejects(loadXxh64(), /could not allocate/);
  await assert.rejects(loadXxh64(), /could not allocate/);
  assert.equal(instantiate.mock.callCount(), 2);
  instantiate.mock.restore();
  const hash = await loadXxh64();
  assert.equal(hash(new Uint8Array()), 0xef46db3751d8e999n);
  assert.equal(await loadXxh64(), hash);
});
