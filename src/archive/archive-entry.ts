import { decodeValue } from "../msgpack/message-pack-decode.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import { stringAt, type Toc } from "./toc.ts";

/** One line of the table of contents: which kernel a binary uses on a target. */
export interface ArchiveEntry {
  /** Position in the TOC, from 0. */
  readonly index: number;
  /** For example `lib/librocsparse.so.0.1#0`. */
  readonly binaryKey: string;
  /** For example `gfx90a:xnack-`. */
  readonly target: string;
  /** Index of the stored kernel; entries with identical kernels may share one. */
  readonly ordinal: number;
  /** Uncompressed size in bytes; undefined where an old writer left it out. */
  readonly originalSize: number | undefined;
  /** Binary key and target, for messages. */
  readonly id: string;
  /** The entry's keys beside `ordinal` and `original_size`, decoded: `type`, `metadata`, unknown ones. */
  fields(): ReadonlyMap<string, MessagePackValue>;
  /** The same keys as encoded values, to be carried along unchanged. */
  encodedFields(): readonly EncodedField[];
}

/** A key and the bytes of its MessagePack value. */
export interface EncodedField {
  readonly name: string;
  readonly value: Uint8Array;
}

/** The entries of an archive, in TOC order. Each access makes a new object: keep what is needed, not the list. */
export class EntryList implements Iterable<ArchiveEntry> {
  readonly #toc: Toc;

  constructor(toc: Toc) {
    this.#toc = toc;
  }

  get length(): number {
    return this.#toc.entries.count;
  }

  *[Symbol.iterator](): Generator<ArchiveEntry> {
    const { binaries } = this.#toc.entries;
    for (let binary = 0; binary < binaries.count; binary++) yield* this.#ofBinary(binary);
  }

  /** The entries of the binary with this index in the TOC. */
  ofBinary(binary: number): readonly ArchiveEntry[] {
    return [...this.#ofBinary(binary)];
  }

  *#ofBinary(binary: number): Generator<ArchiveEntry> {
    const { binaries } = this.#toc.entries;
    const binaryKey = stringAt(this.#toc, binaries.keyPositions[binary] ?? 0);
    const end = binaries.firstEntries[binary + 1] ?? 0;
    for (let index = binaries.firstEntries[binary] ?? end; index < end; index++) {
      yield new TocEntry(this.#toc, index, binaryKey);
    }
  }
}

class TocEntry implements ArchiveEntry {
  readonly index: number;
  readonly binaryKey: string;
  readonly target: string;
  readonly ordinal: number;
  readonly originalSize: number | undefined;
  readonly #toc: Toc;

  constructor(toc: Toc, index: number, binaryKey: string) {
    const { entries } = toc;
    const size = entries.originalSizes[index] ?? -1;
    this.#toc = toc;
    this.index = index;
    this.binaryKey = binaryKey;
    this.target = entries.targetNames[entries.targets[index] ?? 0] ?? "";
    this.ordinal = entries.ordinals[index] ?? 0;
    this.originalSize = size < 0 ? undefined : size;
  }

  get id(): string {
    return `${this.binaryKey} ${this.target}`;
  }

  fields(): ReadonlyMap<string, MessagePackValue> {
    const fields = new Map<string, MessagePackValue>();
    this.#walk((name, position) =>
      fields.set(name, decodeValue(this.#toc.readerAt(position), `${name} of ${this.id}`)),
    );
    return fields;
  }

  encodedFields(): readonly EncodedField[] {
    const fields: EncodedField[] = [];
    this.#walk((name, start, end) => fields.push({ name, value: this.#toc.bytes.subarray(start, end) }));
    return fields;
  }

  #walk(visit: (name: string, start: number, end: number) => void): void {
    const reader = this.#toc.readerAt(this.#toc.entries.positions[this.index] ?? 0);
    const pairs = reader.mapSize(this.id);
    for (let pair = 0; pair < pairs; pair++) {
      const name = reader.string(this.id);
      const start = reader.position;
      reader.skip(name);
      if (name !== "ordinal" && name !== "original_size") visit(name, start, reader.position);
    }
  }
}
