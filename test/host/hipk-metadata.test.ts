import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readFatBinary } from "../../src/host/fat-binary.ts";
import { decodeHipkMetadata, readHipkMetadata } from "../../src/host/hipk-metadata.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { fixture, fixturesOf } from "../bundle/host-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { buildHost } from "../support/host-builder.ts";
import { concat, hex, map, pack } from "../support/raw-msgpack.ts";

const F3 = hex(
  "82b26b7061636b5f7365617263685f706174687391bb2e2e2f2e6b7061636b2f745f4047465841524348402e6b7061636bab" +
    "6b65726e656c5f6e616d65b86c69622f612e736f",
);

test("F3 is decoded, whatever follows it", () => {
  // The cases list F3 with b8, which declares 24 bytes of a text of 8.
  const bytes = concat(
    F3.subarray(0, F3.length - 9),
    hex("a8"),
    F3.subarray(F3.length - 8),
    new Uint8Array(32),
  );
  assert.deepEqual(decodeHipkMetadata(bytes), {
    kernelName: "lib/a.so",
    searchPaths: ["../.kpack/t_@GFXARCH@.kpack"],
  });
});

for (const [name] of fixturesOf("transformed")) {
  test(`${name} says where its kernels are`, async () => {
    const source = fixture(name);
    const binary = await readFatBinary(source, { codecs: nodeCodecs });
    const { kernelName, searchPaths } = await readHipkMetadata(source, binary);
    assert.equal(kernelName.split("/").at(-1), name.split("/").at(-1));
    assert.deepEqual(searchPaths, ["../.kpack/fx_@GFXARCH@.kpack"]);
  });
}

test("elements that are no text are left out", () => {
  const bytes = pack(map(["kernel_name", "a"], ["kpack_search_paths", [1, "ok"]], ["more", true]));
  assert.deepEqual(decodeHipkMetadata(bytes), { kernelName: "a", searchPaths: ["ok"] });
});

test("what the runtime calls invalid metadata is an error", async () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [map(["kernel_name", "a"], ["kpack_search_paths", []]), /kpack_search_paths/],
    [map(["kernel_name", "a"], ["kpack_search_paths", [1]]), /kpack_search_paths/],
    [map(["kernel_name", "a"], ["kpack_search_paths", "text"]), /kpack_search_paths/],
    [map(["kernel_name", "a"]), /kpack_search_paths/],
    [map(["kpack_search_paths", ["a"]]), /kernel_name/],
    [map(["kernel_name", 1], ["kpack_search_paths", ["a"]]), /kernel_name/],
    [["kernel_name"], /HIPK/],
  ];
  for (const [value, field] of cases) {
    await kpackError(async () => decodeHipkMetadata(pack(value)), undefined, field);
  }
  await kpackError(async () => decodeHipkMetadata(hex("82a1")), "COUNT_TOO_LARGE");
  await kpackError(
    async () => await readHipkMetadata(memorySource(F3), { metadata: undefined }),
    "MISSING_KEY",
  );
});

test("a binary made by the tests is converted", async () => {
  const bytes = buildHost({ kernelName: "lib/a.so", searchPaths: ["x"], wrappers: 3 });
  const source = memorySource(bytes);
  const findings: unknown[] = [];
  const binary = await readFatBinary(source, {
    codecs: nodeCodecs,
    onFinding: (finding) => findings.push(finding),
  });
  assert.equal(binary.state, "converted");
  assert.deepEqual(findings, []);
  assert.deepEqual(await readHipkMetadata(source, binary), { kernelName: "lib/a.so", searchPaths: ["x"] });
});

test("metadata whose place adds up to more than a number can hold is refused with an error of ours", async () => {
  const source = memorySource(new Uint8Array(100), "lib.so");
  // A section near the end of all numbers, and a wrapper that points into the middle of it.
  for (const offset of [101, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER + 4096]) {
    await kpackError(
      async () => await readHipkMetadata(source, { metadata: { offset, size: 8 } }),
      "OUT_OF_BOUNDS",
    );
  }
});
