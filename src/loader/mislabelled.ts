import type { Archive } from "../archive/archive.ts";
import { genericMembers, genericTargetsOf, knownProcessors } from "../target/processors.ts";
import { parseTargetId } from "../target/target-id.ts";

/**
 * What an archive holds instead of anything for the target that its name says, as when it was copied under a wrong
 * name. Undefined where it fits, holds nothing, or the name says no target that is known.
 */
export function heldInstead(archive: Archive, named: string): readonly string[] | undefined {
  const processor = parseTargetId(named)?.processor;
  if (processor === undefined || !knownProcessors().includes(processor)) return undefined;
  // Of an archive for a processor, what runs on it; of one for a generic target, what its processors would find there.
  const fitting = new Set([processor, ...genericTargetsOf(processor), ...(genericMembers(processor) ?? [])]);
  const held = [...new Set([...archive.targets, ...archive.toc.entries.targetNames])];
  const fits = held.some((target) => fitting.has(parseTargetId(target)?.processor ?? target));
  return held.length === 0 || fits ? undefined : held;
}
