import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEntryId } from "../../src/bundle/entry-id.ts";

test("every spelling of an entry id has its target", () => {
  const cases: readonly (readonly [id: string, kind: string, triple: string, target: string | undefined])[] =
    [
      ["hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4", "amdgcn-amd-amdhsa", "gfx90a:xnack-"],
      ["hip-amdgcn-amd-amdhsa-gfx906", "hip", "amdgcn-amd-amdhsa", "gfx906"],
      ["hipv4-amdgcn-amd-amdhsa-unknown-gfx906", "hipv4", "amdgcn-amd-amdhsa-unknown", "gfx906"],
      ["hip-spirv64-amd-amdhsa--amdgcnspirv", "hip", "spirv64-amd-amdhsa", "amdgcnspirv"],
      ["hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "hipv4", "amdgcn-amd-amdhsa", "gfx9-4-generic"],
      ["hipv4-amdgcn-amd-amdhsa--gfx1250-strict", "hipv4", "amdgcn-amd-amdhsa", "gfx1250-strict"],
      [
        "hipv4-amdgpu12.5-amd-amdhsa-unknown-gfx1250:gfx1250-b0-specific+",
        "hipv4",
        "amdgpu12.5-amd-amdhsa-unknown",
        "gfx1250:gfx1250-b0-specific+",
      ],
      ["hipv4-amdgcn-amd-amdhsa--gfx950-", "hipv4", "amdgcn-amd-amdhsa", "gfx950"],
      ["openmp-amdgcn-amd-amdhsa--gfx908", "openmp", "amdgcn-amd-amdhsa", "gfx908"],
      ["host-x86_64-unknown-linux-gnu-", "host", "x86_64-unknown-linux-gnu", undefined],
      ["host-x86_64-unknown-linux--", "host", "x86_64-unknown-linux", undefined],
      ["hip-amdgcn-amd-amdhsa", "hip", "amdgcn-amd-amdhsa", undefined],
      ["nonsense", "nonsense", "", undefined],
    ];
  for (const [text, kind, triple, target] of cases) {
    const id = parseEntryId(text);
    assert.deepEqual([id.text, id.kind, id.triple, id.target], [text, kind, triple, target]);
    assert.equal(id.isHost, kind === "host");
    assert.equal(id.isHip, kind.startsWith("hip"));
  }
});
