import { ByteWriter } from "../../src/bytes/byte-writer.ts";
import { encodeUtf8 } from "../../src/bytes/text.ts";

/** A COFF object file with one section, whose name stands in the string table when it is long. */
export function buildCoffObject(name: string, content: Uint8Array): Uint8Array {
  const writer = new ByteWriter();
  const rawOffset = 60;
  writer.u16(0x8664);
  writer.u16(1);
  writer.u32(0);
  writer.u32(rawOffset + content.length); // symbol table: empty, the string table follows
  writer.u32(0);
  writer.u16(0);
  writer.u16(0);
  writer.append(fixedText(name.length > 8 ? "/4" : name));
  writer.u32(0);
  writer.u32(0);
  writer.u32(content.length);
  writer.u32(rawOffset);
  writer.append(new Uint8Array(12));
  writer.u32(0x40000040);
  writer.append(content);
  writer.u32(4 + name.length + 1);
  writer.append(encodeUtf8(name));
  writer.u8(0);
  return writer.finish().slice();
}

function fixedText(text: string): Uint8Array {
  const bytes = new Uint8Array(8);
  bytes.set(encodeUtf8(text));
  return bytes;
}
