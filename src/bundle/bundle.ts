import type { EntryId } from "./entry-id.ts";

/** An offload bundle: what one translation unit (or one linked device image) has for the host and for each target. */
export interface Bundle {
  /** Position among the bundles of the scanned extent. */
  readonly index: number;
  /** Absolute offset in the source; of the compressed container when it is compressed. */
  readonly offset: number;
  /** Bytes in the source, without padding after it. */
  readonly length: number;
  readonly container: "plain" | "ccob";
  /** What the header of the compressed container says. */
  readonly compression?: BundleCompression | undefined;
  /**
   * Where the bundle begins in the decompressed content, which may hold several bundles.
   * 0 for a plain bundle and for the first one of a compressed container.
   */
  readonly contentOffset: number;
  /** All entries in the order of the table, also those for the host and those without bytes. */
  readonly entries: readonly BundleEntry[];
  /**
   * The bytes of one entry. May be called as often as wanted.
   * With `buffer`, the bytes may be a view of it.
   */
  readEntry(entry: BundleEntry, options?: ReadEntryOptions): Promise<Uint8Array>;
  /** All of the bundle, or the decompressed content of its container. */
  readContent(options?: { readonly signal?: AbortSignal | undefined }): Promise<Uint8Array>;
}

export interface BundleEntry {
  readonly id: EntryId;
  /** From the beginning of the (decompressed) bundle. */
  readonly offset: number;
  readonly size: number;
  /**
   * The entry's first {@link ENTRY_HEAD_SIZE} bytes, or all of a smaller one. Only in compressed bundles: kept while
   * their content was in hand, so that telling what an entry is does not decompress it again.
   */
  readonly head?: Uint8Array | undefined;
}

/** Enough for the header of an ELF file. */
export const ENTRY_HEAD_SIZE = 64;

/** The header of a compressed bundle. */
export interface BundleCompression {
  readonly version: number;
  readonly method: "zlib" | "zstd";
  readonly headerSize: number;
  /** Header and compressed bytes, or undefined in version 1, which does not say. */
  readonly totalSize: number | undefined;
  readonly uncompressedSize: number;
  /** The first 8 bytes of the content's MD5 as a u64: `0x2833b7092214dfca`. */
  readonly hash: string;
}

export interface ReadEntryOptions {
  readonly signal?: AbortSignal | undefined;
  /** A buffer that may be filled instead of allocating, when it is large enough. */
  readonly buffer?: Uint8Array | undefined;
}
