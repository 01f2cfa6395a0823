import { ByteReader } from "../bytes/byte-reader.ts";
import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import type { ElfSection } from "./elf-file.ts";
import { readInside } from "./read-inside.ts";

/**
 * An entry of a symbol table.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | name: offset in the string table |
 * | 4, 5 | 1, 1 | binding (high 4 bits) and type, visibility |
 * | 6 | 2 | index of the section, 0 when undefined |
 * | 8 | 8 | value: an address; in an object file an offset in the section |
 * | 16 | 8 | size |
 */
export interface ElfSymbol {
  readonly nameOffset: number;
  readonly info: number;
  readonly sectionIndex: number;
  readonly value: bigint;
  readonly size: bigint;
}

const SYMBOL_SIZE = 24;

/** Reads symbol `index` of a symbol table. */
export async function readSymbol(
  source: Source,
  table: ElfSection,
  index: number,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ElfSymbol> {
  const start = index * SYMBOL_SIZE;
  const field = `symbol ${index} of ${table.name}`;
  if (start + SYMBOL_SIZE > table.size) {
    throw new FormatError("OUT_OF_BOUNDS", "the symbol table has fewer symbols", {
      file: source.name,
      field,
      offset: table.offset,
      expected: `below ${Math.floor(table.size / SYMBOL_SIZE)}`,
      found: index,
    });
  }
  const extent = { offset: table.offset + start, size: SYMBOL_SIZE };
  const bytes = await readInside(source, extent, field, options);
  const reader = new ByteReader(bytes, { file: source.name, base: table.offset + start });
  const nameOffset = reader.u32(field); // 0
  const info = reader.u8(field); // 4
  reader.skip(1, field); // 5
  return {
    nameOffset,
    info,
    sectionIndex: reader.u16(field), // 6
    value: reader.u64Big(field), // 8
    size: reader.u64Big(field), // 16
  };
}
