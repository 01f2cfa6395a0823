import assert from "node:assert/strict";
import { test } from "node:test";
import { type FileKind, detectFile } from "../../src/host/detect.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { fixture, fixtureBytes, patched } from "../bundle/host-fixtures.ts";
import { buildCoffObject } from "../coff/coff-builder.ts";

test("files are told by their bytes", async () => {
  const cases: readonly (readonly [string, FileKind])[] = [
    ["A/hsaco/vadd_gfx942.hsaco", "code-object"],
    ["A/genco/vadd_gfx1100.co", "bundle"],
    ["A/genco/saxpy_gfx90a_compressed.co", "compressed-bundle"],
    ["C/libfx_single.so", "elf-host"],
    ["C/fx_object.o", "elf-host"],
    ["C/fxw_single.dll", "coff-host"],
    ["C/fxw_multi.exe", "coff-host"],
    ["B/bad/text.hipfb", "other"],
    ["B/bad/empty.hipfb", "other"],
    ["B/bad/zeros_4096.hipfb", "other"],
  ];
  for (const [name, kind] of cases) assert.equal(await detectFile(fixture(name)), kind, name);
});

test("an archive, an object file and things that only look like something", async () => {
  const kindOf = (bytes: Uint8Array): Promise<FileKind> => detectFile(memorySource(bytes));
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  assert.equal(await kindOf(text("KPAK0123456789")), "kpack");
  assert.equal(await kindOf(buildCoffObject(".hip_fatbin", new Uint8Array(8))), "coff-host");
  assert.equal(await kindOf(text("MZ is how this text begins")), "other");
  assert.equal(await kindOf(patched(fixtureBytes("C/fxw_single.dll"), [[60, 4, 0x7fffffff]])), "other");
  assert.equal(await kindOf(fixtureBytes("C/libfx_single.so").subarray(0, 30)), "other");
  assert.equal(await kindOf(patched(fixtureBytes("C/libfx_single.so"), [[4, 1, 1]])), "other");
});
