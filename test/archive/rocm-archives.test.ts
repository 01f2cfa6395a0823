import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openArchive, openFile, splitBinaryKey } from "../../src/node.ts";
import { toJson } from "../../src/msgpack/message-pack-decode.ts";
import { expectedArchives, fixtureBytes, fixturePath } from "../support/archive-fixtures.ts";
import { kernelsDigest, openBytes, readAll, sha256 } from "../support/kernels.ts";

const right = expectedArchives.filter(([, expected]) => expected.expect === "ok");

describe("archives of ROCm's tools, and odd but valid ones", () => {
  it("are all there", () => {
    assert.equal(right.length, 35);
    for (const [path, expected] of expectedArchives)
      assert.equal(sha256(fixtureBytes(path)), expected.sha256, path);
  });

  for (const [path, expected] of right) {
    it(`${path}: the TOC's facts and every kernel are those of the independent reader`, async () => {
      await using archive = await openArchive(await openFile(fixturePath(path)));
      const facts = expected.archive;
      assert.ok(facts && expected.kernels_digest);
      assert.equal(archive.tocOffset, facts.toc_offset);
      assert.equal(archive.toc.formatVersion, facts.format_version);
      assert.equal(archive.groupName, facts.group_name);
      assert.equal(archive.family, facts.gfx_arch_family);
      assert.deepEqual(archive.targets, facts.gfx_arches);
      assert.equal(archive.schemeName, facts.compression_scheme);
      assert.equal(archive.entries.length, facts.kernels);
      assert.equal(new Set([...archive.entries].map((entry) => entry.binaryKey)).size, facts.binaries);
      assert.equal(await archive.decompressor.kernelCount(), facts.blobs ?? facts.frames);
      assert.equal(archive.field("zstd_offset"), facts.zstd_offset);
      assert.equal(archive.field("zstd_size"), facts.zstd_size);
      const kernels = await readAll(archive);
      assert.equal(kernelsDigest(kernels), expected.kernels_digest);
      for (const wanted of expected.kernels ?? expected.kernels_sample ?? []) {
        const entry = archive.find(wanted.binary, wanted.arch);
        assert.equal(entry?.ordinal, wanted.ordinal);
        const bytes = await archive.readKernel(wanted.binary, wanted.arch);
        assert.equal(bytes.length, wanted.size);
        assert.equal(sha256(bytes), wanted.sha256, `${wanted.binary} ${wanted.arch}`);
      }
    });
  }

  it("one after the other with any number of jobs give the same kernels", async () => {
    for (const path of ["D/ok/zstd_small.kpack", "D/ok/none_small.kpack"]) {
      await using archive = await openBytes(fixtureBytes(path));
      const digests = new Set<string>();
      for (const jobs of [1, 2, 7, 100]) {
        const lines: string[] = [];
        for await (const { entry, bytes } of archive.readKernels({ jobs }))
          lines.push(`${entry.id} ${sha256(bytes)}`);
        digests.add(lines.join("\n"));
      }
      assert.equal(digests.size, 1);
    }
  });

  it("keep their entries' metadata with every type", async () => {
    for (const [path, { metadata }] of right) {
      if (!metadata) continue;
      await using archive = await openBytes(fixtureBytes(path));
      const found: Record<string, unknown> = {};
      for (const entry of archive.entries) {
        assert.equal(entry.fields().get("type"), "hsaco");
        const value = entry.fields().get("metadata");
        if (value !== undefined) found[`${entry.binaryKey}\t${entry.target}`] = toJson(value);
      }
      assert.deepEqual(found, JSON.parse(JSON.stringify(metadata), reviveMetadata), path);
    }
  });

  it("name their kernels by key and target; what is not there is said so", async () => {
    await using archive = await openBytes(fixtureBytes("D/ok/zstd_unicode.kpack"));
    const composed = await archive.readKernel("lib/\u00e9 combining.so#0", "gfx1100");
    const decomposed = await archive.readKernel("lib/e\u0301 combining.so#0", "gfx1100");
    assert.equal(composed.length, 45);
    assert.equal(decomposed.length, 50);
    await assert.rejects(archive.readKernel("lib/\u00e9 combining.so#0", "gfx942"), {
      name: "NotFoundError",
      code: "KERNEL_NOT_FOUND",
      expected: "one of the targets gfx1100",
    });
    await assert.rejects(archive.readKernel("nowhere", "gfx942"), {
      code: "KERNEL_NOT_FOUND",
      hint: /no binary nowhere.*4 keys.*gfx1100, gfx942/,
    });
    assert.equal(archive.find("lib/e\u0301 combining.so", "gfx1100"), undefined);
  });

  it("may have keys with and without an index", () => {
    assert.deepEqual(splitBinaryKey("lib/a.so#12"), { path: "lib/a.so", index: 12 });
    assert.deepEqual(splitBinaryKey("lib/a.so"), { path: "lib/a.so", index: undefined });
    assert.deepEqual(splitBinaryKey("a#1#2"), { path: "a#1", index: 2 });
    assert.deepEqual(splitBinaryKey("a\n#3"), { path: "a\n", index: 3 });
    assert.deepEqual(splitBinaryKey("a#x"), { path: "a#x", index: undefined });
  });
});

/** EXPECTED.json writes big numbers as hexadecimal text and bytes as `{"$hex": …}`. */
function reviveMetadata(_key: string, value: unknown): unknown {
  if (typeof value === "string" && /^0x[0-9a-f]+$/.test(value)) return BigInt(value).toString();
  if (typeof value === "object" && value !== null && "$hex" in value) return value.$hex;
  return value;
}
