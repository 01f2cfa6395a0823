import { concat, map, pack, RawMap } from "./raw-msgpack.ts";

/** Builds archives byte by byte, right or wrong, without the library's writer. */
export interface RawArchive {
  readonly magic?: string;
  readonly version?: number;
  /** What the header says; by default where the TOC really is. */
  readonly tocOffset?: number | bigint;
  /** Bytes between the 64-byte header and the TOC. */
  readonly area?: Uint8Array;
  readonly toc: unknown;
  readonly trailing?: Uint8Array;
}

export const AREA_START = 64;

export function buildArchive(archive: RawArchive): Uint8Array {
  const area = archive.area ?? new Uint8Array(0);
  const header = new Uint8Array(AREA_START);
  const view = new DataView(header.buffer);
  header.set(new TextEncoder().encode(archive.magic ?? "KPAK"));
  view.setUint32(4, archive.version ?? 1, true);
  view.setBigUint64(8, BigInt(archive.tocOffset ?? AREA_START + area.length), true);
  return concat(header, area, pack(archive.toc), archive.trailing ?? new Uint8Array(0));
}

/** Pairs of a TOC; a later pair replaces an earlier one of the same name, `undefined` takes it out. */
export type TocPairs = readonly (readonly [string, unknown])[];

export function entryOf(ordinal: unknown, originalSize: unknown, more: TocPairs = []): RawMap {
  return map(["type", "hsaco"], ["ordinal", ordinal], ["original_size", originalSize], ...more);
}

export function tocOf(
  entries: unknown,
  scheme: string,
  schemeFields: TocPairs,
  changes: TocPairs = [],
): RawMap {
  const pairs = new Map<string, unknown>([
    ["format_version", 1],
    ["group_name", "g"],
    ["gfx_arch_family", "gfx942"],
    ["gfx_arches", ["gfx942"]],
    ["toc", entries],
    ["compression_scheme", scheme],
    ...schemeFields,
    ...changes,
  ]);
  return new RawMap([...pairs].filter(([, value]) => value !== undefined));
}

/** Binaries `a.so#0`, `a.so#1` … with one kernel each for gfx942. */
export function entriesOf(kernels: readonly Uint8Array[]): RawMap {
  return map(
    ...kernels.map((kernel, ordinal): [string, RawMap] => [
      `a.so#${ordinal}`,
      map(["gfx942", entryOf(ordinal, kernel.length)]),
    ]),
  );
}

export interface ArchiveChanges {
  /** In place of the entries that fit the kernels. */
  readonly entries?: unknown;
  /** TOC keys to replace, add, or (undefined) leave out. */
  readonly toc?: TocPairs;
  readonly file?: Partial<RawArchive>;
}

export function noneArchive(kernels: readonly Uint8Array[], changes: ArchiveChanges = {}): Uint8Array {
  let offset = AREA_START;
  const blobs = kernels.map((kernel) => {
    const blob = map(["offset", offset], ["size", kernel.length]);
    offset += kernel.length;
    return blob;
  });
  const toc = tocOf(changes.entries ?? entriesOf(kernels), "none", [["blobs", blobs]], changes.toc);
  return buildArchive({ area: concat(...kernels), toc, ...changes.file });
}

export function zstdArea(frames: readonly Uint8Array[]): Uint8Array {
  return concat(u32(frames.length), ...frames.flatMap((frame) => [u32(frame.length), frame]));
}

/** `kernels` are only used for `original_size`; `frames` are stored as they are. */
export function zstdArchive(
  kernels: readonly Uint8Array[],
  frames: readonly Uint8Array[],
  changes: ArchiveChanges = {},
): Uint8Array {
  const area = zstdArea(frames);
  const fields: TocPairs = [
    ["zstd_offset", AREA_START],
    ["zstd_size", area.length],
  ];
  const toc = tocOf(changes.entries ?? entriesOf(kernels), "zstd-per-kernel", fields, changes.toc);
  return buildArchive({ area, toc, ...changes.file });
}

/** The bin of the frame offsets for frames that stand as `zstdArea` puts them. */
export function frameOffsets(frames: readonly Uint8Array[]): Uint8Array {
  let offset = AREA_START + 4;
  return concat(
    ...frames.map((frame) => {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(offset + 4), true);
      offset += 4 + frame.length;
      return bytes;
    }),
  );
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}
