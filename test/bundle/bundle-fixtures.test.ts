import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBundleHash } from "../../src/bundle/compressed-bundle.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { scanAll } from "./bundle-builder.ts";
import { type ExpectedFile, fixtureBytes, fixturesOf, sha256 } from "./host-fixtures.ts";

const bundles = fixturesOf("bundle");

for (const [name, expected] of bundles.filter(([, file]) => file.expect === "ok")) {
  test(`${name} is read as it should be`, async () => {
    const scanned = await scanAll(fixtureBytes(name));
    await assertBundles(scanned.bundles, expected);
  });
}

async function assertBundles(
  found: Awaited<ReturnType<typeof scanAll>>["bundles"],
  expected: ExpectedFile,
): Promise<void> {
  assert.equal(found.length, expected.bundles?.length);
  for (const [index, bundle] of found.entries()) {
    const right = expected.bundles?.[index] ?? assert.fail();
    assert.equal(bundle.index, index);
    assert.deepEqual(
      [bundle.offset, bundle.length, bundle.container],
      [right.offset, right.length, right.container],
    );
    if (right.ccob) {
      const { hash_ok, ...header } = right.ccob;
      assert.deepEqual(
        {
          version: bundle.compression?.version,
          method_name: bundle.compression?.method,
          header_size: bundle.compression?.headerSize,
          total_size: bundle.compression?.totalSize ?? null,
          uncompressed_size: bundle.compression?.uncompressedSize,
          hash: bundle.compression?.hash,
        },
        {
          version: header.version,
          method_name: header.method_name,
          header_size: header.header_size,
          total_size: header.total_size,
          uncompressed_size: header.uncompressed_size,
          hash: header.hash,
        },
      );
      assert.equal(
        (await checkBundleHash(bundle, nodeCodecs))?.code,
        hash_ok ? undefined : "BUNDLE_HASH_MISMATCH",
      );
    }
    assert.equal(bundle.entries.length, right.entries.length);
    for (const [position, entry] of bundle.entries.entries()) {
      const { triple, arch, offset, size, sha256: digest } = right.entries[position] ?? assert.fail();
      assert.deepEqual(
        [entry.id.text, entry.id.target ?? null, entry.offset, entry.size],
        [triple, arch, offset, size],
      );
      assert.equal(sha256(await bundle.readEntry(entry)), digest);
    }
  }
}

const ODD: Readonly<Record<string, readonly string[]>> = {
  "B/false_magic/plain_tail_garbage.hipfb": ["TRAILING_BYTES"],
  "B/ok/ccob_v2_hash_wrong.hipfb": ["BUNDLE_HASH_MISMATCH"],
  "B/ok/plain_duplicate_triple.hipfb": ["DUPLICATE_ENTRY_ID"],
  "B/ok/plain_empty_device_entry.hipfb": ["EMPTY_ENTRY"],
};

test("only the odd ones of the good bundles have findings", async () => {
  for (const [name] of bundles.filter(([, file]) => file.expect === "ok")) {
    const { findings } = await scanAll(fixtureBytes(name));
    assert.deepEqual(
      findings.map(({ code }) => code),
      ODD[name] ?? [],
      name,
    );
  }
});

