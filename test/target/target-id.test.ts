import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatTargetId,
  matchesSelection,
  parseTargetId,
  sameTarget,
  splitTriple,
} from "../../src/target/target-id.ts";

test("a target id has a processor and feature flags", () => {
  assert.deepEqual(parseTargetId("gfx942:sramecc+:xnack-"), {
    processor: "gfx942",
    features: [
      { name: "sramecc", on: true },
      { name: "xnack", on: false },
    ],
  });
  assert.deepEqual(parseTargetId("gfx9-4-generic"), { processor: "gfx9-4-generic", features: [] });
  assert.deepEqual(parseTargetId("gfx1250:gfx1250-b0-specific+"), {
    processor: "gfx1250",
    features: [{ name: "gfx1250-b0-specific", on: true }],
  });
});

test("every target id is written as it was read", () => {
  for (const text of [
    "gfx942:sramecc+:xnack-",
    "gfx90a:xnack-:sramecc+",
    "gfx9-4-generic:xnack+",
    "gfx1250-strict",
    "gfx1250:gfx1250-b0-specific+",
    "gfx90c",
    "gfx9999",
    "amdgcnspirv",
  ]) {
    const target = parseTargetId(text);
    assert.ok(target, text);
    assert.equal(formatTargetId(target), text);
  }
});

test("other text is no target id", () => {
  for (const text of [
    "",
    "gfx",
    "gfx950-",
    "gfx90a:",
    "gfx90a:xnack",
    "gfx90a:+",
    "sm_80",
    "gfx90a:xnack+:xnack-",
    "gfx90a xnack",
  ]) {
    assert.equal(parseTargetId(text), undefined, text);
  }
});

test("a selection without flags takes every flag variant, one with flags just that one", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["gfx90a:xnack-", "gfx90a", true],
    ["gfx90a", "gfx90a", true],
    ["gfx90a:xnack-", "gfx90a:xnack-", true],
    ["gfx90a:xnack+", "gfx90a:xnack-", false],
    ["gfx90a", "gfx90a:xnack-", false],
    ["gfx90a:sramecc+:xnack-", "gfx90a:xnack-:sramecc+", true],
    ["gfx90a:sramecc+:xnack-", "gfx90a:xnack-", false],
    ["gfx1250-strict", "gfx1250", false],
    ["gfx9-4-generic", "gfx942", false],
    ["no target", "no target", true],
    ["no target", "gfx90a", false],
  ];
  for (const [target, selection, expected] of cases) {
    assert.equal(matchesSelection(target, selection), expected, `${target} for ${selection}`);
  }
});

test("the order of flags makes no difference between targets", () => {
  const parse = (text: string): NonNullable<ReturnType<typeof parseTargetId>> => {
    const target = parseTargetId(text);
    assert.ok(target);
    return target;
  };
  assert.ok(sameTarget(parse("gfx942:sramecc+:xnack-"), parse("gfx942:xnack-:sramecc+")));
  assert.ok(!sameTarget(parse("gfx942:sramecc+"), parse("gfx942:sramecc-")));
});

test("the target is what follows the triple", () => {
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ["amdgcn-amd-amdhsa--gfx90a:xnack-", "amdgcn-amd-amdhsa", "gfx90a:xnack-"],
    ["amdgcn-amd-amdhsa-gfx906", "amdgcn-amd-amdhsa", "gfx906"],
    ["amdgcn-amd-amdhsa-unknown-gfx906", "amdgcn-amd-amdhsa-unknown", "gfx906"],
    [
      "amdgpu12.5-amd-amdhsa--gfx1250:gfx1250-b0-specific+",
      "amdgpu12.5-amd-amdhsa",
      "gfx1250:gfx1250-b0-specific+",
    ],
    ["amdgcn-amd-amdhsa--gfx950-", "amdgcn-amd-amdhsa", "gfx950"],
    ["amdgcn-amd-amdhsa--gfx950:xnack--", "amdgcn-amd-amdhsa", "gfx950:xnack-"],
    ["amdgcn-amd-amdhsa--gfx950:xnack+-", "amdgcn-amd-amdhsa", "gfx950:xnack+"],
    ["spirv64-amd-amdhsa--amdgcnspirv", "spirv64-amd-amdhsa", "amdgcnspirv"],
    ["amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa", undefined],
  ];
  for (const [text, triple, target] of cases) assert.deepEqual(splitTriple(text), { triple, target }, text);
});
