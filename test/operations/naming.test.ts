import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { archiveFileName, binaryKeyPath, defaultFamily, defaultGroupName } from "../../src/archive/naming.ts";
import { leavesFolder, safeRelativePath, targetFolderName } from "../../src/archive/safe-path.ts";

describe("names that are made up when none are given", () => {
  it("group: the first input's name without what every library has", () => {
    const names = {
      "rocm/lib/librocsparse.so.0.1": "rocsparse",
      "librocrand.so": "rocrand",
      "bin/rocsparse.dll": "rocsparse",
      "C/fxw_multi.exe": "fxw_multi",
      "library/": "library",
      "./lib": "lib",
      lib: "lib",
      ".": "kernels",
      "..": "kernels",
      "": "kernels",
      "vadd_gfx1100.hsaco": "vadd_gfx1100",
    };
    for (const [path, name] of Object.entries(names)) assert.equal(defaultGroupName(path), name, path);
  });

  it("family: a target, a processor, what they begin with, or mixed", () => {
    const families: readonly (readonly [string, readonly string[]])[] = [
      ["none", []],
      ["gfx1100", ["gfx1100"]],
      ["gfx90a:xnack-", ["gfx90a:xnack-"]],
      ["gfx90a", ["gfx90a:xnack-", "gfx90a:xnack+", "gfx90a"]],
      ["gfx110X", ["gfx1100", "gfx1101", "gfx1102"]],
      ["gfx9X", ["gfx906", "gfx942"]],
      ["mixed", ["gfx906", "gfx1100"]],
      ["mixed", ["gfx906", "amdgcnspirv"]],
    ];
    for (const [family, targets] of families) assert.equal(defaultFamily(targets), family, targets.join());
  });

  it("file of one target's archive: as ROCm's tools name it, and never a path", () => {
    assert.equal(archiveFileName("torch", "gfx90a:xnack-"), "torch_gfx90a:xnack-.kpack");
    assert.equal(archiveFileName("g", "gfx906/../../x\\y\0"), "g_gfx906%2F..%2F..%2Fx%5Cy%00.kpack");
  });
});

describe("binary keys", () => {
  it("lose what names the target, wherever it stands and however it is spelled", () => {
    const cases: readonly (readonly [string, string, string])[] = [
      ["lib/library/gemm_gfx90a-xnack+.co", "gfx90a:xnack+", "lib/library/gemm.co"],
      ["lib/library/gemm_gfx90a:xnack+.co", "gfx90a:xnack+", "lib/library/gemm.co"],
      ["lib/library/gemm_gfx90a.co", "gfx90a:xnack+", "lib/library/gemm.co"],
      ["gfx90a_xnack-/012.hsaco", "gfx90a:xnack-", "012.hsaco"],
      ["db/gfx942/a.co", "gfx942", "db/a.co"],
      ["aotriton/amd-gfx942/k.hsaco", "gfx942", "aotriton/amd/k.hsaco"],
      ["vadd_gfx11-generic.hsaco", "gfx11-generic", "vadd.hsaco"],
      ["GFX942/a.co", "gfx942", "a.co"],
      ["TensileLibrary_Type_HH_gfx1100_x.co", "gfx1100", "TensileLibrary_Type_HH_x.co"],
      ["gfx1100_x.co", "gfx1100", "x.co"],
      ["x_gfx942:sramecc+:xnack-.co", "gfx942:sramecc+:xnack-", "x.co"],
      ["x_gfx942-xnack--sramecc+.co", "gfx942:sramecc+:xnack-", "x.co"],
      // Other targets, and longer ones, are no business of this kernel.
      ["gemm_gfx1100.co", "gfx110", "gemm_gfx1100.co"],
      ["gemm_gfx90a.co", "gfx90", "gemm_gfx90a.co"],
      ["gemm_gfx942.co", "gfx90a", "gemm_gfx942.co"],
      ["librocsparse.so.0.1", "gfx942", "librocsparse.so.0.1"],
      ["gfx942", "gfx942", "gfx942"],
    ];
    for (const [path, target, key] of cases) assert.equal(binaryKeyPath(path, target), key, path);
  });
});

describe("paths made of names from an archive", () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc
      .array(
        fc.constantFrom("..", ".", "", "a", "/", "\\", "\0", "C:", "con", "%", "é", " ", "x".repeat(260)),
        {
          maxLength: 8,
        },
      )
      .map((parts) => parts.join("")),
  );

  it("stay below their folder, fit the file system, and never name a device", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        for (const path of [safeRelativePath(text), targetFolderName(text)]) {
          assert.ok(!leavesFolder(path), path);
          for (const part of path.split("/")) {
            assert.ok(part !== "" && part !== "." && part !== "..");
            assert.ok(Buffer.byteLength(`${part}.99.hsaco`) <= 255, part);
            assert.doesNotMatch(part, /[\0\\:*?"<>|]/);
            assert.doesNotMatch(part, /^(?:con|nul|aux|prn|com\d|lpt\d)(?:\.|$)/i);
          }
        }
        assert.ok(!targetFolderName(text).includes("/"));
      }),
    );
  });

  it("differ where the names differ", () => {
    fc.assert(
      fc.property(
        nasty.filter((text) => text.isWellFormed()),
        nasty.filter((text) => text.isWellFormed()),
        (a, b) => {
          fc.pre(a !== b);
          assert.notEqual(safeRelativePath(a), safeRelativePath(b));
          assert.notEqual(targetFolderName(a), targetFolderName(b));
        },
      ),
    );
    const alike = ["a:b", "a%3Ab", "a%253Ab", "a_b", "..", "%2E%2E", "%2e%2e", "con", "%63on", "", "%"];
    assert.equal(new Set(alike.map(safeRelativePath)).size, alike.length);
    const targets = ["gfx90a:xnack-", "gfx90a_xnack-", "gfx90a%3Axnack-", "gfx90a%5Fxnack-", "gfx90a/xnack-"];
    assert.equal(new Set(targets.map(targetFolderName)).size, targets.length);
  });
});
