import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode } from "@msgpack/msgpack";
import { MessagePackExtension, MessagePackFloat, nodeCodecs, none, zstdPerKernel } from "../../src/node.ts";
import { entryOf, noneArchive } from "../support/archive-builder.ts";
import { expectedArchives, fixtureBytes } from "../support/archive-fixtures.ts";
import {
  kernelsDigest,
  kernelToWrite,
  openBytes,
  readAll,
  sampleKernel,
  writeToMemory,
} from "../support/kernels.ts";
import { map, raw } from "../support/raw-msgpack.ts";
import { carriedFields, rewrite } from "../support/rewrite.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });
/** Without the one of 5000 kernels, which shows nothing more here and takes its time. */
const ofRocm = expectedArchives.filter(([path]) => path.startsWith("D/ok/") && !path.includes("many5000"));
const EXACT = { shareIdentical: false, extraFields: false };

describe("an archive that is read and written again", () => {
  for (const [path] of expectedArchives.filter(([one]) => one.startsWith("D/ok/none_"))) {
    it(`${path} comes out byte for byte as ROCm's tool wrote it`, async () => {
      const bytes = fixtureBytes(path);
      const again = await rewrite(await openBytes(bytes), none, EXACT);
      assert.ok(Buffer.from(bytes).equals(again), "other bytes");
    });
  }

  for (const [path, expected] of ofRocm) {
    it(`${path} keeps its kernels and its TOC in the other scheme and back`, async () => {
      const first = await openBytes(fixtureBytes(path));
      const [other, own] = first.schemeName === "none" ? [zstd, none] : [none, zstd];
      const second = await openBytes(await rewrite(first, other));
      assert.equal(kernelsDigest(await readAll(second)), expected.kernels_digest);
      assert.deepEqual(second.findings, []);
      const third = await openBytes(await rewrite(second, own, EXACT));
      assert.equal(kernelsDigest(await readAll(third)), expected.kernels_digest);
      const facts = (archive: typeof first): unknown => [
        archive.groupName,
        archive.family,
        archive.targets,
        archive.schemeName,
        [...archive.entries].map((entry) => [entry.id, entry.originalSize, entry.fields()]),
      ];
      assert.deepEqual(facts(third), facts(first));
      assert.deepEqual([...third.toc.presentKeys], [...first.toc.presentKeys]);
    });
  }

  it("by zstd-per-kernel keeps the layout that ROCm's tool writes", async () => {
    for (const [path] of ofRocm.filter(([one]) => one.startsWith("D/ok/zstd_"))) {
      const first = await openBytes(fixtureBytes(path));
      const again = await openBytes(await rewrite(first, zstd, EXACT));
      const plain = (archive: typeof first): object => ({
        ...(decode(archive.toc.bytes, { useBigInt64: true }) as object),
        zstd_size: 0,
      });
      assert.deepEqual(plain(again), plain(first), path);
    }
  });
});

describe("what a rewrite does not know", () => {
  const kernel = sampleKernel(1, 500);
  const metadata = map(
    ["big", 2n ** 64n - 1n],
    ["small", -(2n ** 63n)],
    ["above", 2n ** 53n + 1n],
    ["float one", raw("cb3ff0000000000000")],
    ["float 32", raw("ca3fc00000")],
    ["wide int", raw("d30000000000000001")],
    ["bin", new Uint8Array([0, 255])],
    ["ext", raw("c7032a010203")],
    ["time", raw("d6ff00000000")],
    ["nested", map([1, map([null, [[], map(), null, true, ""]])], [2, 3])],
    ["long str", raw("d903616263")],
  );
  const bytes = noneArchive([kernel], {
    entries: map(["a.so#0", map(["gfx942", entryOf(0, 500, [["metadata", metadata]])])]),
    toc: [
      ["later", metadata],
      ["zz", raw("cb3ff0000000000000")],
    ],
  });

  it("is carried along byte for byte, in the TOC and in entries, through both schemes", async () => {
    const first = await openBytes(bytes);
    const second = await openBytes(await rewrite(first, zstd));
    const third = await openBytes(await rewrite(second, none, EXACT));
    for (const archive of [second, third]) {
      assert.deepEqual(carriedFields(archive), carriedFields(first));
      assert.deepEqual([...archive.entries][0]?.encodedFields(), [...first.entries][0]?.encodedFields());
    }
    assert.deepEqual(
      carriedFields(first).map(({ name }) => name),
      ["later", "zz"],
    );
    assert.ok(Buffer.from(third.toc.bytes).equals(first.toc.bytes), "the same TOC as at first");
  });

  it("is decoded with value and type", async () => {
    const archive = await openBytes(bytes);
    const later = archive.field("later");
    assert.ok(later instanceof Map);
    assert.equal(later.get("big"), 2n ** 64n - 1n);
    assert.equal(later.get("small"), -(2n ** 63n));
    assert.equal(later.get("above"), 2n ** 53n + 1n);
    assert.deepEqual(later.get("float one"), new MessagePackFloat(1));
    assert.equal(later.get("float 32"), 1.5);
    assert.equal(later.get("wide int"), 1);
    assert.deepEqual(later.get("bin"), new Uint8Array([0, 255]));
    assert.deepEqual(later.get("ext"), new MessagePackExtension(42, new Uint8Array([1, 2, 3])));
    assert.deepEqual(later.get("time"), new MessagePackExtension(-1, new Uint8Array(4)));
    assert.equal(archive.field("nothing"), undefined);
  });

  it("gives way where the writer makes the same field anew", async () => {
    const archive = await openBytes(bytes);
    const carried = ["toc", "group_name", "zstd_offset", "kernel_hashes", "later", "later"];

    const written = await writeToMemory(
      [
        kernelToWrite(kernel, {
          binaryKey: "a.so#0",
          target: "gfx942",
          fields: ["ordinal", "type", "original_size", "x", "x"].map((name) => ({
            name,
            value: Uint8Array.of(0xa1, 0x41),
          })),
        }),
      ],
      { scheme: zstd, carriedFields: carried.map((name) => ({ name, value: Uint8Array.of(0xc0) })) },
    );
    const again = await openBytes(written.bytes);
    assert.deepEqual(again.findings, []);
    assert.equal(again.field("later"), null);
    assert.equal(again.field("zstd_offset"), 64);
    assert.deepEqual(await again.readKernel("a.so#0", "gfx942", { checkHash: true }), kernel);
    const [entry] = again.entries;
    assert.deepEqual([entry?.ordinal, entry?.originalSize], [0, 500]);
    assert.deepEqual(
      [...(entry?.fields() ?? [])],
      [
        ["type", "A"],
        ["x", "A"],
      ],
    );
    assert.equal(archive.groupName, again.groupName);
  });
});
