import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readElfFile } from "../../src/elf/elf-file.ts";
import { findRelocations } from "../../src/elf/relocations.ts";
import { isKpackError, type KpackErrorCode } from "../../src/errors/errors.ts";
import type { Finding } from "../../src/errors/finding.ts";
import { type FatBinary, readFatBinary } from "../../src/host/fat-binary.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { buildBundle } from "../bundle/bundle-builder.ts";
import { fixtureBytes, fixturesOf, patched, sha256 } from "../bundle/host-fixtures.ts";
import { buildCoffObject } from "../coff/coff-builder.ts";

const HIPF = 0x48495046;
const HIPK = 0x4b504948;
const NOBITS = 8;

async function read(bytes: Uint8Array): Promise<FatBinary & { readonly findings: readonly Finding[] }> {
  const findings: Finding[] = [];
  const onFinding = (finding: Finding): number => findings.push(finding);
  return {
    ...(await readFatBinary(memorySource(bytes, "lib.so"), { codecs: nodeCodecs, onFinding })),
    findings,
  };
}

async function codesOf(bytes: Uint8Array): Promise<readonly string[]> {
  return (await read(bytes)).findings.map(({ code, field }) => `${code} ${field}`);
}

function refusedAs(code: KpackErrorCode, field: string): (error: unknown) => true {
  return (error) => {
    assert.ok(isKpackError(error), String(error));
    assert.deepEqual([error.code, error.field, error.file], [code, field, "lib.so"]);
    return true;
  };
}

/** Offset in the file of a section's header, and the section. */
async function sectionOf(
  bytes: Uint8Array,
  name: string,
): Promise<{ readonly header: number; readonly offset: number }> {
  const elf = await readElfFile(memorySource(bytes));
  const section = elf.sections.find((candidate) => candidate.name === name) ?? assert.fail(name);
  return { header: elf.header.sectionHeaderOffset + section.index * 64, offset: section.offset };
}

/** Offsets in the file of the addends of the wrappers' pointers. */
async function addendsOf(bytes: Uint8Array): Promise<readonly number[]> {
  const source = memorySource(bytes);
  const elf = await readElfFile(source);
  const target = elf.sections.find(({ name }) => name === ".hipFatBinSegment") ?? assert.fail();
  const range = { start: target.address, end: target.address + target.size, target };
  const found = [...(await findRelocations(source, elf, range))].sort((a, b) => a.place - b.place);
  return found.map(({ entryOffset }) => (entryOffset ?? assert.fail()) + 16);
}

for (const [name, expected] of fixturesOf("host_binary")) {
  test(`${name} has the bundles and wrappers that it should`, async () => {
    const fat = await read(fixtureBytes(name));
    assert.equal(fat.format, expected.format);
    assert.equal(fat.state, expected.expect === "not_fat" ? "none" : "fat");
    assert.deepEqual(fat.findings, []);
    const start = fat.bundleSections[0]?.fileOffset ?? 0;
    assert.equal(fat.bundles.length, expected.bundles?.length ?? 0);
    for (const [index, bundle] of fat.bundles.entries()) {
      const right = expected.bundles?.[index] ?? assert.fail();
      assert.deepEqual(
        [bundle.offset - start, bundle.length, bundle.container],
        [right.offset, right.length, right.container],
      );
      for (const [position, entry] of bundle.entries.entries()) {
        assert.equal(sha256(await bundle.readEntry(entry)), right.entries[position]?.sha256);
        assert.equal(entry.id.target ?? null, right.entries[position]?.arch);
      }
    }
    for (const [index, right] of (expected.wrappers ?? []).entries()) {
      const wrapper = fat.wrappers[index] ?? assert.fail();
      assert.deepEqual(
        [wrapper.index, wrapper.magic, wrapper.fileOffset, wrapper.bundleIndex, wrapper.relocation ?? null],
        [index, "HIPF", right.file_offset, right.bundle, right.reloc ?? null],
      );
      assert.equal(wrapper.pointsTo, right.target_vaddr ?? right.pointer_in_file);
    }
  });
}

