import { ELF_HEADER_SIZE, ELF_MACHINE_AMDGPU, hasElfMagic, parseElfHeader } from "../elf/elf-header.ts";
import { FormatError } from "../errors/errors.ts";
import { type CodeObjectTarget, targetFromElfFlags } from "../target/elf-flags.ts";

/**
 * Code objects: what a kernel's bytes are, by their first bytes.
 *
 * | first bytes | kind |
 * | --- | --- |
 * | 7F 45 4C 46 02 01 … machine 224 | code object (ELF64 for AMDGPU) |
 * | 7F 45 4C 46 | another ELF file |
 * | 03 02 23 07 | SPIR-V |
 * | 42 43 C0 DE, or DE C0 17 0B | LLVM bitcode, also with a wrapper |
 * | `__CLANG_OFFLOAD_BUNDLE__` | offload bundle |
 * | `CCOB` | compressed offload bundle |
 */
export type PayloadKind =
  | "code-object"
  | "elf-other"
  | "spirv"
  | "bitcode"
  | "bundle"
  | "compressed-bundle"
  | "empty"
  | "unknown";

/** The header of a code object. */
export interface CodeObjectHeader {
  /** 224. */
  readonly machine: number;
  /** 64 for the HSA runtime, which HIP uses. */
  readonly osAbi: number;
  readonly abiVersion: number;
  /** 3 (shared object) in what the runtime loads. */
  readonly type: number;
  readonly eFlags: number;
  readonly target: CodeObjectTarget;
}

/** How many first bytes are enough for {@link identifyPayload} and {@link readCodeObjectHeader}. */
export const CODE_OBJECT_HEADER_SIZE: number = ELF_HEADER_SIZE;

const MAGICS: readonly (readonly [PayloadKind, string])[] = [
  ["spirv", "\u0003\u0002\u0023\u0007"],
  ["bitcode", "BC\u00c0\u00de"],
  ["bitcode", "\u00de\u00c0\u0017\u000b"],
  ["bundle", "__CLANG_OFFLOAD_BUNDLE__"],
  ["compressed-bundle", "CCOB"],
];

/** What a payload is, from its first bytes: all of it, or at least {@link CODE_OBJECT_HEADER_SIZE} bytes. */
export function identifyPayload(firstBytes: Uint8Array): PayloadKind {
  if (firstBytes.length === 0) return "empty";
  if (hasElfMagic(firstBytes)) return isCodeObject(firstBytes) ? "code-object" : "elf-other";
  return MAGICS.find(([, magic]) => startsWith(firstBytes, magic))?.[0] ?? "unknown";
}

/**
 * Reads the header of a code object from its first {@link CODE_OBJECT_HEADER_SIZE} bytes.
 * A processor that is not known is no error: see {@link CodeObjectTarget}.
 * @throws FormatError when the bytes are no ELF64 header for AMDGPU.
 */
export function readCodeObjectHeader(
  firstBytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base?: number } = {},
): CodeObjectHeader {
  const { machine, osAbi, abiVersion, type, flags } = parseElfHeader(firstBytes, place);
  if (machine !== ELF_MACHINE_AMDGPU) {
    throw new FormatError("WRONG_TYPE", "this ELF file is no code object for an AMD GPU", {
      file: place.file,
      field: "elf machine",
      offset: (place.base ?? 0) + 18,
      expected: ELF_MACHINE_AMDGPU,
      found: machine,
    });
  }
  return { machine, osAbi, abiVersion, type, eFlags: flags, target: targetFromElfFlags(abiVersion, flags) };
}

/** ELF64, little-endian, machine 224. */
function isCodeObject(bytes: Uint8Array): boolean {
  return bytes[4] === 2 && bytes[5] === 1 && bytes[18] === ELF_MACHINE_AMDGPU && bytes[19] === 0;
}

function startsWith(bytes: Uint8Array, magic: string): boolean {
  for (let index = 0; index < magic.length; index++) {
    if (bytes[index] !== magic.charCodeAt(index)) return false;
  }
  return true;
}
