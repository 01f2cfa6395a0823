import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { constants, zstdCompressSync } from "node:zlib";
import { type FrameDecompressor, nodeCodecs, type ZstdCodec } from "../../src/node.ts";
import { codePiece, randomKernel } from "../support/kernel-families.ts";

const zstd = nodeCodecs.zstd as ZstdCodec;

function open(): FrameDecompressor {
  assert.ok(zstd.createFrameDecompressor);
  return zstd.createFrameDecompressor();
}

async function frameOf(content: Uint8Array): Promise<Uint8Array> {
  return await zstd.compress(content, { level: 3 });
}

describe("a frame decompressor", () => {
  it("decodes frames of all sizes one after another, growing and shrinking", async () => {
    const sizes = [100, 0, 1, 70_000, 131_072, 131_073, 5, 3_000_000, 64, 3_000_000, 2_999_999, 0, 400_000];
    const decompressor = open();
    for (const [index, size] of sizes.entries()) {
      for (const content of [codePiece(index, size), randomKernel(index, size)]) {
        const decoded = await decompressor.decompress(await frameOf(content), size);
        assert.ok(Buffer.from(decoded).equals(content), `${size} bytes`);
      }
    }
    decompressor.close();
  });

  it("writes them over each other: that is what it is for", async () => {
    const decompressor = open();
    const first = await decompressor.decompress(await frameOf(codePiece(1, 200_000)), 200_000);
    const { buffer, byteOffset } = first;
    for (let index = 2; index < 8; index++) {
      const content = codePiece(index, 190_000 + index);
      const decoded = await decompressor.decompress(await frameOf(content), content.length);
      assert.ok(decoded.buffer === buffer);
      assert.equal(decoded.byteOffset, byteOffset);
      assert.ok(Buffer.from(first.subarray(0, 1000)).equals(content.subarray(0, 1000)));
    }
    decompressor.close();
  });

  it("decodes frames that were compressed with a large window, and contents too large to keep", async () => {
    const content = new Uint8Array(70_000_000).fill(7);
    content.set(codePiece(1, 100_000), 69_000_000);
    const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_checksumFlag]: 1 };
    const decompressor = open();
    for (const part of [content.subarray(68_999_000, 69_500_000), content]) {
      const frame = zstdCompressSync(part, { params });
      assert.ok(Buffer.from(await decompressor.decompress(frame, part.length)).equals(part));
    }
    decompressor.close();
  });

  it("fails on a damaged frame as the one-shot call does, and decodes the next one", async () => {
    const content = codePiece(1, 50_000);
    const frame = await frameOf(content);
    const decompressor = open();
    for (const place of [4, 6, 30, 5000, frame.length - 1]) {
      const damaged = frame.slice();
      damaged[place] = (damaged[place] ?? 0) ^ 0x55;
      const codes: unknown[] = [];
      for (const decompress of [zstd.decompress, decompressor.decompress.bind(decompressor)]) {
        await decompress(damaged, content.length).then(
          (decoded) => codes.push(decoded.length),
          (error: NodeJS.ErrnoException) => codes.push(error.code),
        );
      }
      assert.equal(codes[1], codes[0], `byte ${place}`);
      assert.ok(Buffer.from(await decompressor.decompress(frame, content.length)).equals(content));
    }
    decompressor.close();
  });

  it("gives what there is of a frame that is cut off, and decodes the next one", async () => {
    const content = codePiece(1, 300_000);
    const frame = await frameOf(content);
    const decompressor = open();
    for (const length of [3, 9, 1000, frame.length - 5]) {
      const part = await decompressor.decompress(frame.subarray(0, length), content.length);
      assert.ok(part.length < content.length);
      assert.ok(Buffer.from(await decompressor.decompress(frame, content.length)).equals(content));
    }
    decompressor.close();
  });

  it("is not misled by a frame that lacks nothing but its checksum", async () => {
    const content = codePiece(1, 60_000);
    const frame = await frameOf(content);
    const decompressor = open();
    for (const missing of [1, 2, 3, 4]) {
      await decompressor.decompress(frame.subarray(0, frame.length - missing), content.length);
      assert.ok(Buffer.from(await decompressor.decompress(frame, content.length)).equals(content));
    }
    decompressor.close();
    await assert.rejects(decompressor.decompress(frame, content.length), /closed/);
  });

  it("stops at the size that it is told", async () => {
    const frame = await frameOf(codePiece(1, 3_000_000));
    const decompressor = open();
    for (const size of [1, 1000, 2_999_999]) {
      await assert.rejects(decompressor.decompress(frame, size), { code: "ERR_BUFFER_TOO_LARGE" });
    }
    assert.equal((await decompressor.decompress(frame, 3_000_000)).length, 3_000_000);
    decompressor.close();
  });

  it("takes a dictionary in once, and decodes all its frames with it", async () => {
    const dictionary = codePiece(1, 150_000);
    const contents = Array.from({ length: 12 }, (_, index) =>
      index % 3 === 0 ? new Uint8Array() : dictionary.slice(index * 1000, index * 9000 + 500),
    );
    assert.ok(zstd.createFrameCompressor && zstd.createFrameDecompressor);
    const compressor = zstd.createFrameCompressor({ level: 9, windowLog: 19, dictionary });
    const decompressor = zstd.createFrameDecompressor({ dictionary });
    for (const content of contents) {
      const frame = await compressor.compress(content);
      assert.ok(content.length === 0 || frame.length < content.length / 20 + 50, "the dictionary is used");
      const decoded = await decompressor.decompress(frame, content.length);
      assert.ok(Buffer.from(decoded).equals(content));
    }
    compressor.close();
    decompressor.close();
  });

  it("fails when it is closed meanwhile, and leaves nothing that keeps the process alive", async () => {
    const content = codePiece(1, 3_000_000);
    const frame = await frameOf(content);
    const decompressor = open();
    const decoding = decompressor.decompress(frame, content.length);
    decompressor.close();
    await assert.rejects(decoding);
    decompressor.close();
  });
});
