import assert from "node:assert/strict";
import fs from "node:fs";
import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { blobSource, memorySource, openFile, sliceSource, type Source } from "../../src/node.ts";
import { sampleKernel } from "../support/kernels.ts";
import { concat } from "../support/raw-msgpack.ts";
import { CountingSource } from "../support/sources.ts";

const BYTES = sampleKernel(7, 10_000);
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kpack-source-"));
  await writeFile(join(folder, "bytes"), BYTES);
});
after(async () => await rm(folder, { recursive: true }));

const SOURCES: Readonly<Record<string, () => Promise<Source>>> = {
  memory: async () => memorySource(BYTES, "bytes"),
  blob: async () => blobSource(new Blob([BYTES]), "bytes"),
  file: async () => await openFile(join(folder, "bytes")),
  slice: async () =>
    sliceSource(
      memorySource(concat(new Uint8Array(77), BYTES, new Uint8Array(5))),
      77,
      BYTES.length,
      "bytes",
    ),
  "slice of a slice of a file": async () =>
    sliceSource(sliceSource(await openFile(join(folder, "bytes")), 0, BYTES.length), 0, BYTES.length),
};

for (const [name, make] of Object.entries(SOURCES)) {
  describe(`a source over ${name}`, () => {
    let source: Source;
    before(async () => {
      source = await make();
    });
    after(async () => await source[Symbol.asyncDispose]());

    it("knows its size and a name", () => {
      assert.equal(source.size, BYTES.length);
      assert.match(source.name, /bytes$/);
    });

    it("reads exactly what is asked for, at both ends and across the middle", async () => {
      for (const [offset, length] of [
        [0, 0],
        [0, 1],
        [0, 10_000],
        [9_999, 1],
        [10_000, 0],
        [1234, 4321],
      ] as const) {
        assert.deepEqual(
          Buffer.from(await source.read(offset, length)),
          Buffer.from(BYTES.subarray(offset, offset + length)),
        );
      }
    });

    it("reads into a given buffer or not, but returns the right bytes", async () => {
      for (const size of [0, 99, 100, 5000]) {
        const bytes = await source.read(50, 100, { buffer: new Uint8Array(size).fill(0xee) });
        assert.deepEqual(Buffer.from(bytes), Buffer.from(BYTES.subarray(50, 150)));
      }
    });

    it("refuses what is past the end, with the numbers", async () => {
      for (const [offset, length] of [
        [0, 10_001],
        [10_000, 1],
        [10_001, 0],
        [2 ** 52, 2 ** 52],
      ] as const) {
        await assert.rejects(source.read(offset, length), {
          name: "FormatError",
          code: "TRUNCATED",
          offset,
          expected: `${length} bytes`,
          found: `${Math.max(0, 10_000 - offset)}`,
        });
      }
    });

    it("takes no offsets or lengths that are no safe integers", async () => {
      for (const [offset, length] of [
        [-1, 1],
        [0, -1],
        [0.5, 1],
        [0, Number.NaN],
        [2 ** 53, 0],
      ] as const)
        await assert.rejects(source.read(offset, length), RangeError);
    });

    it("rejects with the reason of an aborted signal", async () => {
      const reason = new Error("enough");
      await assert.rejects(
        source.read(0, 10, { signal: AbortSignal.abort(reason) }),
        (error) => error === reason,
      );
    });

    it("serves many reads at once", async () => {
      const reads = Array.from({ length: 200 }, async (_, index) => {
        const bytes = await source.read(index * 37, 1 + index);
        assert.deepEqual(Buffer.from(bytes), Buffer.from(BYTES.subarray(index * 37, index * 37 + 1 + index)));
      });
      assert.equal((await Promise.all(reads)).length, 200);
    });
  });
}

