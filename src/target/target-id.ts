/**
 * A target id names what a code object runs on: a processor and, perhaps, settings of its features.
 *
 * `gfx942:sramecc+:xnack-`, `gfx9-4-generic`, `gfx1250-strict`, `gfx1250:gfx1250-b0-specific+`, `amdgcnspirv`.
 * A feature that is left out may have either setting. Which processors exist is no business of this file: new ones
 * appear every few months.
 */
export interface TargetId {
  /** Processor, family or intermediate language: `gfx942`, `gfx9-4-generic`, `amdgcnspirv`. */
  readonly processor: string;
  /** In the order of the text. */
  readonly features: readonly FeatureFlag[];
}

/** One `:name+` or `:name-` of a target id. */
export interface FeatureFlag {
  readonly name: string;
  readonly on: boolean;
}

const SPIRV_PROCESSOR = "amdgcnspirv";
const PROCESSOR = /^(?:gfx[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*|amdgcnspirv)$/;
const FEATURE = /^([0-9A-Za-z_.]+(?:-[0-9A-Za-z_.]+)*)([+-])$/;

/** The parts of a target id, or undefined when `text` is none. */
export function parseTargetId(text: string): TargetId | undefined {
  const [processor = "", ...flags] = text.split(":");
  if (!PROCESSOR.test(processor)) return undefined;
  const features: FeatureFlag[] = [];
  for (const flag of flags) {
    const [, name, sign] = FEATURE.exec(flag) ?? [];
    if (name === undefined || features.some((feature) => feature.name === name)) return undefined;
    features.push({ name, on: sign === "+" });
  }
  return { processor, features };
}

export function formatTargetId(target: TargetId): string {
  return target.processor + target.features.map(({ name, on }) => `:${name}${on ? "+" : "-"}`).join("");
}

/** Whether two target ids mean the same: the order of the flags does not count. */
export function sameTarget(a: TargetId, b: TargetId): boolean {
  return (
    a.processor === b.processor &&
    a.features.length === b.features.length &&
    a.features.every(({ name, on }) => b.features.some((other) => other.name === name && other.on === on))
  );
}

/**
 * Whether a user who asks for `selection` gets `target`: `gfx90a` takes every flag variant of it, `gfx90a:xnack-`
 * just that one. Text that is no target id is compared as it is.
 */
export function matchesSelection(target: TargetId | string, selection: TargetId | string): boolean {
  const wanted = typeof selection === "string" ? parseTargetId(selection) : selection;
  const given = typeof target === "string" ? parseTargetId(target) : target;
  if (wanted === undefined || given === undefined) return target === selection;
  return wanted.features.length === 0 ? given.processor === wanted.processor : sameTarget(given, wanted);
}

/** Whether a user who gave these selections gets `target`: one that any of them takes, or every one without them. */
export function matchesAnySelection(
  target: TargetId | string,
  selections: readonly (TargetId | string)[] | undefined,
): boolean {
  return selections === undefined || selections.some((selection) => matchesSelection(target, selection));
}

/**
 * Splits `TRIPLE[-TARGETID]`, as entry ids and `amdhsa.target` have it, where the target begins: at the first
 * component that starts with `gfx`. Target ids hold hyphens and even `gfx` themselves, so it reaches to the end.
 */
export function splitTriple(text: string): { readonly triple: string; readonly target: string | undefined } {
  const components = text.split("-");
  const start = components.findIndex(
    (component, index) =>
      index > 0 && (component.startsWith("gfx") || component.split(":")[0] === SPIRV_PROCESSOR),
  );
  const triple = (start < 0 ? components : components.slice(0, start)).join("-").replace(/-+$/, "");
  const target = start < 0 ? undefined : withoutTrailingDash(components.slice(start).join("-"));
  return { triple, target };
}

/** clang-offload-bundler 19 ends targets that it does not know with a dash, which is no flag's sign. */
function withoutTrailingDash(target: string): string {
  const isSign = /:[^:]*[^:+-]-$/.test(target);
  return target.endsWith("-") && !isSign ? target.slice(0, -1) : target;
}
