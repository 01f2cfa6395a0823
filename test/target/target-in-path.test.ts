import assert from "node:assert/strict";
import { test } from "node:test";
import { isOfUseFor, targetInPath } from "../../src/target/target-in-path.ts";

test("paths of kernel databases name their target", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["library/TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_gfx90a.co", "gfx90a"],
    ["library/Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a:xnack+"],
    ["library/Kernels.so-000-gfx942-sramecc+-xnack-.hsaco", "gfx942:sramecc+:xnack-"],
    ["library/gfx1201/TensileLibrary_lazy.dat", "gfx1201"],
    ["library/gfx9/Kernels_gfx9-4-generic.hsaco", "gfx9-4-generic"],
    ["kernels/gfx11-generic/attn.hsaco", "gfx11-generic"],
    ["aotriton.images/amd-gfx950/flash/attn.aks2", "gfx950"],
    ["db/gfx90a68.kdb", "gfx90a"],
    ["db/gfx1030_36.db.txt", "gfx1030"],
    ["db/gfx942130.HIP.fdb.txt", "gfx942"],
    ["db/gfx908_ConvAsm1x1U_decoder.tn.model", "gfx908"],
    ["gfx906/Kernels_gfx1100.co", "gfx1100"],
    ["Kernels_gfx1999.co", "gfx1999"],
    ["TensileManifest.txt", undefined],
    ["libmygfx1100.co", undefined],
    ["gfx", undefined],
  ];
  for (const [path, target] of cases) assert.equal(targetInPath(path), target, path);
});

test("a GPU can use what was built for it, for its generic target, and what leaves its flags open", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["gfx942", "gfx942", true],
    ["gfx942", "gfx90a", false],
    ["gfx90a:xnack+", "gfx90a", true],
    ["gfx90a", "gfx90a:xnack+", true],
    ["gfx90a:xnack-", "gfx90a:xnack+", false],
    ["gfx90a:sramecc+:xnack-", "gfx90a:xnack-", true],
    ["gfx9-4-generic", "gfx942", true],
    ["gfx9-4-generic:xnack+", "gfx942:xnack-", false],
    ["gfx942", "gfx9-4-generic", false],
    ["odd name", "odd name", true],
  ];
  for (const [target, wanted, useful] of cases)
    assert.equal(isOfUseFor(target, wanted), useful, `${target} ${wanted}`);
});
