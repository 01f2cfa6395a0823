import { ByteReader } from "../bytes/byte-reader.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";

/**
 * The 24-byte wrappers of `.hipFatBinSegment`, through which the program registers its kernels.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | magic: 0x48495046 `HIPF`; 0x4B504948 `HIPK` once converted |
 * | 4 | 4 | version, 1 |
 * | 8 | 8 | pointer to the bundle; once converted, to the metadata |
 * | 16 | 4 | once converted, the index of the code object (`reserved1`) |
 * | 20 | 4 | 0 |
 */
export interface RawWrapper {
  /** Position in the section, which is part of the kernels' keys. */
  readonly index: number;
  /** Offset in the section. */
  readonly offset: number;
  readonly magic: WrapperMagic;
  /** The word in the file; a relocation may change it. */
  readonly word: bigint;
  readonly reserved1: number;
}

/** A wrapper with what it points to. */
export interface Wrapper {
  /** Position in the section: part of the key of the bundle's kernels. */
  readonly index: number;
  readonly magic: WrapperMagic;
  readonly fileOffset: number;
  /** In memory; in an object file the offset in its section. */
  readonly address: number;
  /** The address that it points to once the file is loaded, or undefined when only the loader knows. */
  readonly pointsTo: number | undefined;
  /** How the pointer gets its value, for example `R_X86_64_RELATIVE` or `RELR`; undefined when it stands in the file. */
  readonly relocation: string | undefined;
  /** The bundle that it points to. Several wrappers may share one. */
  readonly bundleIndex: number | undefined;
  readonly reserved1: number;
}

export type WrapperMagic = "HIPF" | "HIPK";

export const WRAPPER_SIZE = 24;
/** Offset in a wrapper of its pointer. */
export const WRAPPER_POINTER_OFFSET = 8;

const MAGICS: ReadonlyMap<number, WrapperMagic> = new Map([
  [0x48495046, "HIPF"],
  [0x4b504948, "HIPK"],
]);
const VERSION = 1;

/**
 * Parses all whole wrappers of a section. All-zero ones, as sanitizers pad with, and bytes behind the last whole one
 * are findings.
 * @throws FormatError `BAD_MAGIC` or `UNSUPPORTED_VERSION` naming the wrapper.
 */
export function parseWrappers(
  bytes: Uint8Array,
  place: { readonly file: string; readonly fileOffset: number },
  onFinding?: OnFinding,
): readonly RawWrapper[] {
  const reader = new ByteReader(bytes, { file: place.file, base: place.fileOffset });
  const wrappers: RawWrapper[] = [];
  for (let index = 0; reader.remaining >= WRAPPER_SIZE; index++) {
    const offset = reader.position;
    const field = `wrapper[${index}]`;
    if (bytes.subarray(offset, offset + WRAPPER_SIZE).every((byte) => byte === 0)) {
      onFinding?.({
        severity: "warning",
        code: "EMPTY_WRAPPER",
        message: "all bytes of the wrapper are zero",
        file: place.file,
        field,
        offset: place.fileOffset + offset,
      });
      reader.skip(WRAPPER_SIZE, field);
      continue;
    }
    const magic = parseMagic(reader, field); // 0
    const version = reader.u32(`${field}.version`); // 4
    if (version !== VERSION) {
      throw new FormatError("UNSUPPORTED_VERSION", "this version of wrappers is not known", {
        ...reader.details(`${field}.version`, reader.offset - 4),
        expected: VERSION,
        found: version,
      });
    }
    const word = reader.u64Big(`${field}.pointer`); // 8
    const reserved1 = reader.u32(`${field}.reserved1`); // 16
    reader.skip(4, `${field}.reserved2`); // 20
    wrappers.push({ index, offset, magic, word, reserved1 });
  }
  if (reader.remaining > 0) {
    onFinding?.({
      severity: "warning",
      code: "WRAPPER_REMAINDER",
      message: `${reader.remaining} bytes behind the last wrapper are no whole wrapper`,
      file: place.file,
      field: "wrappers",
      offset: reader.offset,
    });
  }
  return wrappers;
}

function parseMagic(reader: ByteReader, field: string): WrapperMagic {
  const found = reader.u32(`${field}.magic`);
  const magic = MAGICS.get(found);
  if (magic === undefined) {
    throw new FormatError("BAD_MAGIC", "this is no wrapper of a fat binary", {
      ...reader.details(`${field}.magic`, reader.offset - 4),
      expected: "0x48495046 (HIPF) or 0x4b504948 (HIPK)",
      found: `0x${found.toString(16).padStart(8, "0")}`,
    });
  }
  return magic;
}
