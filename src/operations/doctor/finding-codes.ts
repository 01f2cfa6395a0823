import type { FindingSeverity } from "../../errors/finding.ts";

/** One kind of finding of `kpack doctor`. docs/findings.md says the same. */
export interface FindingKind {
  /** Stable across versions: `KP101`. */
  readonly code: string;
  readonly title: string;
  /** `error`: a program fails, or gets a wrong kernel. `warning`: it may. `note`: worth knowing. */
  readonly severity: FindingSeverity;
  readonly meaning: string;
  readonly cause: string;
  readonly remedy: string;
}

const KINDS = {
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
  KP301: {
    title: "archive cannot be read",
    severity: "error",
    meaning: "The archive is damaged, or no reader of ROCm takes it.",
    cause: "It was cut short, overwritten or written by a tool of another format.",
    remedy: "Get a fresh copy; kpack verify says more.",
  },
  KP302: {
    title: "archive is not for every reader",
    severity: "warning",
    meaning: "Some of ROCm's readers, or HRX, refuse the archive or find nothing in it.",
    cause: "It uses what the format does not have for all of them.",
    remedy: "Write it anew with kpack convert --scheme zstd-per-kernel.",
  },
  KP303: {
    title: "no archive is where the binary looks",
    severity: "error",
    meaning: "The loader fails with KPACK_ERROR_ARCHIVE_NOT_FOUND (13) on every GPU.",
    cause: "The library was copied without its .kpack folder, or the device package is missing.",
    remedy: "Copy the folder to where the evidence says, or install the device package of the GPU.",
  },
  KP304: {
    title: "no binary reaches the archive",
    severity: "warning",
    meaning: "No converted binary that was looked at has a search path that leads to the archive.",
    cause: "It lies in the wrong folder, has another name than its group, or its library is not installed.",
    remedy: "Move it to where the library looks, or remove it.",
  },
  KP305: {
    title: "target is missing from gfx_arches",
    severity: "error",
    meaning: "The archive has kernels for a target that gfx_arches lacks: ROCm's loader never finds them.",
    cause: "The archive was put together wrong.",
    remedy: "Get a right archive, or write it anew.",
  },
  KP306: {
    title: "target without kernels",
    severity: "warning",
    meaning: "gfx_arches lists a target that no kernel is for; loaders up to ROCm 7.14 stop at its misses.",
    cause: "The archive was put together wrong, or lost kernels.",
    remedy: "Get a right archive, or write it anew.",
  },
  KP307: {
    title: "code object is for another target",
    severity: "error",
    meaning:
      "A kernel was built for another GPU than the archive says: HIP refuses it, or it fails when it runs.",
    cause: "Kernels were mixed up when the archive was written.",
    remedy: "Get a right archive; kpack verify lists all such kernels.",
  },
  KP308: {
    title: "name with a colon where it cannot work",
    severity: "error",
    meaning: "Windows allows no colon in names of files, so the archive cannot be unpacked or opened there.",
    cause: "Archives of flag variants are named after their target: torch_gfx90a:xnack-.kpack.",
    remedy: "Ship variants for Windows under names without a colon, and search paths that name them.",
  },
  KP309: {
    title: "compression would save a third or more",
    severity: "note",
    meaning:
      "The archive holds its kernels as they are; samples say that zstd makes it a third smaller or more.",
    cause: "It was written with the scheme none.",
    remedy: "kpack convert ARCHIVE -o NEW --scheme zstd-per-kernel",
  },
  KP310: {
    title: "archives of one name differ",
    severity: "warning",
    meaning:
      "Two archives have the same name and different contents; copied into one folder, one replaces the other.",
    cause: "Two ROCm copies or two builds are installed beside each other.",
    remedy: "Keep the one that belongs to the library beside it; do not merge the folders.",
  },
  KP311: {
    title: "archive is larger than 2 GiB",
    severity: "warning",
    meaning: "Some readers of 2026 seek with 32-bit offsets and fail on archives of this size on Windows.",
    cause: "Too many kernels are in one archive, or they are not compressed.",
    remedy: "Split it by target, or compress it with kpack convert --scheme zstd-per-kernel.",
  },
  KP312: {
    title: "GPU gets no kernel",
    severity: "error",
    meaning:
      "Neither the binary itself nor an archive that the loader finds has a kernel of it for a GPU that --isa names, " +
      "or for one that an archive has kernels for.",
    cause:
      "The device package of this GPU is missing, the library was not built for it, or its archive has another name " +
      "than the loader looks for.",
    remedy: "Install the device package of the GPU.",
  },
  KP313: {
    title: "kernel is damaged",
    severity: "error",
    meaning:
      "A kernel cannot be read, or is not what the archive says of it. Without --deep only kernels whose place is " +
      "impossible are noticed.",
    cause: "The archive was damaged after it was written.",
    remedy: "Get a fresh copy; kpack verify lists all such kernels.",
  },
  KP314: {
    title: "archive is not for the target in its name",
    severity: "error",
    meaning:
      "The loader opens the archive for a GPU by its name and finds nothing for that GPU in it: " +
      "KPACK_ERROR_ARCH_NOT_FOUND (14).",
    cause: "An archive for another GPU was copied or renamed to this name.",
    remedy: "Replace it by the archive for that GPU of the same build, or remove it.",
  },
  KP315: {
    title: "link to an archive leads nowhere",
    severity: "warning",
    meaning:
      "Where a binary looks for an archive stands a symbolic link without a file behind it; the loader takes it as missing.",
    cause: "The archive that it leads to was moved or removed, or the link leads back to itself.",
    remedy: "Install or copy the archive to where the link leads, or remove the link.",
  },
  KP401: {
    title: "program headers are damaged",
    severity: "error",
    meaning:
      "Segments contradict each other or the file, so that the binary may not load or not find its metadata.",
    cause: "An old patchelf changed a converted binary whose program headers had been moved.",
    remedy: "Install the binary anew, and use patchelf 0.18 or later, or none.",
  },
  KP402: {
    title: "old kernels misplace the program headers",
    severity: "warning",
    meaning:
      "Linux before 5.18 computes where an executable's program headers are from its first segment; here that gives " +
      "a wrong address, and the program crashes on start.",
    cause: "The table was moved to the end of the file at an address that does not fit its offset.",
    remedy: "Convert the original executable again with a newer tool, or run it on Linux 5.18 or later.",
  },
  KP403: {
    title: "segments share a file offset",
    severity: "warning",
    meaning:
      "A zero-filled segment stands at the file offset of another one; strip, objcopy and patchelf break such files.",
    cause: "The converter took the kernels' pages out and left the segment's offset.",
    remedy: "Do not run such tools on it, or convert the original again with a newer tool.",
  },
  KP501: {
    title: "package lost a file",
    severity: "error",
    meaning:
      "A Python package that brought archives or libraries with device code lists an archive or shared library that " +
      "is not there.",
    cause: "It was removed by hand, or another package of the same file was uninstalled.",
    remedy: "pip install --force-reinstall the package.",
  },
  KP502: {
    title: "package's file was replaced",
    severity: "warning",
    meaning: "An archive's size is not the one that its Python package lists.",
    cause: "Another package or a copy replaced it, perhaps by a smaller build of the same name.",
    remedy: "pip install --force-reinstall the package whose build is wanted.",
  },
  KP503: {
    title: "two packages bring one file",
    severity: "warning",
    meaning: "Two Python packages list the same archive: whichever was installed last has won.",
    cause: "Packages of two builds are installed in one environment.",
    remedy: "Uninstall one of the packages, and reinstall the other.",
  },
  KP601: {
    title: "kernel database is incomplete",
    severity: "warning",
    meaning: "A library has code objects without an index for a target, or an index without code objects.",
    cause: "Only a part of the files was copied or installed.",
    remedy: "Install the library's files for this target anew.",
  },
  KP602: {
    title: "kernel database lacks the GPU",
    severity: "warning",
    meaning: "A library has database files for other GPUs, but none for one that --isa names.",
    cause: "The library was not built for this GPU, or its files were not installed.",
    remedy: "Install the library's files for this GPU.",
  },
  KP701: {
    title: "file cannot be looked at",
    severity: "warning",
    meaning: "A file could not be opened or read, so nothing is known about it.",
    cause: "Usually its permissions.",
    remedy: "Run the command as a user who may read it.",
  },
} as const satisfies Readonly<Record<string, Omit<FindingKind, "code">>>;

export type DoctorCode = keyof typeof KINDS;

/** All kinds, in the order of their codes. */
export const FINDING_KINDS: readonly FindingKind[] = Object.entries(KINDS).map(([code, kind]) => ({
  code,
  ...kind,
}));

/** The kind with this code in any case, or undefined. */
export function findKind(code: string): FindingKind | undefined {
  return FINDING_KINDS.find((kind) => kind.code === code.toUpperCase());
}

/** The kind of a code that is known to exist. */
export function kindOf(code: DoctorCode): Omit<FindingKind, "code"> {
  return KINDS[code];
}
