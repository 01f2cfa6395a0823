import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readFatBinary } from "../../src/host/fat-binary.ts";
import { readHipkMetadata } from "../../src/host/hipk-metadata.ts";
import { diagnose } from "../../src/operations/doctor/doctor.node.ts";
import { resolveBinary } from "../../src/operations/resolve.node.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { buildHost } from "../support/host-builder.ts";
import { archiveBytes, keys, TemporaryTree } from "../support/trees.ts";

const HOST = { kernelName: "a.so", searchPaths: ["@GFXARCH@.kpack"] };
/** Where the metadata stands, and so where wrappers should point. */
const METADATA = 0x401000;

/** Lets wrappers point elsewhere: to the section of the wrappers, so many bytes from its start. */
function repoint(bytes: Uint8Array, skips: Readonly<Record<number, number>>): Uint8Array {
  const view = new DataView(bytes.buffer);
  const start = Buffer.from(bytes).indexOf("HIPK");
  for (const [index, skip] of Object.entries(skips)) {
    view.setBigUint64(start + Number(index) * 24 + 8, BigInt(0x400000 + start + skip), true);
  }
  return bytes;
}

/** Fields of the findings about lost metadata, and where the metadata is thought to be. */
async function lostOf(bytes: Uint8Array): Promise<{ readonly lost: unknown[]; readonly at: unknown }> {
  const lost: unknown[] = [];
  const binary = await readFatBinary(memorySource(bytes), {
    codecs: nodeCodecs,
    onFinding: ({ code, field }) => code === "OUT_OF_BOUNDS" && lost.push(field),
  });
  return { lost, at: binary.metadata?.offset };
}

test("a wrapper that points to something else in the file points to no metadata", async () => {
  const at = METADATA - 0x400000;
  const field = (index: number): string => `wrapper[${index}].pointer`;
  const host = (): Uint8Array => buildHost({ ...HOST, wrappers: 3 });
  assert.deepEqual(await lostOf(host()), { lost: [], at });
  assert.deepEqual(await lostOf(repoint(host(), { 1: 0 })), { lost: [field(1)], at });
  // The metadata is found though the first wrappers lead elsewhere, or all do.
  assert.deepEqual(await lostOf(repoint(host(), { 0: 0, 1: 8 })), { lost: [field(0), field(1)], at });
  assert.deepEqual(await lostOf(repoint(host(), { 0: 0, 1: 8, 2: 0 })), {
    lost: [field(0), field(1), field(2)],
    at,
  });
  // More places than are looked at: the one of most wrappers is among them.
  const many = buildHost({ ...HOST, wrappers: 300 });
  const skips = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [index, index]));
  const { lost, at: found } = await lostOf(repoint(many, skips));
  assert.equal(lost.length, 200);
  assert.equal(found, at);
});

test("metadata that is damaged where it belongs is said once, and not of each wrapper", async () => {
  assert.deepEqual((await lostOf(buildHost({ metadata: { kernel_name: "a" }, wrappers: 2 }))).lost, []);
});

test("metadata is read wherever it stands, and however large it is", async () => {
  const kernelName = "n".repeat(100_000);
  const source = memorySource(buildHost({ ...HOST, kernelName, wrappers: 1 }));
  const findings: unknown[] = [];
  const binary = await readFatBinary(source, {
    codecs: nodeCodecs,
    onFinding: (finding) => findings.push(finding),
  });
  assert.deepEqual(findings, []);
  assert.equal((await readHipkMetadata(source, binary)).kernelName, kernelName);
});

test("resolve gives error 12 for that wrapper alone, and doctor names it", async () => {
  using tree = new TemporaryTree();
  for (const [lost, kept] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const path = tree.write("a.so", repoint(buildHost({ ...HOST, wrappers: 2 }), { [lost]: 0 }));
    tree.write("gfx1100.kpack", await archiveBytes({ targets: { gfx1100: keys("a.so", 2) } }));
    const { wrappers } = await resolveBinary(path, { isas: ["gfx1100"] });
    assert.equal(wrappers[lost]?.answer.failure?.status.number, 12);
    assert.equal(wrappers[kept]?.answer.kernel?.ordinal, kept);
    const { findings } = await diagnose([tree.path]);
    const [finding] = findings.filter(({ code }) => code === "KP104");
    assert.deepEqual(finding?.evidence, [`wrapper[${lost}].pointer`]);
  }
});
