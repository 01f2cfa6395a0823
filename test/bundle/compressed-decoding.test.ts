import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { ByteWriter } from "../../src/bytes/byte-writer.ts";
import { encodeUtf8 } from "../../src/bytes/text.ts";
import { type Codecs, requireCodec } from "../../src/codec/codec.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { FormatError, isKpackError, LimitError } from "../../src/errors/errors.ts";
import { buildBundle, compressBundle, concat, padded, scanAll } from "./bundle-builder.ts";

const GFX942 = "hipv4-amdgcn-amd-amdhsa--gfx942";
const zstd = requireCodec(nodeCodecs, "zstd");
const zlib = requireCodec(nodeCodecs, "zlib");

/** Node's codecs, with their calls counted. */
function counting(): {
  readonly codecs: Codecs;
  readonly calls: { zstd: number; zlib: number; md5: number };
} {
  const calls = { zstd: 0, zlib: 0, md5: 0 };
  const codecs: Codecs = {
    zstd: {
      ...zstd,
      async decompress(frame, size) {
        calls.zstd += 1;
        return await zstd.decompress(frame, size);
      },
    },
    zlib: {
      async decompress(bytes, limit) {
        calls.zlib += 1;
        return await zlib.decompress(bytes, limit);
      },
    },
    async md5(bytes) {
      calls.md5 += 1;
      return await requireCodec(nodeCodecs, "md5")(bytes);
    },
  };
  return { codecs, calls };
}

/** Codecs that never come to an end. */
const stuck: Codecs = {
  zstd: { ...zstd, decompress: () => new Promise<never>(() => undefined) },
  zlib: { decompress: () => new Promise<never>(() => undefined) },
};

test("a scan decompresses each container once, in every version and method, and keeps the entries' first bytes", async () => {
  const content = buildBundle([{ id: GFX942, content: "0123456789".repeat(20) }, { id: "host-x-" }]);
  for (const version of [1, 2, 3] as const) {
    for (const method of ["zlib", "zstd"] as const) {
      const { codecs, calls } = counting();
      const one = compressBundle(content, { version, method });
      const { bundles } = await scanAll(concat(one, padded(one), one), { codecs });
      assert.deepEqual(calls, { zstd: 0, zlib: 0, md5: 3, [method]: 3 }, `version ${version}, ${method}`);
      assert.equal(bundles.length, 3);
      for (const bundle of bundles) {
        assert.deepEqual(
          bundle.entries.map(({ head }) => new TextDecoder().decode(head)),
          ["0123456789".repeat(20).slice(0, 64), ""],
        );
        // Neither keeps the content in memory, also where a codec returns a Buffer.
        const [entry] = bundle.entries;
        assert.ok(entry);
        assert.equal(entry.head?.buffer.byteLength, 64);
        assert.equal((await bundle.readEntry(entry)).buffer.byteLength, 200);
      }
    }
  }
});

test("a hash that is not the content's is reported by the scan, once and where it stands", async () => {
  const content = buildBundle([{ id: GFX942, content: "kernel" }]);
  for (const version of [1, 2, 3] as const) {
    const bytes = compressBundle(concat(content, content), { version });
    const at = version === 1 ? 12 : version === 2 ? 16 : 24;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    const { bundles, findings } = await scanAll(concat(padded(bytes, 64), bytes));
    for (const bundle of bundles) for (const entry of bundle.entries) await bundle.readEntry(entry);
    assert.deepEqual(
      findings.map(({ severity, code, field, offset }) => `${severity} ${code} ${field} ${offset}`),
      [
        "warning BUNDLE_HASH_MISMATCH bundle[0].hash 0",
        `warning BUNDLE_HASH_MISMATCH bundle[2].hash ${padded(bytes, 64).length}`,
      ],
    );
    const withoutMd5 = await scanAll(bytes, { codecs: { zstd, zlib } });
    assert.deepEqual(withoutMd5.findings, []);
  }
});

for (const { version, method } of [
  { version: 1, method: "zlib" },
  { version: 1, method: "zstd" },
  { version: 3, method: "zstd" },
] as const) {
  test(`an abort does not wait for the decoding of version ${version}, ${method}`, async () => {
    const bytes = compressBundle(buildBundle([{ id: GFX942, content: "kernel" }]), { version, method });
    const controller = new AbortController();
    const scan = scanAll(bytes, { codecs: stuck, signal: controller.signal });
    const reason = new Error("enough");
    setTimeout(() => controller.abort(reason), 10);
    await assert.rejects(scan, reason);
    await assert.rejects(scanAll(bytes, { codecs: stuck, signal: controller.signal }), reason);
  });
}

