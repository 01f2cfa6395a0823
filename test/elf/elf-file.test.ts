import assert from "node:assert/strict";
import { test } from "node:test";
import { readElfFile, segmentOfAddress } from "../../src/elf/elf-file.ts";
import { parseElfHeader } from "../../src/elf/elf-header.ts";
import { findRelocations } from "../../src/elf/relocations.ts";
import { readSymbol } from "../../src/elf/symbols.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { fixture, fixtureBytes, patched } from "../bundle/host-fixtures.ts";

test("sections and segments are those that the linker wrote", async () => {
  const elf = await readElfFile(fixture("C/libfx_single.so"));
  const section = elf.sections.find(({ name }) => name === ".hip_fatbin");
  assert.deepEqual(
    [section?.type, section?.flags, section?.address, section?.offset, section?.size, section?.alignment],
    [1, 2n, 4096, 4096, 16736, 4096],
  );
  assert.equal(elf.sections[0]?.name, "");
  assert.equal(segmentOfAddress(elf, 4096)?.offset, 0);
  assert.equal(segmentOfAddress(elf, 2 ** 40), undefined);
});

test("numbers that do not fit into the header stand in section 0", async () => {
  const bytes = fixtureBytes("C/libfx_single.so");
  const plain = await readElfFile(memorySource(bytes));
  const { sectionHeaderOffset, sectionHeaderCount, sectionNameIndex, programHeaderCount } =
    parseElfHeader(bytes);
  const extended = patched(bytes, [
    [56, 2, 0xffff],
    [60, 2, 0],
    [62, 2, 0xffff],
    [sectionHeaderOffset + 32, 8, sectionHeaderCount],
    [sectionHeaderOffset + 40, 4, sectionNameIndex],
    [sectionHeaderOffset + 44, 4, programHeaderCount],
  ]);
  const elf = await readElfFile(memorySource(extended));
  assert.deepEqual(elf.sections.slice(1), plain.sections.slice(1));
  assert.deepEqual(elf.segments, plain.segments);
});

test("tables outside the file are refused", async () => {
  const bytes = fixtureBytes("C/libfx_single.so");
  const cases: readonly (readonly [Uint8Array, string, string])[] = [
    [patched(bytes, [[40, 8, bytes.length]]), "OUT_OF_BOUNDS", "section headers"],
    [patched(bytes, [[40, 8, 2n ** 63n]]), "OUT_OF_BOUNDS", "elf section header offset"],
    [patched(bytes, [[60, 2, 0xfffe]]), "OUT_OF_BOUNDS", "section headers"],
    [patched(bytes, [[58, 2, 8]]), "SIZE_MISMATCH", "section headers: entry size"],
    [patched(bytes, [[32, 8, bytes.length - 8]]), "OUT_OF_BOUNDS", "program headers"],
    [bytes.subarray(0, 63), "TRUNCATED", "elf section name index"],
  ];
  for (const [damaged, code, field] of cases) {
    await assert.rejects(readElfFile(memorySource(damaged, "x.so")), (error) => {
      assert.ok(isKpackError(error), String(error));
      assert.deepEqual([error.code, error.field, error.file], [code, field, "x.so"]);
      return true;
    });
  }
});

test("relocations of a section are found in every kind of table", async () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["C/libfx_single.so", ["8 4096"]],
    ["C/libfx_rdc2.so", ["1 0", "8 4096"]],
    ["C/libfx_relr.so", ["8 undefined", "8 undefined"]],
    ["C/fx_app_nopie", []],
    ["C/fx_object.o", ["1 0"]],
  ];
  for (const [name, expected] of cases) {
    const source = fixture(name);
    const elf = await readElfFile(source);
    const target = elf.sections.find((section) => section.name === ".hipFatBinSegment") ?? assert.fail(name);
    const range = { start: target.address, end: target.address + target.size, target };
    const found = await findRelocations(source, elf, range);
    assert.deepEqual(found.map(({ type, addend }) => `${type} ${addend}`).sort(), expected, name);
    for (const { section, entryOffset } of found) {
      if (entryOffset !== undefined)
        assert.ok(entryOffset >= section.offset && entryOffset < section.offset + section.size);
    }
  }
});

test("a symbol is read by its index", async () => {
  const source = fixture("C/libfx_rdc2.so");
  const elf = await readElfFile(source);
  const table = elf.sections.find(({ name }) => name === ".dynsym") ?? assert.fail();
  const symbol = await readSymbol(source, table, 0xf);
  assert.equal(symbol.value, 0x1000n);
  assert.equal(elf.sections[symbol.sectionIndex]?.name, ".hip_fatbin");
  await assert.rejects(readSymbol(source, table, 1e6), (error) => isKpackError(error, "OUT_OF_BOUNDS"));
});
