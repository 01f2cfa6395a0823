import { TARGET_COUNT_LIMIT } from "../bytes/limits.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { decodeEntries } from "./toc-decode-entries.ts";
import type { EntryColumns } from "./toc-columns.ts";
import type { Toc, TocField } from "./toc.ts";

/** An entry's map is the fourth: TOC, toc, binary, entry. */
const ENTRY_DEPTH = 4;

export interface TocPlace {
  readonly file: string;
  /** Absolute offset of the TOC. */
  readonly tocOffset: number;
  /** Names of the schemes that are known, for a message. */
  readonly schemeNames: readonly string[];
}

/**
 * Decodes and checks a table of contents, in one pass over its bytes.
 * Keys that are missing but not needed are left undefined; the caller decides what it thinks of that.
 * @throws FormatError naming the field
 * @throws LimitError for more targets than `TARGET_COUNT_LIMIT`
 */
export function decodeToc(bytes: Uint8Array, place: TocPlace): Toc {
  const where = { file: place.file, base: place.tocOffset };
  const readerAt = (position: number): MessagePackReader => new MessagePackReader(bytes, where, position);
  const reader = readerAt(0);
  if (reader.kind("TOC") !== "map") {
    throw reader.error("WRONG_TYPE", "the table of contents is no map", "TOC", "map", reader.kind("TOC"));
  }
  const pairs = reader.mapSize("TOC");
  const fields: TocField[] = [];
  const presentKeys = new Set<string>();
  let entries: EntryColumns | undefined;
  let formatVersion: number | undefined;
  let groupName: string | undefined;
  let family: string | undefined;
  let targets: readonly string[] | undefined;
  let schemeName: string | undefined;
  let depth = 2;
  for (let pair = 0; pair < pairs; pair++) {
    const keyStart = reader.position;
    const name = reader.string("key of the TOC");
    if (presentKeys.has(name)) {
      reader.position = keyStart;
      throw reader.error("DUPLICATE_KEY", "the same key stands twice in the TOC", name);
    }
    presentKeys.add(name);
    switch (name) {
      case "format_version":
        formatVersion = reader.unsigned(name);
        break;
      case "group_name":
        groupName = reader.string(name);
        break;
      case "gfx_arch_family":
        family = reader.string(name);
        break;
      case "gfx_arches":
        targets = readTargets(reader, name, place);
        break;
      case "compression_scheme":
        schemeName = readSchemeName(reader, name, place.schemeNames);
        break;
      case "toc":
        reader.deepest = 0;
        entries = decodeEntries(reader, place);
        depth = Math.max(depth, ENTRY_DEPTH + reader.deepest);
        break;
      default: {
        const start = reader.position;
        reader.deepest = 0;
        reader.skip(name);
        depth = Math.max(depth, 1 + reader.deepest);
        fields.push({ name, start, end: reader.position });
      }
    }
  }
  if (entries === undefined) {
    throw new FormatError("MISSING_KEY", "the TOC has no map of kernels", {
      file: place.file,
      field: "toc",
      offset: place.tocOffset,
    });
  }
  return {
    formatVersion,
    groupName,
    family,
    targets,
    schemeName,
    entries,
    fields,
    bytes,
    size: reader.position,
    depth,
    presentKeys,
    readerAt,
  };
}

function readTargets(reader: MessagePackReader, field: string, place: TocPlace): readonly string[] {
  const offset = place.tocOffset + reader.position;
  const count = reader.arraySize(field);
  if (count > TARGET_COUNT_LIMIT) {
    throw new LimitError("LIMIT_EXCEEDED", "the archive lists more targets than an archive may", {
      file: place.file,
      field,
      offset,
      expected: `at most ${TARGET_COUNT_LIMIT} targets`,
      found: count,
    });
  }
  const targets: string[] = [];
  for (let index = 0; index < count; index++) targets.push(reader.string(`${field}[${index}]`));
  return targets;
}

function readSchemeName(reader: MessagePackReader, field: string, known: readonly string[]): string {
  const kind = reader.kind(field);
  if (kind !== "string") {
    throw reader.error("UNKNOWN_SCHEME", "the compression scheme is no text", field, known.join(", "), kind);
  }
  return reader.string(field);
}