/** Replaces the system's read by what tells how many of the wanted bytes were read. */
function mockRead(context: TestContext, bytesRead: (length: number) => number): void {
  type Callback = (error: null, bytesRead: number) => void;
  context.mock.method(fs, "read", (...args: unknown[]) => {
    setImmediate(args[5] as Callback, null, bytesRead(Number(args[3])));
  });
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

describe("a source over a file", () => {
  it("waits for reads under way before it closes: another file could get the descriptor", async () => {
    for (let round = 0; round < 20; round++) {
      const source = await openFile(join(folder, "bytes"));
      const reads = Array.from({ length: 20 }, (_, index) => source.read(index * 100, 100));
      const closing = source[Symbol.asyncDispose]();
      await assert.rejects(source.read(0, 1), { code: "READ_FAILED" });
      for (const [index, bytes] of (await Promise.all(reads)).entries())
        assert.deepEqual(Buffer.from(bytes), Buffer.from(BYTES.subarray(index * 100, index * 100 + 100)));
      await closing;
      await source[Symbol.asyncDispose]();
    }
  });

  it("says so when the file became shorter", async () => {
    const path = join(folder, "shrinking");
    await writeFile(path, BYTES);
    await using source = await openFile(path);
    await truncate(path, 100);
    await assert.rejects(source.read(50, 100), {
      name: "AccessError",
      code: "SOURCE_CHANGED",
      expected: "100 bytes",
      found: "50",
    });
    assert.equal((await source.read(50, 50)).length, 50);
  });

  it("refuses folders, what is not there, and reads after it was closed", async () => {
    await mkdir(join(folder, "sub"));
    for (const path of ["sub", "nothing", "bytes/below"])
      await assert.rejects(openFile(join(folder, path)), { name: "AccessError", code: "READ_FAILED" });
    const source = await openFile(join(folder, "bytes"));
    await source[Symbol.asyncDispose]();
    await assert.rejects(source.read(0, 1), { code: "READ_FAILED" });
  });

  it("never asks the system for 2 GiB at once, which would end the process", async (context) => {
    const path = join(folder, "sparse");
    await writeFile(path, "");
    await truncate(path, 2 ** 31 + 10);
    await using source = await openFile(path);
    const lengths: number[] = [];
    mockRead(context, (length) => {
      lengths.push(length);
      return length;
    });
    assert.equal((await source.read(0, 2 ** 31 + 10)).length, 2 ** 31 + 10);
    assert.ok(Math.max(...lengths) < 2 ** 31);
    assert.equal(
      lengths.reduce((sum, length) => sum + length, 0),
      2 ** 31 + 10,
    );
  });

  it("stops between two reads of the system when it is aborted", async (context) => {
    await using source = await openFile(join(folder, "bytes"));
    const controller = new AbortController();
    let calls = 0;
    mockRead(context, () => {
      calls += 1;
      if (calls === 2) controller.abort(new Error("enough"));
      return 1;
    });
    await assert.rejects(source.read(0, 100, { signal: controller.signal }), { message: "enough" });
    assert.equal(calls, 2);
  });
});

describe("a source over a Blob", () => {
  const blob = (bytes: () => Promise<ArrayBuffer>): Source =>
    blobSource({ size: 100, slice: () => ({ arrayBuffer: bytes }) });

  it("says so when the file behind it cannot be read or became shorter", async () => {
    const cause = new DOMException("gone", "NotReadableError");
    const gone = blob(async () => await Promise.reject(cause));
    await assert.rejects(gone.read(0, 10), { name: "AccessError", code: "READ_FAILED", cause });
    await assert.rejects(blob(async () => new ArrayBuffer(9)).read(0, 10), {
      code: "SOURCE_CHANGED",
      found: "9",
    });
  });
});

describe("a slice", () => {
  it("must lie inside its source, and leaves it open", async () => {
    const inner = new CountingSource(memorySource(BYTES, "inner"));
    assert.throws(() => sliceSource(inner, 9_999, 2), { code: "TRUNCATED" });
    const slice = sliceSource(inner, 10, 20);
    assert.equal(slice.name, "inner");
    await slice.read(5, 5);
    await slice[Symbol.asyncDispose]();
    assert.deepEqual(inner.take(), [{ offset: 15, length: 5 }]);
    assert.equal(inner.disposals, 0);
  });
});
