import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readElfFile } from "../../src/elf/elf-file.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { readDeviceCode } from "../../src/host/device-code.ts";
import { readHipkMetadata } from "../../src/host/hipk-metadata.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { fixtureBytes, patched } from "../bundle/host-fixtures.ts";

const EXTREMES: readonly bigint[] = [
  0n,
  1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 53n - 24n,
  2n ** 53n - 2n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 1n,
];

type Change = readonly [offset: number, bytes: 2 | 4 | 8, value: bigint];
type Field = readonly [offset: number, bytes: 2 | 4 | 8];

/** Offsets and sizes of the fields of an ELF file's headers, symbols' and relocations' tables, and of its wrappers. */
async function elfFields(bytes: Uint8Array): Promise<readonly Field[]> {
  const elf = await readElfFile(memorySource(bytes));
  const fields: Field[] = [];
  for (const offset of [24, 32, 40]) fields.push([offset, 8]);
  for (const offset of [54, 56, 58, 60, 62]) fields.push([offset, 2]);
  for (const { index } of elf.sections) {
    const at = elf.header.sectionHeaderOffset + index * 64;
    for (const offset of [0, 4, 40, 44]) fields.push([at + offset, 4]);
    for (const offset of [8, 16, 24, 32, 48, 56]) fields.push([at + offset, 8]);
  }
  for (const { index } of elf.segments) {
    const at = elf.header.programHeaderOffset + index * 56;
    for (const offset of [8, 16, 32, 40]) fields.push([at + offset, 8]);
  }
  for (const { type, name, offset, size } of elf.sections) {
    const isTable = [2, 4, 11, 19].includes(type) || name === ".hipFatBinSegment";
    if (isTable) for (let at = 0; at < Math.min(size, 480); at += 8) fields.push([offset + at, 8]);
  }
  return fields;
}

function coffFields(bytes: Uint8Array): readonly Field[] {
  const view = new DataView(bytes.buffer);
  const header = view.getUint32(60, true) + 4;
  const optionalSize = view.getUint16(header + 16, true);
  const fields: Field[] = [[60, 4]];
  for (const offset of [0, 2, 16]) fields.push([header + offset, 2]);
  for (const offset of [8, 12]) fields.push([header + offset, 4]);
  fields.push([header + 20 + 24, 8]);
  for (let index = 0; index < view.getUint16(header + 2, true); index++) {
    const at = header + 20 + optionalSize + index * 40;
    fields.push([at, 8]);
    for (const offset of [8, 12, 16, 20, 36]) fields.push([at + offset, 4]);
  }
  return fields;
}

/** Reads all that a file has, as the commands do. @returns whether that was refused */
async function isRefused(bytes: Uint8Array, changes: readonly Change[]): Promise<boolean> {
  const source = memorySource(patched(bytes, changes), "lib.so");
  try {
    const code = await readDeviceCode(source, { codecs: nodeCodecs });
    if (code.fatBinary?.metadata) await readHipkMetadata(source, code.fatBinary);
    return false;
  } catch (error) {
    const place = JSON.stringify(changes, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    assert.ok(isKpackError(error), `${place}: ${error instanceof Error ? error.stack : String(error)}`);
    return true;
  }
}

const change = ([offset, size]: Field, value: bigint): Change => [
  offset,
  size,
  BigInt.asUintN(size * 8, value),
];

for (const name of [
  "C/libfx_rdc2.so",
  "C/libfx_relr.so",
  "C/libfx_compressed.so",
  "C/fxw_multi.exe",
  "E/lib/libfx_single.so",
]) {
  test(`extreme numbers in the fields of ${name} are read or refused with an error of ours`, async () => {
    const bytes = fixtureBytes(name);
    const fields = bytes[0] === 0x7f ? await elfFields(bytes) : coffFields(bytes);
    let refused = 0;
    for (const field of fields) {
      for (const value of EXTREMES) if (await isRefused(bytes, [change(field, value)])) refused += 1;
    }
    assert.ok(refused > 50, `${refused} of ${fields.length} fields`);
    let state = 11;
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const end = performance.now() + 500;
    while (performance.now() < end) {
      const changes = [0, 1, 2].map(() =>
        change(fields[random(fields.length)] ?? assert.fail(), EXTREMES[random(EXTREMES.length)] ?? 0n),
      );
      await isRefused(bytes, changes);
    }
  });
}
