import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { ByteReader } from "../../src/bytes/byte-reader.ts";
import { ByteWriter } from "../../src/bytes/byte-writer.ts";
import { alignUp, bytesEqual, extentEnd, extentsOverlap } from "../../src/bytes/extent.ts";
import { mapOrdered } from "../../src/bytes/map-ordered.ts";
import { decodeUtf8, encodeUtf8, printable, toHex } from "../../src/bytes/text.ts";
import { describeUint64, safeNumber } from "../../src/bytes/uint64.ts";
import { hex } from "../support/raw-msgpack.ts";

describe("reading little-endian fields", () => {
  it("reads each width where it stands", () => {
    const reader = new ByteReader(hex("01 0302 07060504 0f0e0d0c0b0a0908 ffffffffffff1f00 aabb"));
    assert.equal(reader.u8("a"), 1);
    assert.equal(reader.u16("b"), 0x0203);
    assert.equal(reader.u32("c"), 0x04050607);
    assert.equal(reader.u64Big("d"), 0x08090a0b0c0d0e0fn);
    assert.equal(reader.u64("e"), Number.MAX_SAFE_INTEGER);
    assert.deepEqual(reader.take(1, "f"), Uint8Array.of(0xaa));
    reader.skip(1, "g");
    assert.equal(reader.remaining, 0);
    assert.equal(reader.position, 25);
  });

  it("never reads past the end: the error names field, place and sizes, and nothing moves", () => {
    const calls: readonly (readonly [number, (reader: ByteReader) => unknown])[] = [
      [1, (reader) => reader.u8("x")],
      [2, (reader) => reader.u16("x")],
      [4, (reader) => reader.u32("x")],
      [8, (reader) => reader.u64("x")],
      [8, (reader) => reader.u64Big("x")],
      [100, (reader) => reader.take(100, "x")],
      [2 ** 40, (reader) => reader.skip(2 ** 40, "x")],
    ];
    for (const [size, call] of calls) {
      const have = Math.min(size - 1, 7);
      const reader = new ByteReader(new Uint8Array(have), { file: "f", base: 1000 });
      assert.throws(() => call(reader), {
        code: "TRUNCATED",
        file: "f",
        field: "x",
        offset: 1000,
        expected: `${size} bytes`,
        found: `${have}`,
      });
      assert.equal(reader.position, 0);
    }
  });

  it("refuses a u64 that no file has, and shows it in hexadecimal", () => {
    const reader = new ByteReader(hex("00 0000000000002000"), { base: 10 });
    reader.u8("first");
    assert.throws(() => reader.u64("size"), {
      code: "OUT_OF_BOUNDS",
      field: "size",
      offset: 11,
      found: "0x20000000000000",
    });
  });
});

describe("writing fields", () => {
  it("comes back through the reader, also when the buffer had to grow", () => {
    fc.assert(
      fc.property(
        fc.nat(0xff),
        fc.nat(0xffff),
        fc.nat(0xffffffff),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.uint8Array(),
        fc.nat(20),
        (a, b, c, d, bytes, capacity) => {
          const writer = new ByteWriter(capacity);
          writer.u8(a);
          writer.u16(b);
          writer.append(bytes);
          writer.u32(c);
          writer.u64(d);
          const reader = new ByteReader(writer.finish());
          assert.equal(writer.length, 15 + bytes.length);
          assert.deepEqual([reader.u8(""), reader.u16("")], [a, b]);
          assert.deepEqual(reader.take(bytes.length, ""), bytes);
          assert.deepEqual([reader.u32(""), reader.u64Big("")], [c, d]);
        },
      ),
    );
  });

  it("can be big-endian", () => {
    const writer = new ByteWriter(0);
    writer.u16(0x0102, false);
    writer.u32(0x03040506, false);
    writer.u64(0x0708090a0b0c0d0en, false);
    assert.equal(toHex(writer.finish()), "0102030405060708090a0b0c0d0e");
  });
});