test("an abort does not wait for the decoding of an entry, and others get theirs all the same", async () => {
  const container = (text: string): Uint8Array =>
    compressBundle(buildBundle([{ id: GFX942, content: text }]), { version: 3 });
  let release: (() => void) | undefined;
  const gate: { wait?: Promise<void> } = {};
  const codecs: Codecs = {
    zstd: {
      ...zstd,
      async decompress(frame, size) {
        await gate.wait;
        return await zstd.decompress(frame, size);
      },
    },
  };
  const { bundles } = await scanAll(concat(...["a", "b", "c", "d", "e", "f"].map(container)), { codecs });
  gate.wait = new Promise((resolve) => (release = resolve));
  const [bundle] = bundles;
  const entry = bundle?.entries[0];
  assert.ok(bundle && entry);
  const controller = new AbortController();
  const aborted = bundle.readEntry(entry, { signal: controller.signal });
  const other = bundle.readEntry(entry);
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(aborted, reason);
  release?.();
  assert.equal(new TextDecoder().decode(await other), "a");
});

/** A frame of `count` blocks that repeat a byte 131072 times each, without a checksum. */
function repeatingFrame(count: number): Uint8Array {
  const writer = new ByteWriter();
  writer.u32(0xfd2fb528);
  writer.u8(0xc0); // 8 bytes of content size
  writer.u8(0x38); // a window of 128 KiB
  writer.u64(count * 131072);
  const blocks = new Uint8Array(count * 4);
  for (let index = 0; index < count; index++) {
    const header = (131072 << 3) | 2 | (index === count - 1 ? 1 : 0);
    blocks.set([header & 0xff, (header >> 8) & 0xff, header >> 16, 0], index * 4);
  }
  return concat(writer.finish(), blocks);
}

test("content that is larger than the runtime can take at once is over a limit, not damaged", async () => {
  const frame = repeatingFrame(32768);
  const writer = new ByteWriter();
  writer.append(encodeUtf8("CCOB"));
  writer.u16(3);
  writer.u16(1);
  writer.u64(32 + frame.length);
  writer.u64(2 ** 32);
  writer.u64(0);
  await assert.rejects(scanAll(concat(writer.finish(), frame)), (error) => {
    assert.ok(error instanceof LimitError, String(error));
    assert.deepEqual(
      [error.code, error.field, error.file, error.offset, error.found],
      ["LIMIT_EXCEEDED", "bundle[0].content", "memory", 32, 2 ** 32],
    );
    return true;
  });
  await assert.rejects(zstd.decompress(frame, 2 ** 32), (error) => isKpackError(error, "LIMIT_EXCEEDED"));
});

test("the runtime's failure to allocate is over a limit too, any other one is damage", async () => {
  const bytes = compressBundle(buildBundle([{ id: GFX942, content: "kernel" }]), { version: 2 });
  const failing = (error: Error): Codecs => ({ zstd: { ...zstd, decompress: () => Promise.reject(error) } });
  await assert.rejects(
    scanAll(bytes, { codecs: failing(new RangeError("Array buffer allocation failed")) }),
    (error) => error instanceof LimitError && error.field === "bundle[0].content",
  );
  await assert.rejects(
    scanAll(bytes, { codecs: failing(new RangeError("no")) }),
    (error) => error instanceof FormatError && error.code === "DECOMPRESSION_FAILED",
  );
});

test("zlib content is put into one buffer of its size, and what follows the stream is left", async () => {
  for (const size of [0, 1, 63, 64, 16384, 3_000_000]) {
    const content = new Uint8Array(randomBytes(size));
    const stream = deflateSync(content);
    const { content: found, consumed } = await zlib.decompress(concat(stream, randomBytes(99)), size);
    assert.deepEqual(new Uint8Array(found), content);
    assert.equal(consumed, stream.length);
    // Small ones come out of Node's pool.
    if (size > 16384) assert.equal(found.buffer.byteLength, size + 1);
    if (size > 0) await assert.rejects(zlib.decompress(stream, size - 1), RangeError);
  }
});

test("frames that do not state their size are decoded into one buffer too", async () => {
  const content = buildBundle([{ id: GFX942, content: randomBytes(300_000) }]);
  const { bundles } = await scanAll(compressBundle(content, { version: 3, withoutContentSize: true }));
  const found = await bundles[0]?.readContent();
  assert.deepEqual(found && new Uint8Array(found), new Uint8Array(content));
  assert.equal(found?.buffer.byteLength, content.length);
});

test("content that repeats a tiny bundle without end is refused", async () => {
  const tiny = buildBundle([]);
  const content = new Uint8Array(tiny.length * (1 << 20) + tiny.length);
  for (let at = 0; at < content.length; at += tiny.length) content.set(tiny, at);
  await assert.rejects(scanAll(compressBundle(content, { version: 3 })), (error) =>
    isKpackError(error, "LIMIT_EXCEEDED"),
  );
});
