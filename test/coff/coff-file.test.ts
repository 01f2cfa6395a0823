import assert from "node:assert/strict";
import { test } from "node:test";
import { readCoffFile } from "../../src/coff/coff-file.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { fixture, fixtureBytes, patched } from "../bundle/host-fixtures.ts";
import { buildCoffObject } from "./coff-builder.ts";

async function fatSection(
  bytes: Uint8Array,
): Promise<{ readonly headerOffset: number; readonly presentSize: number }> {
  const coff = await readCoffFile(memorySource(bytes));
  return coff.sections.find(({ name }) => name.startsWith(".hip_fat")) ?? assert.fail();
}

test("an image has its base and its sections", async () => {
  const coff = await readCoffFile(fixture("C/fxw_single.dll"));
  assert.equal(coff.isObject, false);
  assert.equal(coff.machine, 0x8664);
  const section = coff.sections.find(({ name }) => name === ".hip_fat");
  assert.deepEqual(
    [section?.virtualSize, section?.rawSize, section?.rawOffset, section?.presentSize],
    [12512, 12800, 5120, 12512],
  );
});

test("the bytes present are the smaller of the two sizes", async () => {
  const bytes = fixtureBytes("C/fxw_single.dll");
  const { headerOffset } = await fatSection(bytes);
  const withRawSize = async (rawSize: number): Promise<number> =>
    (await fatSection(patched(bytes, [[headerOffset + 16, 4, rawSize]]))).presentSize;
  assert.equal(await withRawSize(0), 0);
  assert.equal(await withRawSize(512), 512);
  assert.equal(await withRawSize(12512), 12512);
});

test("an object file has long names, and no sizes in memory", async () => {
  const content = Uint8Array.of(1, 2, 3);
  for (const name of [".hip_fatbin", ".hip_fat"]) {
    const coff = await readCoffFile(memorySource(buildCoffObject(name, content)));
    assert.equal(coff.isObject, true);
    assert.deepEqual(
      coff.sections.map((section) => [section.name, section.presentSize]),
      [[name, 3]],
    );
  }
});

test("a long name that is nowhere stays as it is", async () => {
  const bytes = buildCoffObject(".hip_fatbin", new Uint8Array(4));
  const coff = await readCoffFile(memorySource(patched(bytes, [[22, 1, 0x39]]))); // "/49"
  assert.equal(coff.sections[0]?.name, "/49");
});

test("headers outside the file are refused", async () => {
  const bytes = fixtureBytes("C/fxw_single.dll");
  const at = new DataView(bytes.buffer).getUint32(60, true);
  const cases: readonly (readonly [Uint8Array, string])[] = [
    [patched(bytes, [[60, 4, 0xffffffff]]), "TRUNCATED"],
    [patched(bytes, [[at, 4, 0]]), "BAD_MAGIC"],
    [patched(bytes, [[at + 6, 2, 0xffff]]), "TRUNCATED"],
    [patched(bytes, [[at + 24, 2, 0x10b]]), "UNSUPPORTED_VERSION"],
    [bytes.subarray(0, 40), "TRUNCATED"],
  ];
  for (const [damaged, code] of cases) {
    await assert.rejects(
      readCoffFile(memorySource(damaged)),
      (error) => isKpackError(error) && error.code === code,
    );
  }
});
