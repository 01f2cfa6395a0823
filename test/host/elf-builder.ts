import { ByteWriter } from "../../src/bytes/byte-writer.ts";
import { alignUp } from "../../src/bytes/extent.ts";
import { encodeUtf8 } from "../../src/bytes/text.ts";
import { concat } from "../bundle/bundle-builder.ts";

/** A non-PIE host binary: addresses are offsets in the file, and the wrappers hold their pointers. */
export interface BuiltHost {
  readonly bytes: Uint8Array;
  /** Offset in the file of the section `.hip_fatbin`. */
  readonly start: number;
  /** Offset in the file of the first wrapper. */
  readonly wrappers: number;
}

const NAMES = "\0.hip_fatbin\0.hipFatBinSegment\0.shstrtab\0";
const START = 4096;

/** `pointers` are offsets in `content` to which wrappers point, one each. */
export function buildHost(content: Uint8Array, pointers: readonly number[]): BuiltHost {
  const wrappers = alignUp(START + content.length, 4096);
  const names = wrappers + pointers.length * 24;
  const sectionHeaders = alignUp(names + NAMES.length, 8);
  const header = new ByteWriter();
  header.append(new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
  header.u16(2); // ET_EXEC
  header.u16(62);
  header.u32(1);
  header.u64(0); // entry
  header.u64(0); // no program headers
  header.u64(sectionHeaders);
  header.u32(0);
  for (const value of [64, 0, 0, 64, 4, 3]) header.u16(value);
  const table = new ByteWriter();
  for (const offset of pointers) {
    table.u32(0x48495046);
    table.u32(1);
    table.u64(START + offset);
    table.u64(0);
  }
  const sections = new ByteWriter();
  sections.append(new Uint8Array(64));
  const section = (name: string, flags: number, offset: number, size: number): void => {
    sections.u32(NAMES.indexOf(name));
    sections.u32(name === ".shstrtab" ? 3 : 1);
    sections.u64(flags);
    sections.u64(flags === 0 ? 0 : offset);
    sections.u64(offset);
    sections.u64(size);
    sections.append(new Uint8Array(24));
  };
  section(".hip_fatbin", 2, START, content.length);
  section(".hipFatBinSegment", 3, wrappers, pointers.length * 24);
  section(".shstrtab", 0, names, NAMES.length);
  const parts: readonly (readonly [number, Uint8Array])[] = [
    [0, header.finish()],
    [START, content],
    [wrappers, table.finish()],
    [names, encodeUtf8(NAMES)],
    [sectionHeaders, sections.finish()],
  ];
  const bytes = new Uint8Array(sectionHeaders + 256);
  for (const [offset, part] of parts) bytes.set(part, offset);
  return { bytes: concat(bytes), start: START, wrappers };
}
