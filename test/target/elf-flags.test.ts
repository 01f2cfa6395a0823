import assert from "node:assert/strict";
import { test } from "node:test";
import { targetFromElfFlags } from "../../src/target/elf-flags.ts";
import {
  genericMembers,
  genericTargetsOf,
  knownProcessors,
  processorName,
  processorNumber,
} from "../../src/target/processors.ts";
import { parseTargetId } from "../../src/target/target-id.ts";

test("the flags name the target by the rules of the code object's version", () => {
  const cases: readonly (readonly [abiVersion: number, eFlags: number, name: string, version: number])[] = [
    [0, 0x2c, "gfx900:xnack-", 2],
    [0, 0x01, "0x00:xnack+", 2],
    [1, 0x12c, "gfx900:xnack+", 3],
    [1, 0x02c, "gfx900:xnack-", 3],
    [1, 0x22f, "gfx906:sramecc+:xnack-", 3],
    [1, 0x036, "gfx1030", 3],
    [2, 0x54c, "gfx942", 4],
    [2, 0xe3f, "gfx90a:sramecc+:xnack-", 4],
    [3, 0xb3f, "gfx90a:sramecc-:xnack+", 5],
    [3, 0x041, "gfx1100", 5],
    [4, 0x0100055f, "gfx9-4-generic", 6],
    [4, 0x0100065f, "gfx9-4-generic:xnack-", 6],
    [4, 0xeb, "gfx1250-strict", 6],
  ];
  for (const [abiVersion, eFlags, name, version] of cases) {
    const target = targetFromElfFlags(abiVersion, eFlags);
    assert.equal(target.targetName, name);
    assert.equal(target.codeObjectVersion, version);
  }
  assert.equal(targetFromElfFlags(4, 0x0100055f).genericVersion, 1);
  assert.equal(targetFromElfFlags(4, 0xff00055f).genericVersion, 255);
  assert.equal(targetFromElfFlags(3, 0x0100055f).genericVersion, 0);
});

test("any and unsupported features are told apart, though the name shows neither", () => {
  const any = targetFromElfFlags(3, 0x54c);
  assert.deepEqual([any.xnack, any.sramecc, any.features], ["any", "any", []]);
  const none = targetFromElfFlags(3, 0x41);
  assert.deepEqual([none.xnack, none.sramecc], ["unsupported", "unsupported"]);
});

test("an unknown processor is shown as its number", () => {
  const target = targetFromElfFlags(3, 0x27f);
  assert.equal(target.processor, undefined);
  assert.equal(target.processorNumber, 0x7f);
  assert.equal(target.targetName, "0x7f:xnack-");
  assert.equal(targetFromElfFlags(9, 0x4c).codeObjectVersion, 11);
});

test("numbers and names of processors belong to each other", () => {
  for (const name of knownProcessors()) {
    const number = processorNumber(name);
    assert.ok(number !== undefined && processorName(number) === name);
    assert.ok(parseTargetId(name), name);
  }
  assert.equal(knownProcessors().length, 64);
  assert.equal(processorName(0x27), undefined);
});

test("generic targets have members", () => {
  assert.deepEqual(genericTargetsOf("gfx942"), ["gfx9-4-generic"]);
  assert.deepEqual(genericTargetsOf("gfx1154"), ["gfx11-generic"]);
  assert.deepEqual(genericTargetsOf("gfx1170"), ["gfx11-7-generic"]);
  assert.deepEqual(genericTargetsOf("gfx908"), []);
  assert.equal(genericMembers("gfx942"), undefined);
  for (const name of knownProcessors().filter((known) => known.endsWith("-generic"))) {
    for (const member of genericMembers(name) ?? assert.fail(name))
      assert.ok(processorNumber(member), member);
  }
});