for (const [name, expected] of fixturesOf("transformed")) {
  test(`${name} is converted`, async () => {
    const fat = await read(fixtureBytes(name));
    assert.equal(fat.state, "converted");
    assert.deepEqual(fat.bundles, []);
    assert.deepEqual(
      fat.wrappers.map(({ magic, reserved1 }) => [magic, reserved1]),
      fat.wrappers.map(({ index }) => ["HIPK", index]),
    );
    assert.equal(fat.metadata?.offset, expected.ref_section?.offset);
    // ROCm's converter loses the pointers of these two.
    const isLost = name.endsWith("fx_app_nopie") || name.endsWith("libfx_relr.so");
    assert.deepEqual(
      fat.findings.map(({ severity, code }) => `${severity} ${code}`),
      isLost ? fat.wrappers.map(() => "error OUT_OF_BOUNDS") : [],
    );
  });
}

test("a wrapper belongs to the bundle that it points to, wherever that is", async () => {
  const bytes = fixtureBytes("C/libfx_multi3.so");
  const [first = 0, , third = 0] = await addendsOf(bytes);
  const view = new DataView(bytes.buffer);
  const swapped = patched(bytes, [
    [first, 8, view.getBigUint64(third, true)],
    [third, 8, view.getBigUint64(first, true)],
  ]);
  const fat = await read(swapped);
  assert.deepEqual(
    fat.wrappers.map(({ bundleIndex }) => bundleIndex),
    [2, 1, 0],
  );
  assert.deepEqual(fat.findings, []);
});

test("several wrappers may point to one bundle", async () => {
  const fat = await read(fixtureBytes("C/libfx_rdc2.so"));
  assert.deepEqual(
    fat.wrappers.map(({ bundleIndex, relocation }) => [bundleIndex, relocation]),
    [
      [0, "R_X86_64_64"],
      [0, "R_X86_64_RELATIVE"],
    ],
  );
});

test("a wrapper that points elsewhere, and the bundle that it leaves alone, are found", async () => {
  const bytes = fixtureBytes("C/libfx_multi3.so");
  const [, second = 0] = await addendsOf(bytes);
  assert.deepEqual(await codesOf(patched(bytes, [[second, 8, 32776]])), [
    "WRAPPER_WITHOUT_BUNDLE wrapper[1].pointer",
    "BUNDLE_WITHOUT_WRAPPER bundle[1]",
  ]);
});

test("half converted binaries are refused", async () => {
  const fatBytes = fixtureBytes("C/libfx_multi3.so");
  const { offset: wrappers } = await sectionOf(fatBytes, ".hipFatBinSegment");
  await assert.rejects(
    read(patched(fatBytes, [[wrappers + 48, 4, HIPK]])),
    refusedAs("HALF_CONVERTED", "wrapper[2].magic"),
  );
  const converted = fixtureBytes("E/lib/libfx_multi3.so");
  const { offset } = await sectionOf(converted, ".hipFatBinSegment");
  await assert.rejects(
    read(patched(converted, [[offset + 24, 4, HIPF]])),
    refusedAs("HALF_CONVERTED", "wrapper[1].magic"),
  );
  const all = [0, 24, 48].map((at) => [offset + at, 4, HIPF] as const);
  await assert.rejects(read(patched(converted, all)), refusedAs("HALF_CONVERTED", "wrapper[0].magic"));
  const { header } = await sectionOf(fatBytes, ".hip_fatbin");
  await assert.rejects(
    read(patched(fatBytes, [[header + 4, 4, NOBITS]])),
    refusedAs("HALF_CONVERTED", "wrapper[0].magic"),
  );
});

test("wrappers with another magic or version are refused", async () => {
  const bytes = fixtureBytes("C/libfx_multi3.so");
  const { offset } = await sectionOf(bytes, ".hipFatBinSegment");
  await assert.rejects(
    read(patched(bytes, [[offset + 24, 4, 0x12345678]])),
    refusedAs("BAD_MAGIC", "wrapper[1].magic"),
  );
  await assert.rejects(
    read(patched(bytes, [[offset + 28, 4, 2]])),
    refusedAs("UNSUPPORTED_VERSION", "wrapper[1].version"),
  );
});

