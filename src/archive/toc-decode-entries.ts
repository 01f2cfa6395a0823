import { GrowingColumn } from "../bytes/growing-column.ts";
import { TARGET_COUNT_LIMIT } from "../bytes/limits.ts";
import { printable } from "../bytes/text.ts";
import { LimitError } from "../errors/errors.ts";
import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import type { BinaryColumns, EntryColumns } from "./toc-columns.ts";
import { equalRuns, hashBytes, isUtf8 } from "./toc.ts";
import { KeyTable } from "./key-table.ts";
import { EntryKeys, takeEntryKey } from "./toc-entry-keys.ts";
import { readUsualEntry } from "./usual-entry.ts";

/** Ordinals are u32 in every scheme there is; this also keeps them in a column of 32 bits. */
const ORDINAL_LIMIT = 0xffffffff;

/**
 * Reads the value of `toc`: binary key → target → entry. The reader stands behind it afterwards.
 * One pass, no string is made but for targets met for the first time: an archive may hold 100,000 kernels.
 */
export function decodeEntries(
  reader: MessagePackReader,
  place: { readonly file: string; readonly tocOffset: number },
): EntryColumns {
  if (reader.kind("toc") !== "map") {
    throw reader.error("WRONG_TYPE", "the value has the wrong type", "toc", "map", reader.kind("toc"));
  }
  return new EntryDecoder(reader, place).decode();
}

/** How many known targets are compared byte by byte before a string is made and looked up. */
const NEIGHBOUR_STEPS = 16;

class EntryDecoder {
  readonly #reader: MessagePackReader;
  readonly #place: { readonly file: string; readonly tocOffset: number };
  readonly #keyPositions: GrowingColumn<Uint32Array>;
  readonly #firstEntries: GrowingColumn<Uint32Array>;
  readonly #table = new KeyTable();
  readonly #binaryCount: number;
  readonly #targets = new GrowingColumn((length) => new Uint32Array(length), 1024);
  readonly #ordinals = new GrowingColumn((length) => new Uint32Array(length), 1024);
  readonly #originalSizes = new GrowingColumn((length) => new Float64Array(length), 1024);
  readonly #positions = new GrowingColumn((length) => new Uint32Array(length), 1024);
  readonly #hasMore = new GrowingColumn((length) => new Uint8Array(length), 1024);
  readonly #targetNames: string[] = [];
  /** Encoded names of the targets, each by its first position, to recognise them without making a string. */
  readonly #targetBytes: Uint8Array[] = [];
  #lastTarget = 0;
  readonly #usual = { ordinal: 0, originalSize: 0 };
  /** By target: the last binary that had it. */
  readonly #lastBinary: number[] = [];
  readonly #targetIndexes = new Map<string, number>();

  constructor(reader: MessagePackReader, place: { readonly file: string; readonly tocOffset: number }) {
    this.#reader = reader;
    this.#place = place;
    this.#binaryCount = reader.mapSize("toc");
    this.#keyPositions = new GrowingColumn((length) => new Uint32Array(length), 1024);
    this.#firstEntries = new GrowingColumn((length) => new Uint32Array(length), 1024);
  }

