/** An agent's instruction set, as HSA names it: `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`. */

const PREFIX = "amdgcn-amd-amdhsa--";

/** The target part; the triple in front may be left out. */
export function stripIsaPrefix(isa: string): string {
  return isa.startsWith(PREFIX) ? isa.slice(PREFIX.length) : isa;
}

/** The flags of an ISA, as text and in its order: `sramecc+`, `xnack-`. */
export function featureFlags(isa: string): readonly string[] {
  return stripIsaPrefix(isa).split(":").slice(1);
}

/** More flags than any processor has would give more subsets than there is memory for. */
export const MOST_FEATURE_FLAGS = 12;

/**
 * The targets whose code objects fit an ISA, most specific first: it with every subset of its flags, which keep their
 * order; of two subsets of one size the one that keeps the flags further left comes first.
 *
 * `gfx942:sramecc+:xnack-` gives `gfx942:sramecc+:xnack-`, `gfx942:sramecc+`, `gfx942:xnack-`, `gfx942`.
 * @throws RangeError for more than {@link MOST_FEATURE_FLAGS} flags
 */
export function compatibleTargets(isa: string): readonly string[] {
  const [processor = "", ...flags] = stripIsaPrefix(isa).split(":");
  if (flags.length > MOST_FEATURE_FLAGS) {
    throw new RangeError(
      `${processor} has ${flags.length} flags; ${MOST_FEATURE_FLAGS} are the most that an ISA can have`,
    );
  }
  const targets: string[] = [];
  for (let size = flags.length; size >= 0; size--) {
    for (const chosen of choose(flags, size)) targets.push([processor, ...chosen].join(":"));
  }
  return targets;
}

/** All ways to take `size` of the items, in their order; ways that keep earlier items come first. */
function* choose(items: readonly string[], size: number): Generator<readonly string[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let index = 0; index + size <= items.length; index++) {
    const first = items[index] ?? "";
    for (const rest of choose(items.slice(index + 1), size - 1)) yield [first, ...rest];
  }
}