describe("extents", () => {
  it("overlap when they share a byte; empty ones share none", () => {
    const extent = (offset: number, size: number): { offset: number; size: number } => ({ offset, size });
    assert.equal(extentEnd(extent(5, 3)), 8);
    assert.ok(extentsOverlap(extent(0, 2), extent(1, 5)));
    assert.ok(extentsOverlap(extent(1, 5), extent(0, 2)));
    assert.ok(extentsOverlap(extent(0, 10), extent(3, 1)));
    assert.ok(!extentsOverlap(extent(0, 2), extent(2, 2)));
    assert.ok(!extentsOverlap(extent(2, 2), extent(0, 2)));
    assert.ok(!extentsOverlap(extent(1, 0), extent(0, 5)));
  });

  it("are aligned upwards, also beyond 32 bits", () => {
    assert.deepEqual(
      [0, 1, 16, 17].map((offset) => alignUp(offset, 16)),
      [0, 16, 16, 32],
    );
    assert.equal(alignUp(2 ** 40 + 1, 4096), 2 ** 40 + 4096);
    assert.equal(alignUp(10, 3), 12);
  });

  it("bytes are equal when every byte is", () => {
    assert.ok(bytesEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 2)));
    assert.ok(!bytesEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 3)));
    assert.ok(!bytesEqual(Uint8Array.of(1, 2), Uint8Array.of(1)));
  });
});

describe("64-bit numbers", () => {
  it("are numbers only where they are exact", () => {
    assert.equal(safeNumber(2n ** 53n - 1n), 2 ** 53 - 1);
    assert.equal(safeNumber(2n ** 53n), undefined);
    assert.equal(safeNumber(-(2n ** 53n) + 1n), -(2 ** 53) + 1);
    assert.equal(safeNumber(-(2n ** 53n)), undefined);
    assert.equal(describeUint64(4096n), "4096");
    assert.equal(describeUint64(2n ** 64n - 64n), "0xffffffffffffffc0");
  });
});

describe("text", () => {
  it("is UTF-8 or nothing", () => {
    for (const text of ["", "abc", "\ufeffx", "\u0000", "é例🚀"])
      assert.equal(decodeUtf8(encodeUtf8(text)), text);
    for (const bytes of ["ff", "c3", "c328", "eda080", "f5808080"])
      assert.equal(decodeUtf8(hex(bytes)), undefined);
  });

  it("shows what a terminal would obey as escapes", () => {
    assert.equal(printable("a\u001b[0m\u009b\u202eb\u2066\n"), "a\\u001b[0m\\u009b\\u202eb\\u2066\\u000a");
    assert.equal(printable("é例🚀 ok"), "é例🚀 ok");
  });
});

describe("doing several things at once, in order", () => {
  const wait = async (turns: number): Promise<void> => {
    for (; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
  };

  it("yields the results in the items' order and never runs more than it may", async () => {
    for (const jobs of [1, 2, 5, 50]) {
      let running = 0;
      let most = 0;
      const results: number[] = [];
      const items = Array.from({ length: 20 }, (_, index) => index);
      for await (const result of mapOrdered(items, jobs, async (item) => {
        running += 1;
        most = Math.max(most, running);
        await wait((item * 7) % 5);
        running -= 1;
        return item * 10;
      }))
        results.push(result);
      assert.deepEqual(
        results,
        items.map((item) => item * 10),
      );
      assert.ok(most <= jobs && most >= Math.min(jobs, 2), `${most} of ${jobs}`);
    }
  });

  it("fails with the first failure in order, once what runs has ended", async () => {
    let running = 0;
    const seen: number[] = [];
    const run = async (): Promise<void> => {
      for await (const result of mapOrdered([0, 1, 2, 3, 4, 5], 4, async (item) => {
        running += 1;
        await wait(item === 2 ? 1 : 6);
        running -= 1;
        if (item >= 1 && item <= 2) throw new Error(`item ${item}`);
        return item;
      }))
        seen.push(result);
    };
    await assert.rejects(run, { message: "item 1" });
    assert.deepEqual(seen, [0]);
    assert.equal(running, 0);
  });

  it("starts nothing more when its consumer stops", async () => {
    const started: number[] = [];
    for await (const _ of mapOrdered([0, 1, 2, 3, 4, 5, 6, 7], 2, async (item) => void started.push(item)))
      break;
    await wait(3);
    assert.deepEqual(started, [0, 1]);
  });

  it("refuses a number of jobs that is none", async () => {
    for (const jobs of [0, -1, 1.5, Number.NaN])
      await assert.rejects(mapOrdered([1], jobs, async (item) => item).next(), RangeError);
  });
});
