import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { none } from "../../src/node.ts";
import { entryOf, noneArchive, zstdArchive } from "../support/archive-builder.ts";
import { kernelToWrite, openBytes, sha256, writeToMemory } from "../support/kernels.ts";
import { concat, hex, map } from "../support/raw-msgpack.ts";

/** The base files F1 and F2 of the format's description, byte for byte. */
const F1 = hex(`
  4b50414b01000000440000000000000000000000000000000000000000000000
  0000000000000000000000000000000000000000000000000000000000000000 7f454c46
  87ae666f726d61745f76657273696f6e01aa67726f75705f6e616d65a167af6766785f617263685f66616d696c79a6676678393432aa6766785f61726368657391a6676678393432
  a3746f6381a6612e736f233081a667667839343283a474797065a5687361636fa76f7264696e616c00ad6f726967696e616c5f73697a6504
  b2636f6d7072657373696f6e5f736368656d65a46e6f6e65a5626c6f62739182a66f666673657440a473697a6504`);
const F1_SHA256 = "17d3c35ecb05bc773deeb519c31e12885cc81a31b48cb437497b1271b8398883";
const KERNEL = hex("7f454c46");
const FRAME = hex("28b52ffd20042100007f454c46");
const FRAME_WITHOUT_SIZE = hex("28b52ffd00002100007f454c46");
const entries = map(["a.so#0", map(["gfx942", entryOf(0, 4)])]);

describe("F1, the smallest archive of scheme none", () => {
  it("has the documented hash and is what the tests' own builder makes", () => {
    assert.equal(F1.length, 242);
    assert.equal(sha256(F1), F1_SHA256);
    assert.equal(sha256(noneArchive([KERNEL], { entries })), F1_SHA256);
  });

  it("is read", async () => {
    const archive = await openBytes(F1);
    assert.deepEqual(await archive.readKernel("a.so#0", "gfx942"), KERNEL);
    assert.deepEqual(archive.findings, []);
    assert.deepEqual([archive.groupName, archive.family, archive.targets], ["g", "gfx942", ["gfx942"]]);
  });

  it("is what the writer writes, byte for byte, when no extra fields are wanted", async () => {
    const { bytes, summary } = await writeToMemory(
      [kernelToWrite(KERNEL, { binaryKey: "a.so#0", target: "gfx942" })],
      { scheme: none, family: "gfx942", extraFields: false },
    );
    assert.deepEqual(bytes, F1);
    assert.equal(sha256(bytes), F1_SHA256);
    assert.deepEqual(summary, {
      entries: 1,
      kernels: 1,
      originalSize: 4,
      archiveSize: 242,
      targets: ["gfx942"],
    });
  });
});

describe("F2, the smallest archive of scheme zstd-per-kernel", () => {
  const F2 = zstdArchive([KERNEL], [FRAME], { entries });

  it("has the documented size, TOC offset and area", () => {
    assert.equal(F2.length, 272);
    assert.equal(F2[8], 0x55);
    assert.deepEqual(F2.subarray(64, 85), concat(hex("010000000d000000"), FRAME));
  });

  it("is read", async () => {
    const archive = await openBytes(F2);
    assert.equal(archive.tocOffset, 0x55);
    assert.equal(archive.schemeName, "zstd-per-kernel");
    assert.deepEqual(await archive.readKernel("a.so#0", "gfx942"), KERNEL);
    assert.deepEqual(archive.findings, []);
  });

  it("is read as well when the frame does not state its content's size", async () => {
    const archive = await openBytes(zstdArchive([KERNEL], [FRAME_WITHOUT_SIZE], { entries }));
    assert.deepEqual(await archive.readKernel("a.so#0", "gfx942"), KERNEL);
  });
});
