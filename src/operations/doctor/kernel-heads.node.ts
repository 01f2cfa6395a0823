import { constants, zstdDecompressSync } from "node:zlib";
import type { Archive } from "../../archive/archive.ts";
import type { ArchiveEntry } from "../../archive/archive-entry.ts";
import type { Extent } from "../../bytes/extent.ts";
import { CODE_OBJECT_HEADER_SIZE } from "../../code-object/code-object.ts";
import { isKpackError, type KpackError } from "../../errors/errors.ts";
import { SMALL_FRAME } from "./read-budget.ts";

/** The first bytes of a stored kernel, and the entries that use it. */
export interface KernelHead {
  readonly ordinal: number;
  readonly entries: readonly ArchiveEntry[];
  /** Undefined when they cannot be had without decoding more. */
  readonly head: Uint8Array | undefined;
  /** The archive contradicts itself about where the kernel lies. */
  readonly error: KpackError | undefined;
}

/** Of archives that are walked, only the first kernels are looked at, and the first ones of each target. */
const FIRST_KERNELS = 32;

/**
 * The first bytes of kernels, spread over targets and over the archive, until about `budget` bytes were read.
 * A zstd frame gives its first bytes only with its whole first block.
 */
export async function* sampleKernelHeads(
  archive: Archive,
  budget: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<KernelHead> {
  const byOrdinal = Map.groupBy(archive.entries, ({ ordinal }) => ordinal);
  let left = budget;
  for (const ordinal of spread(archive, byOrdinal)) {
    if (left <= 0) return;
    const entries = byOrdinal.get(ordinal) ?? [];
    try {
      const [extent] = await archive.decompressor.storedExtents(ordinal, { signal });
      const { head, read } = extent
        ? await readHead(archive, ordinal, extent, signal)
        : { head: undefined, read: 0 };
      left -= read;
      yield { ordinal, entries, head, error: undefined };
    } catch (error) {
      if (!isKpackError(error)) throw error;
      left -= SMALL_FRAME;
      yield { ordinal, entries, head: undefined, error };
    }
  }
}

/** Ordinals in an order in which any beginning is spread well: one of each target, then the next of each. */
function spread(
  archive: Archive,
  byOrdinal: ReadonlyMap<number, readonly ArchiveEntry[]>,
): readonly number[] {
  const isWalked =
    archive.schemeName === "zstd-per-kernel" &&
    !archive.toc.fields.some(({ name }) => name === "zstd_frame_offsets");
  const isSmall = isWalked && archive.tocOffset / Math.max(1, byOrdinal.size) < SMALL_FRAME;
  const byTarget = Map.groupBy(byOrdinal.keys(), (ordinal) => byOrdinal.get(ordinal)?.[0]?.target ?? "");
  const queues = Array.from(byTarget.values(), (ordinals) => {
    if (!isWalked) return halving(ordinals);
    const near = ordinals.filter((ordinal) => ordinal < FIRST_KERNELS);
    const first = near.length === 0 && !isSmall ? ordinals.slice(0, 1) : [];
    return halving([...near, ...first]);
  });
  const order: number[] = [];
  const longest = Math.max(0, ...queues.map(({ length }) => length));
  for (let place = 0; place < longest; place++) {
    for (const queue of queues) {
      const ordinal = queue[place];
      if (ordinal !== undefined) order.push(ordinal);
    }
  }
  return order;
}

/** First, last, then the middles of the gaps that are left. */
function halving(items: readonly number[]): readonly number[] {
  const order: number[] = [];
  const seen = new Set<number>();
  const take = (index: number): void => {
    const item = items[index];
    if (item === undefined || seen.has(index)) return;
    seen.add(index);
    order.push(item);
  };
  take(0);
  take(items.length - 1);
  for (let step = items.length; step > 1; step = Math.ceil(step / 2)) {
    for (let index = Math.floor(step / 2); index < items.length; index += step) take(index);
  }
  for (let index = 0; index < items.length; index++) take(index);
  return order;
}

interface Head {
  readonly head: Uint8Array | undefined;
  /** Bytes that were read for it. */
  readonly read: number;
}

async function readHead(
  archive: Archive,
  ordinal: number,
  extent: Extent,
  signal: AbortSignal | undefined,
): Promise<Head> {
  const { source, schemeName } = archive;
  if (schemeName === "none") {
    const length = Math.min(extent.size, CODE_OBJECT_HEADER_SIZE);
    return { head: await source.read(extent.offset, length, { signal }), read: length };
  }
  if (schemeName !== "zstd-per-kernel") {
    const kernel = await archive.decompressor.decompressKernel(ordinal, { signal });
    return { head: kernel.slice(0, CODE_OBJECT_HEADER_SIZE), read: extent.size };
  }
  const start = await source.read(extent.offset, Math.min(extent.size, LONGEST_START), { signal });
  const block = firstBlock(start);
  if (block === undefined || block.end > extent.size) return { head: undefined, read: start.length };
  // Of a block that is stored as it is, its beginning is enough.
  const end =
    block.type === RAW_BLOCK ? Math.min(block.end, block.start + CODE_OBJECT_HEADER_SIZE) : block.end;
  const bytes = await source.read(extent.offset, end, { signal });
  return { head: decodeBlock(bytes, block), read: start.length + bytes.length };
}

/** A frame's header (at most 18 bytes) and the header of its first block. */
const LONGEST_START = 21;
const ZSTD_MAGIC = 0xfd2fb528;
const RAW_BLOCK = 0;
const COMPRESSED_BLOCK = 2;

interface Block {
  readonly type: number;
  /** Where its data begins and ends, from the frame's beginning. */
  readonly start: number;
  readonly end: number;
}

/** The first block of a zstd frame (RFC 8878); undefined for what is none, such as a skippable frame. */
function firstBlock(bytes: Uint8Array): Block | undefined {
  if (bytes.length < 9) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== ZSTD_MAGIC) return undefined;
  const descriptor = view.getUint8(4);
  const isSingle = (descriptor & 0x20) !== 0;
  const contentSize = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const header = 5 + (isSingle ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0) + contentSize;
  if (header + 3 > bytes.length) return undefined;
  const word = view.getUint16(header, true) | (view.getUint8(header + 2) << 16);
  const type = (word >> 1) & 3;
  const start = header + 3;
  return { type, start, end: start + (type === 1 ? 1 : word >> 3) };
}

function decodeBlock(bytes: Uint8Array, block: Block): Uint8Array | undefined {
  if (block.type === RAW_BLOCK) return bytes.subarray(block.start, block.start + CODE_OBJECT_HEADER_SIZE);
  if (block.type !== COMPRESSED_BLOCK) return undefined;
  try {
    // "continue" lets the frame end anywhere; a block never gives more than 128 KiB.
    const content = zstdDecompressSync(bytes, { finishFlush: constants.ZSTD_e_continue });
    return new Uint8Array(content.subarray(0, CODE_OBJECT_HEADER_SIZE));
  } catch {
    return undefined; // damaged: `verify` and --deep say how
  }
}
