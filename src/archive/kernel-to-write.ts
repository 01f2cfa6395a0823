import type { ReadOptions } from "../source/source.ts";
import type { EncodedField } from "./archive-entry.ts";

/** Where the bytes of a kernel come from. They must be the same each time they are read. */
export interface KernelBytes {
  /** In bytes. */
  readonly size: number;
  /** The whole kernel; the caller does not change it and may pass a buffer that is filled instead of allocating. */
  read(options?: ReadOptions): Promise<Uint8Array>;
}

/** One kernel to be packed, and the entries that point to it. */
export interface KernelToWrite {
  readonly kernel: KernelBytes;
  readonly entries: readonly EntryToWrite[];
}

/** A line of the table of contents to be: who uses a kernel, on which target. */
export interface EntryToWrite {
  /** For example `lib/libfoo.so#0`; `\` becomes `/`. */
  readonly binaryKey: string;
  /** For example `gfx90a:xnack-`. */
  readonly target: string;
  /**
   * Sorts the TOC: entries with a lower position come first. Binaries stand in the order of their first entry.
   * @default the order in which the entries come
   */
  readonly position?: number | undefined;
  /** More keys of the entry, encoded. `type` is `"hsaco"` unless it stands here. */
  readonly fields?: readonly EncodedField[] | undefined;
}
