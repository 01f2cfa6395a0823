import type { CodeObjectTarget } from "./elf-flags.ts";
import { parseTargetId } from "./target-id.ts";

/**
 * Why a code object does not fit the target that it is listed under, or undefined when it fits or cannot be judged.
 * A code object that leaves a flag open fits either setting; before version 4 a cleared bit may mean "off" or
 * "not supported", so it is not held against the name.
 */
export function targetDisagreement(built: CodeObjectTarget, listed: string): string | undefined {
  const target = parseTargetId(listed);
  if (target === undefined || built.processor === undefined) return undefined;
  if (built.processor !== target.processor) return `it was built for ${built.targetName}`;
  for (const name of ["sramecc", "xnack"] as const) {
    const wanted = target.features.find((feature) => feature.name === name)?.on;
    const state = built[name];
    if (state !== "on" && state !== "off") continue;
    const vague = state === "off" && built.codeObjectVersion < 4 && wanted === undefined;
    if (!vague && wanted !== (state === "on")) return `it was built for ${built.targetName}`;
  }
  return undefined;
}
