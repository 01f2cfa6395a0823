import assert from "node:assert/strict";
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createFile, memorySink, type Sink } from "../../src/node.ts";
import { sampleKernel } from "../support/kernels.ts";
import { concat } from "../support/raw-msgpack.ts";

let folder = "";
let count = 0;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kpack-sink-"));
});
after(async () => await rm(folder, { recursive: true }));

/** A path in a folder of its own, so that everything left behind is seen. */
async function freshPath(): Promise<string> {
  count += 1;
  const path = join(folder, String(count));
  await mkdir(path);
  return join(path, "out.kpack");
}

const SINKS: Readonly<
  Record<string, () => Promise<{ readonly sink: Sink; readonly content: () => Promise<Uint8Array> }>>
> = {
  memory: async () => {
    const sink = memorySink();
    return { sink, content: async () => sink.bytes() };
  },
  file: async () => {
    const path = await freshPath();
    return { sink: await createFile(path), content: async () => Uint8Array.from(await readFile(path)) };
  },
};

const MIB = 1 << 20;

for (const [name, make] of Object.entries(SINKS)) {
  describe(`a sink into ${name}`, () => {
    it("appends parts of all sizes around its buffer's, and knows its position", async () => {
      const { sink, content } = await make();
      await using _ = sink;
      const parts: Uint8Array[] = [];
      for (const [index, size] of [0, 1, 100, MIB - 50, 60, MIB, MIB + 1, 3, 3 * MIB, 5].entries()) {
        const part = sampleKernel(index, size);
        const reused = part.slice();
        await sink.write(reused);
        reused.fill(0); // a caller may use the memory again
        parts.push(part);
        assert.equal(
          sink.position,
          parts.reduce((sum, one) => sum + one.length, 0),
        );
      }
      await sink.commit();
      assert.ok(Buffer.from(concat(...parts)).equals(await content()));
    });

    it("patches what was written, wherever that is by now, and nothing else", async () => {
      const { sink, content } = await make();
      await using _ = sink;
      await sink.write(new Uint8Array(MIB));
      await sink.write(new Uint8Array(20));
      await sink.patch(3, Uint8Array.of(1, 2));
      await sink.patch(MIB - 1, Uint8Array.of(3, 4));
      await sink.patch(MIB + 19, Uint8Array.of(5));
      await assert.rejects(sink.patch(MIB + 20, Uint8Array.of(1)), RangeError);
      await assert.rejects(sink.patch(-1, Uint8Array.of(1)), RangeError);
      assert.equal(sink.position, MIB + 20);
      await sink.write(Uint8Array.of(6));
      await sink.commit();
      const bytes = await content();
      assert.equal(bytes.length, MIB + 21);
      const expected = new Uint8Array(MIB + 21);
      expected.set([1, 2], 3);
      expected.set([3, 4], MIB - 1);
      expected.set([5, 6], MIB + 19);
      assert.ok(Buffer.from(expected).equals(bytes));
    });

    it("shows what was written before it is committed", async () => {
      const { sink } = await make();
      await using _ = sink;
      await sink.write(Uint8Array.of(1, 2, 3));
      await sink.patch(0, Uint8Array.of(9));
      const source = await sink.reopen();
      assert.equal(source.size, 3);
      assert.deepEqual([...(await source.read(0, 3))], [9, 2, 3]);
      await source[Symbol.asyncDispose]();
    });
  });
}

describe("a file that is being written", () => {
  it("does not appear before commit, and replaces an older one whole", async () => {
    const path = await freshPath();
    await writeFile(path, "old");
    const sink = await createFile(path);
    await sink.write(Uint8Array.of(1));
    await (await sink.reopen())[Symbol.asyncDispose]();
    assert.equal(await readFile(path, "utf8"), "old");
    await sink.commit();
    await sink[Symbol.asyncDispose]();
    assert.deepEqual([...(await readFile(path))], [1]);
    assert.deepEqual(await readdir(join(path, "..")), ["out.kpack"]);
  });

  it("vanishes when it is not committed", async () => {
    const path = await freshPath();
    const sink = await createFile(path);
    await sink.write(new Uint8Array(3 * MIB));
    assert.equal((await readdir(join(path, ".."))).length, 1);
    await sink[Symbol.asyncDispose]();
    await sink[Symbol.asyncDispose](); // twice does no harm
    assert.deepEqual(await readdir(join(path, "..")), []);
  });

  it("makes missing folders", async () => {
    const path = join(await freshPath(), "a/b/c.kpack");
    await using sink = await createFile(path);
    await sink.commit();
    assert.equal((await readFile(path)).length, 0);
  });

  it("leaves nothing behind when the target cannot be replaced", async () => {
    const path = await freshPath();
    {
      await using sink = await createFile(path);
      await mkdir(path); // meanwhile
      await writeFile(join(path, "inside"), "x");
      await sink.write(Uint8Array.of(1));
      await assert.rejects(sink.commit(), { name: "AccessError", code: "WRITE_FAILED", file: path });
    }
    assert.deepEqual(await readdir(join(path, "..")), ["out.kpack"]);
    assert.deepEqual(await readdir(path), ["inside"]);
  });

  it("cannot be made below a file", async () => {
    const path = await freshPath();
    await writeFile(path, "x");
    await assert.rejects(createFile(join(path, "below")), { name: "AccessError", code: "WRITE_FAILED" });
  });

  it("never hands the system 2 GiB at once, which would end the process", async (context) => {
    const path = await freshPath();
    await using sink = await createFile(path);
    await using probe = await open(path, "w");
    const sizes: number[] = [];
    context.mock.method(Object.getPrototypeOf(probe) as typeof probe, "write", async (...args: unknown[]) => {
      sizes.push(Number(args[2]));
      return { bytesWritten: Number(args[2]) };
    });
    await sink.write(new Uint8Array(2 ** 31 + 10));
    assert.ok(Math.max(...sizes) < 2 ** 31);
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      2 ** 31 + 10,
    );
    assert.equal(sink.position, 2 ** 31 + 10);
  });
});
