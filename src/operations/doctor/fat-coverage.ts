import { compatibleTargets, stripIsaPrefix } from "../../loader/isa.ts";
import { formatIndexes } from "../../loader/miss-reason.ts";
import type { HostFacts } from "./doctor-facts.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";

interface Agent {
  readonly isa: string;
  readonly isas: readonly string[];
}

/** HIP compiles this intermediate language for whatever GPU there is. */
const SPIRV = "amdgcnspirv";

/** Whether what the fat binary holds is known. */
export function isJudged({ state, targets }: HostFacts): boolean {
  return state === "fat" && targets !== undefined && targets.length > 0;
}

/** Positions of wrappers of a fat binary whose own bundle has nothing that fits the GPU. */
export function unservedWrappers({ wrapperTargets }: HostFacts, { isas }: Agent): readonly number[] {
  const wanted = new Set(isas.flatMap((isa) => compatibleTargets(stripIsaPrefix(isa)))).add(SPIRV);
  return wrapperTargets.flatMap((targets, position) =>
    targets.some((target) => wanted.has(target)) ? [] : [position],
  );
}

/** GPUs that were asked about and for which fat binaries lack code: of these no archive makes up for it. */
export function fatBinaryFindings(
  hosts: readonly HostFacts[],
  agents: readonly Agent[],
): readonly DoctorFinding[] {
  return hosts.filter(isJudged).flatMap((host) => agents.flatMap((agent) => lackOf(host, agent) ?? []));
}

function lackOf(host: HostFacts, agent: Agent): DoctorFinding | undefined {
  const { path, wrapperCount, targets = [] } = host;
  const unserved = unservedWrappers(host, agent);
  if (unserved.length === 0) return undefined;
  const isWhole = unserved.length === wrapperCount;
  const positions = isWhole ? "" : `, at ${formatIndexes(unserved).replaceAll("#", "")}`;
  const evidence = [
    `for ${agent.isa}: ${unserved.length} of ${wrapperCount} wrappers find nothing in the bundles${positions}`,
    `the binary holds its kernels itself, for ${targets.join(", ")}`,
  ];
  const remedy = isWhole
    ? "Install a build of the binary for this GPU."
    : "If the part should work on this GPU, install a build that has it.";
  return doctorFinding(isWhole ? "KP312" : "KP202", [path], evidence, remedy);
}
