import type { FindingKind } from "./finding-kind.ts";

/** Kinds of findings about binaries (KP1xx), and about binaries and the keys in archives (KP2xx). */
export const BINARY_KINDS = {
  KP101: {
    title: "binary holds its kernels itself",
    severity: "note",
    meaning: "The binary is not converted: its kernels are in the file, and no archive is looked for.",
    cause: "It was built without kpack, or the split left it out.",
    remedy:
      "Nothing, if that is meant: it loads as ever. To move the kernels into archives, convert the tree with ROCm's own splitting tool.",
  },
  KP102: {
    title: "binary is half converted",
    severity: "error",
    meaning:
      "Some parts of the binary say that its kernels were moved out and others do not, so HIP refuses it.",
    cause: "A conversion was interrupted, or a tool restored a part of the old file.",
    remedy: "Install the library anew, or convert the original again.",
  },
  KP103: {
    title: "HIPK metadata cannot be read",
    severity: "error",
    meaning: "The loader fails with KPACK_ERROR_INVALID_METADATA (12) for every kernel of the binary.",
    cause: "The section .rocm_kpack_ref (.kpackrf) is damaged, or lacks kernel_name or any search path.",
    remedy: "Install the library anew.",
  },
  KP104: {
    title: "converted wrapper points to no metadata",
    severity: "error",
    meaning: "The runtime follows the wrapper's pointer and finds no HIPK metadata there.",
    cause: "ROCm's first converter lost the pointers of non-PIE programs and of RELR relocations.",
    remedy: "Convert the original binary again with a newer tool.",
  },
  KP105: {
    title: "binary is damaged",
    severity: "warning",
    meaning:
      "The file has the magic of a program or library, but its headers or its device code cannot be read.",
    cause: "The file is cut short, or a tool wrote it wrong.",
    remedy: "Get a fresh copy of the file.",
  },
  KP201: {
    title: "wrapper has no key for any target",
    severity: "error",
    meaning: "The program has a part whose kernels no archive that it can reach holds, for no GPU at all.",
    cause:
      "The library and the archives come from different builds, or the archives count wrappers otherwise.",
    remedy: "Install the library and its archives from one build.",
  },
  KP202: {
    title: "target has a hole",
    severity: "warning",
    meaning:
      "The library has kernels for this target, but some of its wrappers have none: error 5 at run time where the " +
      "kernels are in archives, and no code for the GPU where they are in the binary itself.",
    cause: "That part was not built for the target, or the archive was replaced by a smaller build.",
    remedy: "If the part should work on this GPU, install library and archives from one build.",
  },
  KP203: {
    title: "key has no wrapper",
    severity: "warning",
    meaning: "An archive has a kernel for an index that no wrapper of the library asks for.",
    cause: "The library is of another build than the archive, or the two count differently.",
    remedy: "Install the library and its archives from one build.",
  },
  KP204: {
    title: "wrapper's index is not its position",
    severity: "error",
    meaning:
      "Wrappers ask for kernels under indexes that are permuted or used twice: a program may get a wrong kernel.",
    cause:
      "The converter counted in another order than the wrappers stand in, or the file was changed later.",
    remedy: "Convert the original binary again.",
  },
  KP205: {
    title: "keys may be counted per target",
    severity: "warning",
    meaning:
      "Targets with fewer kernels than the library has wrappers have them at #0, #1 … without a gap, and the kernels " +
      "do not tell whether they are the first ones. If not, the runtime gets no kernel or a wrong one.",
    cause: "ROCm's tool counts code objects per target, the runtime asks by the wrapper's position.",
    remedy:
      "Compare with the original binary (kpack list), and split it anew if its missing parts are not the last.",
  },
  KP206: {
    title: "keys have no index",
    severity: "error",
    meaning: "The archive has keys without #N. The loader always asks with an index, and never finds them.",
    cause: "The archive was written by a tool from before 2026.",
    remedy: "Pack the kernels anew with a current tool.",
  },
  KP207: {
    title: "archives belong to another binary",
    severity: "error",
    meaning: "The archives that the binary reaches have no kernel under its name.",
    cause: "The library was renamed or moved before the split, or is paired with archives of another build.",
    remedy: "Install the library and its archives from one build.",
  },
  KP208: {
    title: "variant hides the base archive",
    severity: "warning",
    meaning:
      "An archive for a flag variant (…:xnack-) has only some of the kernels of the base archive. Loaders up to ROCm " +
      "7.14 stop at its miss with error 5; later ones go on to the base archive.",
    cause: "The split put the variant's kernels into an archive of their own.",
    remedy: "Use ROCm later than 7.14, or merge the two archives.",
  },
  KP209: {
    title: "one index leads to different parts",
    severity: "error",
    meaning:
      "Under one index the archives have kernel functions of different parts of the library: on some GPUs the runtime " +
      "gets the wrong kernels, and functions are not found.",
    cause:
      "The tool that split the library counts code objects per target, and not every part was built for each.",
    remedy:
      "Convert the original binary anew with a tool that counts wrappers by their position in the file.",
  },
} as const satisfies Readonly<Record<string, Omit<FindingKind, "code">>>;
