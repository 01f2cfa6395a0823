import { knowsSramecc, knowsXnack, processorName } from "./processors.ts";
import { type FeatureFlag, formatTargetId } from "./target-id.ts";

/**
 * What `e_flags` and `e_ident[EI_ABIVERSION]` of a code object say about its target.
 *
 * | ABI version | code object version | features in `e_flags` |
 * | --- | --- | --- |
 * | 0 | 2 | xnack 0x01 |
 * | 1 | 3 | xnack 0x100, sramecc 0x200 |
 * | 2, 3 | 4, 5 | xnack 0x300, sramecc 0xc00: unsupported, any, off, on |
 * | 4 | 6 | as 4; bits 24–31: version of a generic target |
 *
 * The low byte is the processor. Early code objects of version 2 have just the feature bits there and name the
 * processor in a note; later ones (LLVM 7 to 14) have the processor there and the feature bits of version 3.
 */
export interface CodeObjectTarget {
  /** Name of the processor, or undefined when its number is not known (yet). */
  readonly processor: string | undefined;
  /** `EF_AMDGPU_MACH`. */
  readonly processorNumber: number;
  readonly xnack: FeatureState;
  readonly sramecc: FeatureState;
  /** The features that the target's name shows: those that are on or off. */
  readonly features: readonly FeatureFlag[];
  /** `gfx90a:xnack-`; with the number, as in `0x7f:xnack-`, where the processor is not known. */
  readonly targetName: string;
  /** 2 to 6, or more when the ABI version is newer than this table. */
  readonly codeObjectVersion: number;
  /** Version of a generic target from code object version 6 on, else 0. */
  readonly genericVersion: number;
}

/** `any`: the code object runs with the feature on and off. */
export type FeatureState = "unsupported" | "any" | "off" | "on";

/** No processor has a lower number that an AMDGPU code object of the HSA runtime may have. */
const FIRST_PROCESSOR = 0x20;

const STATES = ["unsupported", "any", "off", "on"] as const satisfies readonly FeatureState[];

/** Reads the target out of an ELF header's `e_ident[EI_ABIVERSION]` and `e_flags`. */
export function targetFromElfFlags(abiVersion: number, eFlags: number): CodeObjectTarget {
  const codeObjectVersion = abiVersion + 2;
  const featuresInLowByte = codeObjectVersion === 2 && (eFlags & 0xff) < FIRST_PROCESSOR;
  const number = featuresInLowByte ? 0 : eFlags & 0xff;
  const processor = processorName(number);
  const { xnack, sramecc } = featureStates(codeObjectVersion, eFlags, processor, featuresInLowByte);
  const features = [flagOf("sramecc", sramecc), flagOf("xnack", xnack)].filter((flag) => flag !== undefined);
  return {
    processor,
    processorNumber: number,
    xnack,
    sramecc,
    features,
    targetName: formatTargetId({
      processor: processor ?? `0x${number.toString(16).padStart(2, "0")}`,
      features,
    }),
    codeObjectVersion,
    genericVersion: codeObjectVersion >= 6 ? eFlags >>> 24 : 0,
  };
}

function featureStates(
  version: number,
  eFlags: number,
  processor: string | undefined,
  featuresInLowByte: boolean,
): { readonly xnack: FeatureState; readonly sramecc: FeatureState } {
  if (version >= 4) return { xnack: stateAt(eFlags, 8), sramecc: stateAt(eFlags, 10) };
  if (featuresInLowByte)
    return { xnack: (eFlags & 0x01) !== 0 ? "on" : "unsupported", sramecc: "unsupported" };
  // A clear bit is "off" only where the processor has the feature at all.
  const hasXnack = processor !== undefined && knowsXnack(processor);
  const hasSramecc = version === 3 && processor !== undefined && knowsSramecc(processor);
  return {
    xnack: (eFlags & 0x100) !== 0 ? "on" : hasXnack ? "off" : "unsupported",
    sramecc: (eFlags & 0x200) !== 0 ? "on" : hasSramecc ? "off" : "unsupported",
  };
}

function stateAt(eFlags: number, shift: number): FeatureState {
  return STATES[(eFlags >>> shift) & 3] ?? "unsupported";
}

function flagOf(name: string, state: FeatureState): FeatureFlag | undefined {
  return state === "on" || state === "off" ? { name, on: state === "on" } : undefined;
}
