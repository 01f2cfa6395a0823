import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ListedEntry, listFile } from "../../src/operations/list.node.ts";
import { describeArchive } from "../../src/operations/info.node.ts";
import { expectedArchives, fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";

describe("list", () => {
  it("shows both payloads of an id that stands twice in one bundle, and says so", async () => {
    const listing = await listFile(fixturePath("B/ok/plain_duplicate_triple.hipfb"));
    assert.deepEqual(
      listing.entries.map(({ target }) => target),
      ["gfx906", "gfx906"],
    );
    assert.deepEqual(
      listing.findings.map(({ severity, code }) => `${severity} ${code}`),
      ["warning DUPLICATE_ENTRY_ID"],
    );
  });

  it("tells the kinds of files apart, and refuses what has nothing for GPUs", async () => {
    const kinds = {
      "C/libfx_multi3.so": "fat-binary",
      "C/fxw_multi.exe": "fat-binary",
      "B/ok/ccob_v3_zstd_4.hipfb": "bundle",
      "A/hsaco/vadd_gfx942.hsaco": "code-object",
      "D/ok/none_small.kpack": "archive",
    };
    for (const [name, kind] of Object.entries(kinds))
      assert.equal((await listFile(fixturePath(name))).kind, kind);
    await kpackError(async () => await listFile(fixturePath("B/bad/text.hipfb")), "NO_DEVICE_CODE");
    await kpackError(async () => await listFile(fixturePath("none at all")), "READ_FAILED");
    await kpackError(async () => await listFile(fixturePath("A")), "READ_FAILED");
  });

  it("chooses by target", async () => {
    const path = fixturePath("D/ok/zstd_features.kpack");
    const all = (await listFile(path)).entries.map(({ target }) => target);
    for (const target of new Set(all)) {
      const { entries } = await listFile(path, { targets: [target] });
      const isExact = target.includes(":");
      assert.deepEqual(
        entries.map((entry) => entry.target),
        all.filter((one) => (isExact ? one === target : one.split(":")[0] === target)),
      );
    }
    assert.deepEqual((await listFile(path, { targets: ["gfx1"] })).entries, []);
  });
});

describe("info and list", () => {
  it("agree with the right answers on every good archive", async () => {
    for (const [name, expected] of expectedArchives.filter(([, { expect }]) => expect === "ok")) {
      const { archive } = expected;
      assert.ok(archive, name);
      const info = await describeArchive(fixturePath(name));
      assert.deepEqual(
        [info.groupName, info.family, info.scheme, info.entryCount, info.fileSize],
        [
          archive.group_name,
          archive.gfx_arch_family,
          archive.compression_scheme,
          archive.kernels,
          expected.size,
        ],
        name,
      );
      const listing = await listFile(fixturePath(name));
      assert.equal(listing.kind, "archive");
      assert.equal(listing.entries.length, archive.kernels);
      for (const kernel of expected.kernels ?? []) {
        const entry: ListedEntry | undefined = listing.entries.find(
          (one) => one.binaryKey === kernel.binary && one.target === kernel.arch,
        );
        assert.equal(entry?.ordinal, kernel.ordinal, name);
        if (entry.originalSize !== undefined) assert.equal(entry.originalSize, kernel.size, name);
      }
    }
  });
});
