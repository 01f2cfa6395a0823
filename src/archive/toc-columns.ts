/**
 * The entries of a TOC as columns of numbers, in file order. Positions are offsets in the TOC's bytes, which are
 * below 2^32 since the TOC's size is limited.
 */
export interface EntryColumns {
  readonly count: number;
  readonly binaries: BinaryColumns;
  /** Index into `targetNames`. */
  readonly targets: Uint32Array;
  readonly ordinals: Uint32Array;
  /** Uncompressed size in bytes, or -1 where the entry does not say. */
  readonly originalSizes: Float64Array;
  /** Where the entry's map begins. */
  readonly positions: Uint32Array;
  /** 1 where the entry has keys beside type, ordinal and original_size. */
  readonly hasMore: Uint8Array;
  readonly targetNames: readonly string[];
}

export interface BinaryColumns {
  readonly count: number;
  /** Where the binary's key, a MessagePack string, begins. */
  readonly keyPositions: Uint32Array;
  /** Index of the binary's first entry; one more than there are binaries, so that the next one ends it. */
  readonly firstEntries: Uint32Array;
  /** Open-addressing hash table over the keys: index + 1, or 0 for an empty slot. */
  readonly table: Uint32Array;
  readonly mask: number;
}
