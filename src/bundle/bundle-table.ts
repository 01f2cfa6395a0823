import { ByteReader } from "../bytes/byte-reader.ts";
import { decodeUtf8, printable } from "../bytes/text.ts";
import { describeUint64 } from "../bytes/uint64.ts";
import { FormatError, type FormatErrorCode } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { BundleEntry } from "./bundle.ts";
import { parseEntryId } from "./entry-id.ts";

/**
 * The table at the beginning of an uncompressed offload bundle.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 24 | magic `__CLANG_OFFLOAD_BUNDLE__` |
 * | 24 | 8 | number of entries |
 *
 * and for each entry
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 8 | offset, from the bundle's beginning |
 * | 8 | 8 | size |
 * | 16 | 8 | length of the id |
 * | 24 | … | id |
 */
export interface BundleTable {
  readonly entries: readonly BundleEntry[];
  /** End of the last entry, or of the table. */
  readonly length: number;
}

/** Where a table stands, for messages. */
export interface TablePlace {
  readonly file: string;
  /** Offset in the file of the bundle. */
  readonly fileOffset: number;
  /** Whether the table is in decompressed bytes, whose offsets mean nothing in the file. */
  readonly isDecompressed: boolean;
  /** For example `bundle[3]`. */
  readonly field: string;
}

export const BUNDLE_MAGIC = "__CLANG_OFFLOAD_BUNDLE__";
/** Magic and number of entries. */
export const BUNDLE_HEADER_SIZE = 32;

const ENTRY_SIZE = 24;
/** A bundle has an entry per target: a few dozen. More than this is damage, whatever the file's size. */
const MOST_ENTRIES = 65536;
const LONGEST_ID = 4096;

/**
 * Parses the table at the start of `bytes`.
 * @param available How many bytes the bundle may have; `bytes` may be just the first of them.
 * @returns undefined when `bytes` end inside the table and more are available.
 * @throws FormatError when the table contradicts itself or the bytes that are there.
 */
export function parseBundleTable(
  bytes: Uint8Array,
  available: number,
  place: TablePlace,
  onFinding?: OnFinding,
): BundleTable | undefined {
  const parser = new TableParser(bytes, available, place);
  const count = parser.count();
  if (count === undefined) return undefined;
  const entries: BundleEntry[] = [];
  for (let index = 0; index < count; index++) {
    const entry = parser.entry(index);
    if (entry === undefined) return undefined;
    entries.push(entry);
  }
  const length = parser.checkedLength(entries);
  if (onFinding) reportOddEntries(entries, place, onFinding);
  return { entries, length };
}

class TableParser {
  readonly #reader: ByteReader;
  readonly #available: number;
  readonly #place: TablePlace;

  constructor(bytes: Uint8Array, available: number, place: TablePlace) {
    this.#reader = new ByteReader(bytes, { file: place.file, base: place.fileOffset });
    this.#available = available;
    this.#place = place;
  }

