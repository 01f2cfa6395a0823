import assert from "node:assert/strict";
import { test } from "node:test";
import { identifyPayload, readCodeObjectHeader } from "../../src/code-object/code-object.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { fixtureBytes, fixturesOf, patched } from "../bundle/host-fixtures.ts";

test("the compilers' code objects have the targets that llvm-readelf sees", () => {
  const files = fixturesOf("code_object");
  assert.ok(files.length > 15);
  for (const [name, expected] of files) {
    const bytes = fixtureBytes(name);
    assert.equal(identifyPayload(bytes), "code-object");
    const header = readCodeObjectHeader(bytes.subarray(0, 64), { file: name });
    assert.equal(header.machine, 224);
    assert.equal(header.osAbi, 64);
    assert.equal(header.abiVersion, expected.abi_version);
    assert.equal(header.eFlags, Number(expected.e_flags));
    assert.equal(`amdgcn-amd-amdhsa--${header.target.targetName}`, expected.target);
  }
});

test("payloads are told by their first bytes", () => {
  const bytes = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);
  assert.equal(identifyPayload(bytes()), "empty");
  assert.equal(identifyPayload(bytes(1, 2, 3)), "unknown");
  assert.equal(identifyPayload(bytes(3, 2, 0x23, 7, 0)), "spirv");
  assert.equal(identifyPayload(bytes(0x42, 0x43, 0xc0, 0xde)), "bitcode");
  assert.equal(identifyPayload(bytes(0x42, 0x43)), "unknown");
  assert.equal(identifyPayload(bytes(0x7f, 0x45, 0x4c, 0x46)), "elf-other");
  assert.equal(identifyPayload(fixtureBytes("C/libfx_single.so")), "elf-other");
  assert.equal(identifyPayload(fixtureBytes("A/genco/vadd_gfx1100.co")), "bundle");
  assert.equal(identifyPayload(fixtureBytes("A/genco/saxpy_gfx90a_compressed.co")), "compressed-bundle");
});

test("what is no code object is an error that names the field", () => {
  const good = fixtureBytes("A/hsaco/vadd_gfx942.hsaco").subarray(0, 64);
  const cases: readonly (readonly [Uint8Array, string, string])[] = [
    [good.subarray(0, 40), "TRUNCATED", "elf section header offset"],
    [patched(good, [[0, 1, 0]]), "BAD_MAGIC", "elf magic"],
    [patched(good, [[4, 1, 1]]), "UNSUPPORTED_VERSION", "elf class"],
    [patched(good, [[5, 1, 2]]), "UNSUPPORTED_VERSION", "elf data encoding"],
    [patched(good, [[18, 2, 62]]), "WRONG_TYPE", "elf machine"],
  ];
  for (const [bytes, code, field] of cases) {
    assert.throws(
      () => readCodeObjectHeader(bytes, { file: "x" }),
      (error) => isKpackError(error) && error.code === code && error.field === field && error.file === "x",
    );
  }
});
