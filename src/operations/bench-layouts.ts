import { parseTargetId } from "../target/target-id.ts";

/** How kernels may be spread over archives. */
export type BenchLayout = "target" | "family" | "all";

export const BENCH_LAYOUTS: readonly BenchLayout[] = ["target", "family", "all"];

/**
 * The family of a target: processors that differ in the last digit only. `gfx90X` for `gfx90a:xnack-`, `gfx103X` for
 * `gfx1030`; the generic target `gfx10-3-generic` belongs to `gfx103X` too.
 */
export function targetFamily(target: string): string {
  const processor = parseTargetId(target)?.processor ?? target;
  const generic = /^(gfx[\d-]+)-generic$/.exec(processor);
  if (generic) return `${(generic[1] ?? "").replaceAll("-", "")}X`;
  return /^gfx\w{3,}$/.test(processor) ? `${processor.slice(0, -1)}X` : processor;
}

/** The archives of a layout: their names and what goes into each. */
export function layOut<Kernel extends { readonly target: string }>(
  kernels: readonly Kernel[],
  layout: BenchLayout,
): ReadonlyMap<string, readonly Kernel[]> {
  return Map.groupBy(kernels, ({ target }) => {
    if (layout === "all") return "all";
    return layout === "target" ? target : targetFamily(target);
  });
}