  decode(): EntryColumns {
    for (let binary = 0; binary < this.#binaryCount; binary++) this.#decodeBinary(binary);
    this.#firstEntries.push(this.#ordinals.length);
    const binaries: BinaryColumns = {
      count: this.#binaryCount,
      keyPositions: this.#keyPositions.finish(),
      firstEntries: this.#firstEntries.finish(),
      table: this.#table.slots,
      mask: this.#table.mask,
    };
    return {
      count: this.#ordinals.length,
      binaries,
      targets: this.#targets.finish(),
      ordinals: this.#ordinals.finish(),
      originalSizes: this.#originalSizes.finish(),
      positions: this.#positions.finish(),
      hasMore: this.#hasMore.finish(),
      targetNames: this.#targetNames,
    };
  }

  #decodeBinary(binary: number): void {
    const reader = this.#reader;
    const keyPosition = reader.position;
    this.#takeKey(binary, keyPosition);
    this.#keyPositions.push(keyPosition);
    this.#firstEntries.push(this.#ordinals.length);
    if (reader.kind("toc") !== "map") {
      throw reader.error(
        "WRONG_TYPE",
        "the value has the wrong type",
        this.#field(keyPosition),
        "map",
        reader.kind("toc"),
      );
    }
    const count = reader.mapSize("toc");
    for (let index = 0; index < count; index++) {
      const targetPosition = reader.position;
      const target = this.#takeTarget(keyPosition);
      if (this.#lastBinary[target] === binary) {
        reader.position = targetPosition;
        throw reader.error(
          "DUPLICATE_KEY",
          "the same target stands twice for one binary",
          this.#field(keyPosition, target),
        );
      }
      this.#lastBinary[target] = binary;
      this.#targets.push(target);
      this.#decodeEntry(keyPosition, target);
    }
  }

