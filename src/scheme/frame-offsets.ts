import { safeNumber } from "../bytes/uint64.ts";

/**
 * The optional TOC field `zstd_frame_offsets`: a MessagePack bin with, by ordinal, the absolute offset of each
 * frame's first byte as a little-endian u64. The frame's u32 size stands in the four bytes before it.
 */
export class FrameTableWriter {
  readonly #offsets: number[] = [];

  add(offset: number): void {
    this.#offsets.push(offset);
  }

  finish(): Uint8Array {
    const bytes = new Uint8Array(this.#offsets.length * 8);
    const view = new DataView(bytes.buffer);
    this.#offsets.forEach((offset, ordinal) => view.setBigUint64(ordinal * 8, BigInt(offset), true));
    return bytes;
  }
}

/** Reads that field without unpacking it. */
export class FrameTable {
  readonly count: number;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.count = bytes.length / 8;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Absolute offset of the frame, or undefined for a value that no file can have. */
  offset(ordinal: number): number | undefined {
    return safeNumber(this.#view.getBigUint64(ordinal * 8, true));
  }
}