test("a remainder and all-zero wrappers are found, and the others keep their index", async () => {
  const bytes = fixtureBytes("C/libfx_multi3.so");
  const { header, offset } = await sectionOf(bytes, ".hipFatBinSegment");
  const cut = await read(patched(bytes, [[header + 32, 8, 60]]));
  assert.equal(cut.wrappers.length, 2);
  assert.deepEqual(
    cut.findings.map(({ code }) => code),
    ["WRAPPER_REMAINDER", "BUNDLE_WITHOUT_WRAPPER"],
  );
  const zeroed = await read(
    patched(
      bytes,
      [24, 32, 40].map((at) => [offset + at, 8, 0] as const),
    ),
  );
  assert.deepEqual(
    zeroed.wrappers.map(({ index, bundleIndex }) => [index, bundleIndex]),
    [
      [0, 0],
      [2, 2],
    ],
  );
  assert.deepEqual(
    zeroed.findings.map(({ code }) => code),
    ["EMPTY_WRAPPER", "BUNDLE_WITHOUT_WRAPPER"],
  );
});

test("a debug companion has no bytes", async () => {
  const bytes = fixtureBytes("C/libfx_single.so");
  const { header: bundleHeader } = await sectionOf(bytes, ".hip_fatbin");
  const { header: wrapperHeader } = await sectionOf(bytes, ".hipFatBinSegment");
  const fat = await read(
    patched(bytes, [
      [bundleHeader + 4, 4, NOBITS],
      [wrapperHeader + 4, 4, NOBITS],
    ]),
  );
  assert.equal(fat.state, "debug-companion");
  assert.deepEqual(
    fat.findings.map(({ severity, code }) => [severity, code]),
    [["note", "NO_BYTES_IN_FILE"]],
  );
});

test("sections outside the file are refused", async () => {
  const bytes = fixtureBytes("C/libfx_single.so");
  const { header } = await sectionOf(bytes, ".hip_fatbin");
  await assert.rejects(read(patched(bytes, [[header + 32, 8, 1e9]])), refusedAs("TRUNCATED", ".hip_fatbin"));
});

test("containers that are not read are named", async () => {
  const bytes = fixtureBytes("C/libfx_rdc2.so");
  const at = Buffer.from(bytes).indexOf(".hip_gpubin_handle");
  assert.deepEqual(await codesOf(patched(bytes, [[at + 12, 1, 0x78]])), [
    "UNKNOWN_CONTAINER .hip_gpubin_xandle",
  ]);
});

test("without wrappers the bundles are still read", async () => {
  const bundle = buildBundle([{ id: "hip-amdgcn-amd-amdhsa-gfx906", content: "kernel" }]);
  const fat = await read(buildCoffObject(".hip_fatbin", bundle));
  assert.deepEqual([fat.state, fat.isObject, fat.wrappers.length, fat.bundles.length], ["fat", true, 0, 1]);
  assert.deepEqual(fat.findings, []);
});

test("a Windows image whose bundles are cut short is refused", async () => {
  const bytes = fixtureBytes("C/fxw_single.dll");
  const header = Buffer.from(bytes).indexOf(".hip_fat");
  await assert.rejects(read(patched(bytes, [[header + 16, 4, 8192]])), (error) =>
    isKpackError(error, "TRUNCATED", "OUT_OF_BOUNDS"),
  );
});

test("whatever is changed in a host binary, reading it works or ends with an error of ours", async () => {
  const names = ["C/libfx_compressed.so", "C/libfx_relr.so", "C/fxw_multi.exe", "E/lib/libfx_single.so"];
  const originals = names.map(fixtureBytes);
  const end = performance.now() + 1200;
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let round = 0; performance.now() < end; round++) {
    const original = originals[round % originals.length] ?? assert.fail();
    const bytes = original.slice(0, random(20) === 0 ? random(original.length) : original.length);
    const headers = new DataView(original.buffer);
    const tables = original[0] === 0x7f ? Number(headers.getBigUint64(40, true)) : 0;
    for (let changes = 0; changes < 3; changes++) {
      const at = random(2) === 0 ? random(1024) : tables + random(original.length - tables);
      if (at + 8 < bytes.length) bytes.fill(random(3) === 0 ? 0xff : random(256), at, at + 1 + random(8));
    }
    try {
      await readFatBinary(memorySource(bytes), { codecs: nodeCodecs });
    } catch (error) {
      assert.ok(isKpackError(error), error instanceof Error ? error.stack : String(error));
    }
  }
});
