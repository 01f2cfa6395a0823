import { genericMembers, knownProcessors } from "./processors.ts";
import { parseTargetId, type TargetId } from "./target-id.ts";

/** Longest first, so that `gfx9-4-generic` is not taken for another, and `gfx90a68` (with a count of units) is gfx90a. */
const PROCESSORS: readonly string[] = knownProcessors().toSorted((a, b) => b.length - a.length);
const FLAGS = /^(?:[:_-](?:xnack|sramecc)[+-])*/;

/**
 * The target that a file's path names: the last one in it, since a file's own name says more than its folder's.
 * `library/Kernels_gfx90a-xnack+.hsaco` gives `gfx90a:xnack+`; a processor that is not known is taken as it stands.
 */
export function targetInPath(path: string): string | undefined {
  const starts = [...path.matchAll(/(?<![0-9a-z])gfx(?=[0-9])/gi)];
  const start = starts.at(-1)?.index;
  if (start === undefined) return undefined;
  const text = path.slice(start);
  const known = PROCESSORS.find((name) => text.toLowerCase().startsWith(name));
  const processor = known ?? /^gfx[0-9a-f]+(?:-[0-9]+)*(?:-generic)?/i.exec(text)?.[0].toLowerCase() ?? "";
  const flags = FLAGS.exec(text.slice(processor.length))?.[0] ?? "";
  return processor + flags.replaceAll(/[:_-](?=xnack|sramecc)/g, ":");
}

/**
 * Whether a GPU that `wanted` stands for may use what was built for `target`: the same processor or a generic target
 * of it, and no flag set the other way. `wanted` without flags stands for every setting of them.
 */
export function isOfUseFor(target: string, wanted: string): boolean {
  const built = parseTargetId(target);
  const gpu = parseTargetId(wanted);
  if (!built || !gpu) return target === wanted;
  return (
    (built.processor === gpu.processor ||
      (genericMembers(built.processor)?.includes(gpu.processor) ?? false)) &&
    !contradicts(built, gpu)
  );
}

function contradicts(built: TargetId, gpu: TargetId): boolean {
  return built.features.some(({ name, on }) =>
    gpu.features.some((other) => other.name === name && other.on !== on),
  );
}