  count(): number | undefined {
    if (!this.#has(BUNDLE_HEADER_SIZE, "entry count")) return undefined;
    this.#reader.skip(BUNDLE_MAGIC.length, "magic"); // 0
    const count = this.#reader.u64Big("entry count"); // 24
    const position = BUNDLE_HEADER_SIZE - 8;
    if (count > BigInt(MOST_ENTRIES)) {
      throw this.#error("COUNT_TOO_LARGE", "no bundle has so many entries", "entry count", position, {
        expected: `at most ${MOST_ENTRIES}`,
        found: describeUint64(count),
      });
    }
    if (count * BigInt(ENTRY_SIZE) > BigInt(this.#available - BUNDLE_HEADER_SIZE)) {
      throw this.#error("TRUNCATED", "the data ends before the last entry", "entry count", position, {
        expected: `${count} entries of at least ${ENTRY_SIZE} bytes`,
        found: `${this.#available - BUNDLE_HEADER_SIZE} bytes`,
      });
    }
    return Number(count);
  }

  entry(index: number): BundleEntry | undefined {
    const start = this.#reader.position;
    const field = `entries[${index}]`;
    if (!this.#has(ENTRY_SIZE, field)) return undefined;
    const offset = this.#reader.u64Big(field); // 0
    const size = this.#reader.u64Big(field); // 8
    const idLength = this.#reader.u64Big(field); // 16
    const idStart = start + ENTRY_SIZE;
    if (idLength > BigInt(this.#available - idStart)) {
      throw this.#error(
        "OUT_OF_BOUNDS",
        "the id ends behind the end of the data",
        `${field}.idLength`,
        start + 16,
        {
          expected: `at most ${this.#available - idStart}`,
          found: describeUint64(idLength),
        },
      );
    }
    if (idLength === 0n || idLength > BigInt(LONGEST_ID)) {
      throw this.#error("MALFORMED_TEXT", "this is no entry", `${field}.idLength`, start + 16, {
        expected: `1 to ${LONGEST_ID}`,
        found: describeUint64(idLength),
      });
    }
    if (!this.#has(Number(idLength), `${field}.id`)) return undefined;
    const id = decodeUtf8(this.#reader.take(Number(idLength), `${field}.id`)); // 24
    if (id === undefined) {
      throw this.#error("MALFORMED_TEXT", "the id is no valid UTF-8", `${field}.id`, idStart);
    }
    this.#checkExtent(`${field} (${printable(id)})`, start, offset, size);
    return { id: parseEntryId(id), offset: Number(offset), size: Number(size) };
  }

  /** The bundle's length, after a check that no entry's bytes are the table. */
  checkedLength(entries: readonly BundleEntry[]): number {
    const tableEnd = this.#reader.position;
    let length = tableEnd;
    for (const [index, entry] of entries.entries()) {
      if (entry.size > 0 && entry.offset < tableEnd) {
        const field = `entries[${index}] (${printable(entry.id.text)}).offset`;
        throw this.#error(
          "OVERLAP",
          "the entry's bytes would be the bundle's own table",
          field,
          entry.offset,
          {
            expected: `at least ${tableEnd}`,
            found: entry.offset,
          },
        );
      }
      // Entries without bytes count too: the host's often stands where the first payload begins.
      if (entry.offset + entry.size <= this.#available) length = Math.max(length, entry.offset + entry.size);
    }
    return length;
  }

  #checkExtent(field: string, start: number, offset: bigint, size: bigint): void {
    const available = BigInt(this.#available);
    // An entry without bytes may point anywhere: nothing is read there.
    if (size === 0n && offset <= BigInt(Number.MAX_SAFE_INTEGER)) return;
    if (offset > available) {
      throw this.#error(
        "OUT_OF_BOUNDS",
        "the entry begins behind the end of the data",
        `${field}.offset`,
        start,
        {
          expected: `at most ${available}`,
          found: describeUint64(offset),
        },
      );
    }
    if (size > available - offset) {
      throw this.#error("TRUNCATED", "the data ends inside the entry", `${field}.size`, start + 8, {
        expected: `at most ${available - offset} at offset ${offset}`,
        found: describeUint64(size),
      });
    }
  }

  /** Whether `length` bytes are in hand. False when more can be had, an error when not. */
  #has(length: number, field: string): boolean {
    const { position } = this.#reader;
    if (position + length > this.#available) {
      throw this.#error("TRUNCATED", "the data ends inside this field", field, position, {
        expected: `${length} bytes`,
        found: `${this.#available - position}`,
      });
    }
    return this.#reader.remaining >= length;
  }

  #error(
    code: FormatErrorCode,
    summary: string,
    field: string,
    position: number,
    values: { readonly expected?: string | number; readonly found?: string | number } = {},
  ): FormatError {
    const { file, fileOffset, isDecompressed } = this.#place;
    const offset = isDecompressed ? fileOffset : fileOffset + position;
    return new FormatError(code, summary, {
      file,
      field: `${this.#place.field}.${field}`,
      offset,
      ...values,
    });
  }
}

function reportOddEntries(entries: readonly BundleEntry[], place: TablePlace, onFinding: OnFinding): void {
  const seen = new Set<string>();
  for (const [index, { id, size }] of entries.entries()) {
    const where = { file: place.file, field: `${place.field}.entries[${index}]`, offset: place.fileOffset };
    const name = printable(id.text);
    if (!id.isHost && size === 0) {
      onFinding({ severity: "warning", code: "EMPTY_ENTRY", message: `${name} has no bytes`, ...where });
    }
    if (seen.has(id.text)) {
      onFinding({
        severity: "warning",
        code: "DUPLICATE_ENTRY_ID",
        message: `the bundle has more than one entry ${name}`,
        ...where,
      });
    }
    seen.add(id.text);
  }
}
