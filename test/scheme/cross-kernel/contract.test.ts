import { nodeCodecs } from "../../../src/node.ts";
import { zstdCrossKernel } from "../../../src/index.ts";
import { EFFORTS } from "../../../src/scheme/cross-kernel/effort.ts";
import { PLANNER_NAMES } from "../../../src/scheme/cross-kernel/planner.ts";
import { testSchemeContract } from "../../support/scheme-contract.ts";

for (const effort of EFFORTS) {
  for (const planner of PLANNER_NAMES) {
    const scheme = zstdCrossKernel({ codecs: nodeCodecs, effort, planner });
    testSchemeContract(`zstd-cross-kernel, effort ${effort}, planner ${planner}`, scheme);
  }
}
