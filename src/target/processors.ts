/**
 * `EF_AMDGPU_MACH`, the low byte of a code object's `e_flags`, and the processor that it means.
 * Source: LLVM's "User Guide for AMDGPU Backend"; 0xeb is AMD's own compiler's.
 */
const PROCESSORS: ReadonlyMap<number, string> = new Map([
  [0x20, "gfx600"],
  [0x21, "gfx601"],
  [0x22, "gfx700"],
  [0x23, "gfx701"],
  [0x24, "gfx702"],
  [0x25, "gfx703"],
  [0x26, "gfx704"],
  [0x28, "gfx801"],
  [0x29, "gfx802"],
  [0x2a, "gfx803"],
  [0x2b, "gfx810"],
  [0x2c, "gfx900"],
  [0x2d, "gfx902"],
  [0x2e, "gfx904"],
  [0x2f, "gfx906"],
  [0x30, "gfx908"],
  [0x31, "gfx909"],
  [0x32, "gfx90c"],
  [0x33, "gfx1010"],
  [0x34, "gfx1011"],
  [0x35, "gfx1012"],
  [0x36, "gfx1030"],
  [0x37, "gfx1031"],
  [0x38, "gfx1032"],
  [0x39, "gfx1033"],
  [0x3a, "gfx602"],
  [0x3b, "gfx705"],
  [0x3c, "gfx805"],
  [0x3d, "gfx1035"],
  [0x3e, "gfx1034"],
  [0x3f, "gfx90a"],
  [0x40, "gfx940"],
  [0x41, "gfx1100"],
  [0x42, "gfx1013"],
  [0x43, "gfx1150"],
  [0x44, "gfx1103"],
  [0x45, "gfx1036"],
  [0x46, "gfx1101"],
  [0x47, "gfx1102"],
  [0x48, "gfx1200"],
  [0x49, "gfx1250"],
  [0x4a, "gfx1151"],
  [0x4b, "gfx941"],
  [0x4c, "gfx942"],
  [0x4e, "gfx1201"],
  [0x4f, "gfx950"],
  [0x50, "gfx1310"],
  [0x51, "gfx9-generic"],
  [0x52, "gfx10-1-generic"],
  [0x53, "gfx10-3-generic"],
  [0x54, "gfx11-generic"],
  [0x55, "gfx1152"],
  [0x57, "gfx1154"],
  [0x58, "gfx1153"],
  [0x59, "gfx12-generic"],
  [0x5a, "gfx1251"],
  [0x5b, "gfx12-5-generic"],
  [0x5c, "gfx1172"],
  [0x5d, "gfx1170"],
  [0x5e, "gfx1171"],
  [0x5f, "gfx9-4-generic"],
  [0x62, "gfx11-7-generic"],
  [0x63, "gfx13-generic"],
  [0xeb, "gfx1250-strict"],
]);

const NUMBERS: ReadonlyMap<string, number> = new Map([...PROCESSORS].map(([number, name]) => [name, number]));

/** Which processors run a generic target's code objects. A table: membership does not follow from a name's digits. */
const GENERIC_MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["gfx9-generic", ["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]],
  ["gfx9-4-generic", ["gfx940", "gfx941", "gfx942", "gfx950"]],
  ["gfx10-1-generic", ["gfx1010", "gfx1011", "gfx1012", "gfx1013"]],
  ["gfx10-3-generic", ["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]],
  [
    "gfx11-generic",
    ["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"],
  ],
  ["gfx11-7-generic", ["gfx1170", "gfx1171", "gfx1172"]],
  ["gfx12-generic", ["gfx1200", "gfx1201"]],
  ["gfx12-5-generic", ["gfx1250", "gfx1251"]],
  ["gfx13-generic", ["gfx1310"]],
]);

const XNACK: ReadonlySet<string> = new Set(
  (
    "gfx801 gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c " +
    "gfx940 gfx941 gfx942 gfx950 gfx1010 gfx1011 gfx1012 gfx1013"
  ).split(" "),
);
const SRAMECC: ReadonlySet<string> = new Set("gfx906 gfx908 gfx90a gfx940 gfx941 gfx942 gfx950".split(" "));

/** The processor of an `EF_AMDGPU_MACH` number, or undefined when the number is not known (yet). */
export function processorName(machineNumber: number): string | undefined {
  return PROCESSORS.get(machineNumber);
}

/** The `EF_AMDGPU_MACH` number of a processor, or undefined when the name is not known (yet). */
export function processorNumber(processor: string): number | undefined {
  return NUMBERS.get(processor);
}

/** All processors and generic targets that are known by name. */
export function knownProcessors(): readonly string[] {
  return [...NUMBERS.keys()];
}

/** The processors that run code objects of a generic target, or undefined when it is not a known generic target. */
export function genericMembers(processor: string): readonly string[] | undefined {
  return GENERIC_MEMBERS.get(processor);
}

/** The generic targets whose code objects run on `processor`. */
export function genericTargetsOf(processor: string): readonly string[] {
  return [...GENERIC_MEMBERS]
    .filter(([, members]) => members.includes(processor))
    .map(([generic]) => generic);
}

/** Whether code objects of `processor` are built with XNACK on or off. */
export function knowsXnack(processor: string): boolean {
  return XNACK.has(processor);
}

/** Whether code objects of `processor` are built with SRAM ECC on or off. */
export function knowsSramecc(processor: string): boolean {
  return SRAMECC.has(processor);
}
