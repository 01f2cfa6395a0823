import { ByteReader } from "../bytes/byte-reader.ts";
import { alignUp } from "../bytes/extent.ts";
import { decodeUtf8 } from "../bytes/text.ts";
import type { ElfFile } from "../elf/elf-file.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import { decodeBytes } from "../msgpack/message-pack-decode.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import type { Source } from "../source/source.ts";

/**
 * The notes of a code object, among them the one that describes its kernels.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | size of the owner's name, with its terminator |
 * | 4 | 4 | size of the description |
 * | 8 | 4 | type |
 * | 12 | … | owner, padded; description, padded |
 *
 * | code object version | owner | type | description |
 * | --- | --- | --- | --- |
 * | 3 and later | `AMDGPU` | 32 | MessagePack map |
 * | 2 | `AMD` | 10 | YAML text |
 * | 2 | `AMD` | 11 | name of the target: `amdgcn-amd-amdhsa--gfx803` |
 */
export interface ElfNote {
  readonly owner: string;
  readonly type: number;
  readonly description: Uint8Array;
  /** Offset in the file of the description. */
  readonly offset: number;
}

/** The metadata note, decoded but not interpreted. */
export interface MetadataNote {
  readonly form: "messagepack" | "yaml";
  readonly root: ReadonlyMap<MessagePackValue, MessagePackValue>;
  /** What a note of its own says about the target, in version 2. */
  readonly targetText: string | undefined;
}

const SEGMENT_TYPE_NOTE = 4;
const SECTION_TYPE_NOTE = 7;
const METADATA_TYPE = 32;
const METADATA_V2_TYPE = 10;
const TARGET_V2_TYPE = 11;
/** The largest libraries have a few megabytes of metadata in one code object. */
const MOST_NOTE_BYTES = 1 << 28;
/** YAML takes some hundred times its size in memory; nothing larger was ever written as YAML. */
const MOST_YAML_BYTES = 1 << 24;

/**
 * Reads all notes: those of PT_NOTE segments, since a stripped object may lack sections; in an object that is not
 * linked, and so has no segments, those of its note sections.
 */
export async function readNotes(
  source: Source,
  elf: ElfFile,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly ElfNote[]> {
  const places =
    elf.segments.length > 0
      ? elf.segments
          .filter(({ type }) => type === SEGMENT_TYPE_NOTE)
          .map(({ offset, fileSize, alignment }) => ({ offset, size: fileSize, alignment }))
      : elf.sections.filter(({ type }) => type === SECTION_TYPE_NOTE);
  const notes: ElfNote[] = [];
  for (const { offset, size, alignment } of places) {
    const field = "notes";
    if (offset + size > source.size) {
      throw new FormatError("OUT_OF_BOUNDS", "the notes end behind the end of the code object", {
        file: source.name,
        field,
        offset,
        expected: `at most ${source.size}`,
        found: offset + size,
      });
    }
    if (size > MOST_NOTE_BYTES) {
      throw new LimitError("LIMIT_EXCEEDED", "the notes are too large", {
        file: source.name,
        field,
        offset,
        expected: `at most ${MOST_NOTE_BYTES} bytes`,
        found: size,
      });
    }
    const bytes = await source.read(offset, size, options);
    const found = parseNotes(bytes, { file: source.name, base: offset }, alignment === 8 ? 8 : 4);
    for (const note of found) notes.push(note); // millions of empty notes would be too many arguments
  }
  return notes;
}

/** Parses the notes of one segment or section; zero bytes behind the last one are padding. */
export function parseNotes(
  bytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base?: number },
  alignment = 4,
): readonly ElfNote[] {
  const reader = new ByteReader(bytes, place);
  const notes: ElfNote[] = [];
  while (reader.remaining >= 12) {
    const ownerSize = reader.u32("note: size of the owner"); // 0
    const size = reader.u32("note: size of the description"); // 4
    const type = reader.u32("note: type"); // 8
    const owner = reader.take(ownerSize, "note: owner"); // 12
    skipPadding(reader, alignment);
    const offset = reader.offset;
    const description = reader.take(size, "note: description");
    skipPadding(reader, alignment);
    const end = owner.indexOf(0);
    const name = decodeUtf8(end < 0 ? owner : owner.subarray(0, end)) ?? "";
    notes.push({ owner: name, type, description, offset });
  }
  return notes;
}

/**
 * Decodes the note that describes the kernels, or returns undefined when there is none.
 * @throws FormatError `MALFORMED_MSGPACK`, `MALFORMED_TEXT`, `WRONG_TYPE` and what else is wrong with it
 */
export async function decodeMetadataNote(
  notes: readonly ElfNote[],
  file: string,
): Promise<MetadataNote | undefined> {
  const current = notes.find(({ owner, type }) => owner === "AMDGPU" && type === METADATA_TYPE);
  if (current) {
    const root = decodeBytes(current.description, "metadata", { file, base: current.offset });
    return { form: "messagepack", root: requireMap(root, file, current.offset), targetText: undefined };
  }
  const old = notes.find(({ owner, type }) => owner === "AMD" && type === METADATA_V2_TYPE);
  if (!old) return undefined;
  const target = notes.find(({ owner, type }) => owner === "AMD" && type === TARGET_V2_TYPE);
  return {
    form: "yaml",
    root: requireMap(await decodeYaml(old, file), file, old.offset),
    targetText: target && textOf(target.description),
  };
}

async function decodeYaml(note: ElfNote, file: string): Promise<MessagePackValue> {
  const details = { file, field: "metadata", offset: note.offset };
  if (note.description.length > MOST_YAML_BYTES) {
    throw new LimitError("LIMIT_EXCEEDED", "the YAML metadata is too large", {
      ...details,
      expected: `at most ${MOST_YAML_BYTES} bytes`,
      found: note.description.length,
    });
  }
  const text = textOf(note.description);
  if (text === undefined) throw new FormatError("MALFORMED_TEXT", "the metadata is not valid UTF-8", details);
  // Only code objects of version 2 need it: years old, and rare.
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text, { mapAsMap: true, logLevel: "error", uniqueKeys: false });
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    throw new FormatError("MALFORMED_TEXT", `the metadata is no valid YAML: ${reason}`, {
      ...details,
      cause,
    });
  }
  return fromYaml(value);
}

function fromYaml(value: unknown): MessagePackValue {
  if (value instanceof Map) {
    return new Map([...value].map(([key, element]) => [fromYaml(key), fromYaml(element)]));
  }
  if (Array.isArray(value)) return value.map((element) => fromYaml(element));
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
    case "bigint":
      return value;
    default:
      return null; // YAML gives nothing else
  }
}

function requireMap(
  value: MessagePackValue,
  file: string,
  offset: number,
): ReadonlyMap<MessagePackValue, MessagePackValue> {
  if (value instanceof Map) return value;
  throw new FormatError("WRONG_TYPE", "the metadata is no map", {
    file,
    field: "metadata",
    offset,
    expected: "map",
  });
}

function textOf(bytes: Uint8Array): string | undefined {
  return decodeUtf8(bytes)?.replace(/\0+$/, "");
}

function skipPadding(reader: ByteReader, alignment: number): void {
  const padding = alignUp(reader.position, alignment) - reader.position;
  // The last note of a segment need not be padded.
  reader.skip(Math.min(padding, reader.remaining), "note: padding");
}
