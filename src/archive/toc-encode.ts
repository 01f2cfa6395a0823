import { MessagePackWriter } from "../msgpack/message-pack-writer.ts";
import type { NewSchemeFields } from "../scheme/scheme.ts";
import type { EncodedField } from "./archive-entry.ts";
import { FORMAT_VERSION } from "./header.ts";

export interface NewEntry {
  readonly binaryKey: string;
  readonly target: string;
  readonly ordinal: number;
  readonly originalSize: number;
  readonly position: number;
  readonly fields: readonly EncodedField[];
}

export interface NewToc {
  readonly groupName: string;
  readonly family: string;
  readonly targets: readonly string[];
  /** In TOC order; those of one binary need not be neighbours. */
  readonly entries: readonly NewEntry[];
  readonly schemeName: string;
  readonly schemeFields: NewSchemeFields;
  readonly extraFields: NewSchemeFields;
  readonly carriedFields: readonly EncodedField[];
}

const BASE_KEYS: readonly string[] = [
  "format_version",
  "group_name",
  "gfx_arch_family",
  "gfx_arches",
  "toc",
  "compression_scheme",
];
const ENTRY_KEYS: readonly string[] = ["type", "ordinal", "original_size"];

/**
 * Encodes a TOC with its keys in the order in which ROCm's tool writes them. No key is written twice: carried fields
 * give way to those that are made anew.
 * @throws TypeError when a scheme takes a name that is not its own to take
 */
export function encodeToc(toc: NewToc): Uint8Array {
  const binaries = Map.groupBy(toc.entries, (entry) => entry.binaryKey);
  const taken = new Set([...BASE_KEYS, ...Object.keys(toc.extraFields)]);
  for (const name of Object.keys(toc.schemeFields)) {
    if (taken.has(name))
      throw new TypeError(`the scheme ${toc.schemeName} may not write the TOC field ${name}`);
    taken.add(name);
  }
  const ownFields = [...Object.entries(toc.schemeFields), ...Object.entries(toc.extraFields)];
  const carried = withoutNames(toc.carriedFields, taken);
  const writer = new MessagePackWriter(4096);
  writer.mapHeader(6 + ownFields.length + carried.length);
  writer.string("format_version");
  writer.integer(FORMAT_VERSION);
  writer.string("group_name");
  writer.string(toc.groupName);
  writer.string("gfx_arch_family");
  writer.string(toc.family);
  writer.string("gfx_arches");
  writer.value(toc.targets);
  writer.string("toc");
  writer.mapHeader(binaries.size);
  for (const [binaryKey, entries] of binaries) {
    writer.string(binaryKey);
    writer.mapHeader(entries.length);
    for (const entry of entries) writeEntry(writer, entry);
  }
  writer.string("compression_scheme");
  writer.string(toc.schemeName);
  for (const [name, value] of ownFields) {
    writer.string(name);
    writer.value(value);
  }
  for (const { name, value } of carried) {
    writer.string(name);
    writer.raw(value);
  }
  return writer.finish();
}

function writeEntry(writer: MessagePackWriter, entry: NewEntry): void {
  const type = entry.fields.find((field) => field.name === "type");
  const others = withoutNames(entry.fields, new Set(ENTRY_KEYS));
  writer.string(entry.target);
  writer.mapHeader(3 + others.length);
  writer.string("type");
  if (type) writer.raw(type.value);
  else writer.string("hsaco");
  writer.string("ordinal");
  writer.integer(entry.ordinal);
  writer.string("original_size");
  writer.integer(entry.originalSize);
  for (const field of others) {
    writer.string(field.name);
    writer.raw(field.value);
  }
}

/** The fields whose names are not in `taken` and did not come before. */
function withoutNames(fields: readonly EncodedField[], taken: Set<string>): readonly EncodedField[] {
  return fields.filter(({ name }) => {
    if (taken.has(name)) return false;
    taken.add(name);
    return true;
  });
}
