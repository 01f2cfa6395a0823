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

/** Encodes a TOC with its keys in the order in which ROCm's tool writes them. */
export function encodeToc(toc: NewToc): Uint8Array {
  const binaries = Map.groupBy(toc.entries, (entry) => entry.binaryKey);
  const ownFields = [...Object.entries(toc.schemeFields), ...Object.entries(toc.extraFields)];
  const carried = toc.carriedFields.filter((field) => !ownFields.some(([name]) => name === field.name));
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
  const others = entry.fields.filter((field) => field.name !== "type");
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