  /** Moves past a binary's key and enters it into the hash table. */
  #takeKey(binary: number, position: number): void {
    const reader = this.#reader;
    const size = reader.stringSize("binary key in toc");
    const start = reader.position;
    const end = start + size;
    if (!isUtf8(reader.bytes, start, end)) {
      throw reader.error("MALFORMED_TEXT", "a string is not valid UTF-8", "binary key in toc");
    }
    const found = this.#table.add(hashBytes(reader.bytes, start, end), binary, (other) =>
      this.#sameString(this.#keyPositions.at(other), start, end),
    );
    if (found !== undefined) {
      reader.position = position;
      throw reader.error(
        "DUPLICATE_KEY",
        "the same binary key stands twice in the TOC",
        this.#field(position),
      );
    }
    reader.position = end;
  }

  /** Whether the string at `position` has the same bytes as those from `start` to `end`. */
  #sameString(position: number, start: number, end: number): boolean {
    const reader = this.#reader;
    const saved = reader.position;
    reader.position = position;
    const size = reader.stringSize("toc");
    const other = reader.position;
    reader.position = saved;
    return size === end - start && equalRuns(reader.bytes, other, reader.bytes, start, size);
  }

  #takeTarget(keyPosition: number): number {
    const reader = this.#reader;
    const position = reader.position;
    if (reader.kind("toc") !== "string") {
      throw reader.error(
        "WRONG_TYPE",
        "a target is no text",
        this.#field(keyPosition),
        "string",
        reader.kind("toc"),
      );
    }
    const size = reader.stringSize("target in toc");
    const start = reader.position;
    reader.position = start + size;
    // Neighbours often have the same target, or the next one in a fixed order.
    const known = this.#targetBytes;
    for (let step = 0; step < Math.min(known.length, NEIGHBOUR_STEPS); step++) {
      const candidate = (this.#lastTarget + step) % known.length;
      const bytes = known[candidate];
      if (bytes && bytes.length === size && equalRuns(bytes, 0, reader.bytes, start, size)) {
        this.#lastTarget = candidate;
        return candidate;
      }
    }
    reader.position = position;
    const name = reader.string("target in toc");
    let index = this.#targetIndexes.get(name);
    if (index === undefined) {
      if (known.length === TARGET_COUNT_LIMIT) throw this.#tooManyTargets(keyPosition, position);
      index = known.length;
      known.push(reader.bytes.subarray(start, start + size));
      this.#targetNames.push(name);
      this.#targetIndexes.set(name, index);
    }
    this.#lastTarget = index;
    return index;
  }

  #tooManyTargets(keyPosition: number, position: number): LimitError {
    return new LimitError(
      "LIMIT_EXCEEDED",
      "the archive's kernels are for more targets than an archive may have",
      {
        file: this.#place.file,
        field: this.#field(keyPosition),
        offset: this.#place.tocOffset + position,
        expected: `at most ${TARGET_COUNT_LIMIT} targets`,
      },
    );
  }

  #decodeEntry(keyPosition: number, target: number): void {
    const reader = this.#reader;
    const position = reader.position;
    if (readUsualEntry(reader, this.#usual)) {
      this.#push(this.#usual.ordinal, this.#usual.originalSize, position, false);
      return;
    }
    if (reader.kind("toc") !== "map") {
      throw reader.error(
        "WRONG_TYPE",
        "the value has the wrong type",
        this.#field(keyPosition, target),
        "map",
        reader.kind("toc"),
      );
    }
    const pairs = reader.mapSize("toc");
    let ordinal = -1;
    let originalSize = -1;
    let hasType = false;
    let others: EntryKeys | undefined;
    for (let pair = 0; pair < pairs; pair++) {
      const keyStart = reader.position;
      const key = takeEntryKey(reader);
      let twice = false;
      if (key === "ordinal") {
        twice = ordinal >= 0;
        ordinal = this.#unsigned(keyPosition, target, key, ORDINAL_LIMIT);
      } else if (key === "original_size") {
        twice = originalSize >= 0;
        originalSize = this.#unsigned(keyPosition, target, key, Number.MAX_SAFE_INTEGER);
      } else if (key === "type") {
        twice = hasType;
        hasType = true;
        this.#skipType(keyPosition, target);
      } else {
        others ??= new EntryKeys();
        twice = !others.add(key);
        reader.skip(key);
      }
      if (twice) {
        reader.position = keyStart;
        throw reader.error(
          "DUPLICATE_KEY",
          "the same key stands twice in an entry",
          `${this.#field(keyPosition, target)}.${key}`,
        );
      }
    }
    if (ordinal < 0) {
      reader.position = position;
      throw reader.error(
        "MISSING_KEY",
        "the entry does not say which kernel it means",
        `${this.#field(keyPosition, target)}.ordinal`,
      );
    }
    this.#push(ordinal, originalSize, position, others !== undefined);
  }

  #push(ordinal: number, originalSize: number, position: number, hasMore: boolean): void {
    this.#ordinals.push(ordinal);
    this.#originalSizes.push(originalSize);
    this.#positions.push(position);
    this.#hasMore.push(hasMore ? 1 : 0);
  }

  #unsigned(keyPosition: number, target: number, key: string, limit: number): number {
    const reader = this.#reader;
    const tag = reader.bytes[reader.position] ?? 0xc1;
    if (tag <= 0x7f) {
      reader.position += 1;
      return tag;
    }
    const start = reader.position;
    // Most values are fine; the field's long name is made only for those that are not.
    const isUnsigned = tag >= 0xcc && tag <= 0xcf;
    const value = reader.unsigned(isUnsigned ? key : `${this.#field(keyPosition, target)}.${key}`);
    if (value <= limit) return value;
    reader.position = start;
    throw reader.error(
      "OUT_OF_BOUNDS",
      "the value is too large",
      `${this.#field(keyPosition, target)}.${key}`,
      `at most ${limit}`,
      String(value),
    );
  }

  #skipType(keyPosition: number, target: number): void {
    const reader = this.#reader;
    const kind = reader.kind("type");
    if (kind !== "string") {
      throw reader.error(
        "WRONG_TYPE",
        "the value has the wrong type",
        `${this.#field(keyPosition, target)}.type`,
        "string",
        kind,
      );
    }
    reader.string("type");
  }

  /** The field's name for a message: `toc["lib/a.so#0"].gfx942`. */
  #field(keyPosition: number, target?: number): string {
    const reader = this.#reader;
    const saved = reader.position;
    reader.position = keyPosition;
    const key = printable(reader.string("toc"));
    reader.position = saved;
    const name = target === undefined ? undefined : this.#targetNames[target];
    return name === undefined ? `toc["${key}"]` : `toc["${key}"].${printable(name)}`;
  }
}
