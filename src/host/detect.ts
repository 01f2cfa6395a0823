import { COFF_MACHINE_X86_64 } from "../coff/coff-file.ts";
import { CODE_OBJECT_HEADER_SIZE, identifyPayload } from "../code-object/code-object.ts";
import type { Source } from "../source/source.ts";

/** What a file is, by its first bytes. */
export type FileKind =
  | "elf-host"
  | "coff-host"
  | "code-object"
  | "bundle"
  | "compressed-bundle"
  | "kpack"
  | "other";

const COFF_HEADER_SIZE = 20;
const COFF_SECTION_SIZE = 40;

/** Tells what a file is from its first bytes, never from its name. At most two small reads. */
export async function detectFile(
  source: Source,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<FileKind> {
  const bytes = await source.read(0, Math.min(CODE_OBJECT_HEADER_SIZE, source.size), options);
  if (startsWith(bytes, [0x4b, 0x50, 0x41, 0x4b])) return "kpack"; // KPAK
  const kind = identifyPayload(bytes);
  switch (kind) {
    case "code-object":
    case "bundle":
    case "compressed-bundle":
      return kind;
    case "elf-other":
      return isElf64(bytes) ? "elf-host" : "other";
    default:
      break;
  }
  if (startsWith(bytes, [0x4d, 0x5a])) return (await isImage(source, bytes, options)) ? "coff-host" : "other";
  return isCoffObject(bytes, source.size) ? "coff-host" : "other";
}

/** Little-endian, and with a whole header. */
function isElf64(bytes: Uint8Array): boolean {
  return bytes.length === CODE_OBJECT_HEADER_SIZE && bytes[4] === 2 && bytes[5] === 1;
}

async function isImage(
  source: Source,
  bytes: Uint8Array,
  options: { readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  if (bytes.length < 64) return false;
  const offset = viewOf(bytes).getUint32(60, true);
  if (offset + 4 > source.size) return false;
  return startsWith(await source.read(offset, 4, options), [0x50, 0x45, 0, 0]);
}

/** COFF object files have no magic: a known machine, no optional header, and tables inside the file. */
function isCoffObject(bytes: Uint8Array, fileSize: number): boolean {
  if (bytes.length < COFF_HEADER_SIZE) return false;
  const view = viewOf(bytes);
  const sectionCount = view.getUint16(2, true);
  return (
    view.getUint16(0, true) === COFF_MACHINE_X86_64 &&
    view.getUint16(16, true) === 0 &&
    sectionCount > 0 &&
    COFF_HEADER_SIZE + sectionCount * COFF_SECTION_SIZE <= fileSize &&
    view.getUint32(8, true) <= fileSize
  );
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function startsWith(bytes: Uint8Array, magic: readonly number[]): boolean {
  return magic.every((byte, index) => bytes[index] === byte);
}
