import { BINARY_KINDS } from "./binary-kinds.ts";
import type { FindingKind } from "./finding-kind.ts";

export type { FindingKind } from "./finding-kind.ts";

const KINDS = {
  ...BINARY_KINDS,
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
