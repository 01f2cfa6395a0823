import { encodeUtf8 } from "../bytes/text.ts";
import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { equalRuns } from "./toc.ts";

/** A map of three pairs: "type" and "hsaco", "ordinal"; then "original_size". */
const TYPE_HSACO: readonly number[] = [0xa4, ...encodeUtf8("type"), 0xa5, ...encodeUtf8("hsaco")];
const BEGINNING: Uint8Array = Uint8Array.of(0x83, ...TYPE_HSACO, 0xa7, ...encodeUtf8("ordinal"));
const MIDDLE: Uint8Array = Uint8Array.of(0xad, ...encodeUtf8("original_size"));

/**
 * Reads the entry that stands at the reader if it is one as nearly every writer has it: `type` "hsaco", `ordinal`,
 * `original_size`, in this order. It is recognised by its bytes, which is several times faster than going through it
 * key by key. False: it is another one, and the reader stands where it stood.
 */
export function readUsualEntry(
  reader: MessagePackReader,
  entry: { ordinal: number; originalSize: number },
): boolean {
  const start = reader.position;
  if (equalRuns(reader.bytes, start, BEGINNING, 0, BEGINNING.length)) {
    reader.position = start + BEGINNING.length;
    entry.ordinal = readUnsigned(reader);
    if (entry.ordinal >= 0 && equalRuns(reader.bytes, reader.position, MIDDLE, 0, MIDDLE.length)) {
      reader.position += MIDDLE.length;
      entry.originalSize = readUnsigned(reader);
      if (entry.originalSize >= 0) return true;
    }
  }
  reader.position = start;
  return false;
}

/** An integer of at most 32 bits in one of its unsigned forms, or -1. */
function readUnsigned(reader: MessagePackReader): number {
  const { bytes, position } = reader;
  const tag = bytes[position] ?? 0xc1;
  const width = tag <= 0x7f ? 0 : tag === 0xcc ? 1 : tag === 0xcd ? 2 : tag === 0xce ? 4 : -1;
  if (width < 0 || position + width >= bytes.length) return -1;
  reader.position = position + 1 + width;
  if (width === 0) return tag;
  let value = 0;
  for (let index = 1; index <= width; index++) value = value * 256 + (bytes[position + index] ?? 0);
  return value;
}