const ENTRY = "bundle[0].entries[1] (hipv4-amdgcn-amd-amdhsa--gfx1100)";
const DAMAGED: Readonly<Record<string, readonly [code: string, field: string]>> = {
  ccob_content_is_elf: ["NOT_A_BUNDLE", "bundle[0].content"],
  ccob_cut_20: ["TRUNCATED", "bundle[0].hash"],
  ccob_cut_6: ["TRUNCATED", "bundle[0].method"],
  ccob_frame_magic_damaged: ["DECOMPRESSION_FAILED", "bundle[0].content: zstd frame magic"],
  ccob_in_ccob: ["NOT_A_BUNDLE", "bundle[0].content"],
  ccob_inner_entry_past_end: ["TRUNCATED", "bundle[0].entries[1] (hipv4-amdgcn-amd-amdhsa--gfx942).size"],
  ccob_method_7: ["UNSUPPORTED_METHOD", "bundle[0].method"],
  ccob_method_zlib_but_zstd: ["DECOMPRESSION_FAILED", "bundle[0].content"],
  ccob_no_payload: ["TRUNCATED", "bundle[0].content: zstd frame magic"],
  ccob_v0: ["UNSUPPORTED_VERSION", "bundle[0].version"],
  ccob_v1_cut_half: ["TRUNCATED", "bundle[0].content: zstd block"],
  ccob_v2_bomb_lies_4096: ["DECOMPRESSION_FAILED", "bundle[0].content"],
  ccob_v2_cut_half: ["TRUNCATED", "bundle[0].totalSize"],
  ccob_v2_total_cuts_frame: ["TRUNCATED", "bundle[0].content: zstd block"],
  ccob_v2_total_larger: ["TRUNCATED", "bundle[0].totalSize"],
  ccob_v2_total_small: ["SIZE_MISMATCH", "bundle[0].totalSize"],
  ccob_v2_total_zero: ["SIZE_MISMATCH", "bundle[0].totalSize"],
  ccob_v2_usize_larger: ["SIZE_MISMATCH", "bundle[0].uncompressedSize"],
  ccob_v2_usize_smaller: ["SIZE_MISMATCH", "bundle[0].uncompressedSize"],
  ccob_v3_cut_28: ["TRUNCATED", "bundle[0].hash"],
  ccob_v3_total_max: ["TRUNCATED", "bundle[0].totalSize"],
  ccob_v3_usize_absurd: ["LIMIT_EXCEEDED", "bundle[0].uncompressedSize"],
  ccob_v4: ["UNSUPPORTED_VERSION", "bundle[0].version"],
  empty: ["EMPTY_FILE", "bundle[0]"],
  plain_count_huge: ["COUNT_TOO_LARGE", "bundle[0].entry count"],
  plain_count_too_many: ["MALFORMED_TEXT", "bundle[0].entries[2].idLength"],
  plain_cut_10: ["TRUNCATED", "bundle[0].magic"],
  plain_cut_24: ["TRUNCATED", "bundle[0].entry count"],
  plain_cut_28: ["TRUNCATED", "bundle[0].entry count"],
  plain_cut_4096: ["TRUNCATED", `${ENTRY}.size`],
  plain_cut_45: ["TRUNCATED", "bundle[0].entry count"],
  plain_cut_70: ["TRUNCATED", "bundle[0].entry count"],
  plain_cut_minus1: ["TRUNCATED", `${ENTRY}.size`],
  plain_offset_past_end: ["OUT_OF_BOUNDS", `${ENTRY}.offset`],
  plain_offset_size_wraps: ["OUT_OF_BOUNDS", `${ENTRY}.offset`],
  plain_payload_over_header: ["OVERLAP", `${ENTRY}.offset`],
  plain_size_past_end: ["TRUNCATED", `${ENTRY}.size`],
  plain_triple_len_huge: ["OUT_OF_BOUNDS", "bundle[0].entries[1].idLength"],
  plain_triple_len_minus1: ["OUT_OF_BOUNDS", "bundle[0].entries[0].idLength"],
  plain_triple_not_utf8: ["MALFORMED_TEXT", "bundle[0].entries[1].id"],
  text: ["BAD_MAGIC", "bundle[0].magic"],
  zeros_4096: ["BAD_MAGIC", "bundle[0].magic"],
};

test("every damaged bundle is in the table", () => {
  const names = bundles.filter(([, file]) => file.expect === "error").map(([name]) => shortName(name));
  assert.deepEqual(names.sort(), Object.keys(DAMAGED).sort());
});

for (const [short, [code, field]] of Object.entries(DAMAGED)) {
  test(`${short} is refused: ${code} at ${field}`, async () => {
    const name = `B/bad/${short}.hipfb`;
    await assert.rejects(scanAll(fixtureBytes(name)), (error) => {
      assert.ok(isKpackError(error), String(error));
      assert.deepEqual([error.code, error.field], [code, field]);
      assert.equal(error.file, "memory");
      assert.ok(error.offset !== undefined);
      return true;
    });
  });
}

function shortName(name: string): string {
  return name.replace(/^.*\/|\.hipfb$/g, "");
}
