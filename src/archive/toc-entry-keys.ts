import { encodeUtf8 } from "../bytes/text.ts";
import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { equalRuns } from "./toc.ts";

const USUAL_KEYS = ["type", "ordinal", "original_size", "metadata"].map((name) => ({
  name,
  bytes: encodeUtf8(name),
}));

/** Reads a key of an entry. The usual ones are told apart by their bytes before a string is made. */
export function takeEntryKey(reader: MessagePackReader): string {
  const start = reader.position;
  const size = reader.stringSize("key of an entry");
  const at = reader.position;
  for (const usual of USUAL_KEYS) {
    if (usual.bytes.length === size && equalRuns(usual.bytes, 0, reader.bytes, at, size)) {
      reader.position = at + size;
      return usual.name;
    }
  }
  reader.position = start;
  return reader.string("key of an entry");
}

/** From so many keys on a set is made, which is slower for the few that entries have. */
const SET_FROM = 16;

/** The keys of one entry, to see whether one stands twice. */
export class EntryKeys {
  readonly #few: string[] = [];
  #many: Set<string> | undefined;

  /** Adds a key; false when it is there already. */
  add(key: string): boolean {
    if (this.#many?.has(key) ?? this.#few.includes(key)) return false;
    if (this.#many) this.#many.add(key);
    else this.#few.push(key);
    if (this.#few.length === SET_FROM) this.#many ??= new Set(this.#few);
    return true;
  }
}
