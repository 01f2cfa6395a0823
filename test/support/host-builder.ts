import { pack } from "./raw-msgpack.ts";

/** Small host binaries, made byte by byte: ELF64 shared objects whose wrappers hold their pointers themselves. */
export interface HostToBuild {
  readonly kernelName?: unknown;
  readonly searchPaths?: unknown;
  /** Instead of a map of the two. */
  readonly metadata?: unknown;
  /** `reserved1` of each wrapper; by default its position. */
  readonly wrappers: number | readonly number[];
  readonly magic?: readonly ("HIPF" | "HIPK")[];
  /** Content of `.hip_fatbin`; without it the section has no bytes in the file. */
  readonly bundles?: Uint8Array;
  /** Offsets in the content that the wrappers point to; by default they point to the metadata. */
  readonly bundleOffsets?: readonly number[];
  readonly withoutMetadata?: boolean;
  readonly segments?: (segments: readonly Segment[]) => readonly Segment[];
  readonly type?: number;
}

export interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileSize: number;
  readonly memorySize: number;
  readonly alignment: number;
}

const BASE = 0x400000;
const PAGE = 4096;
const MAGICS = { HIPF: 0x48495046, HIPK: 0x4b504948 } as const;
const PROGBITS = 1;
const STRTAB = 3;
const NOBITS = 8;

export function buildHost(host: HostToBuild): Uint8Array {
  const indexes =
    typeof host.wrappers === "number" ? Array.from({ length: host.wrappers }, (_, i) => i) : host.wrappers;
  const given = { kernel_name: host.kernelName, kpack_search_paths: host.searchPaths };
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const metadata = host.withoutMetadata === true ? new Uint8Array(0) : pack(host.metadata ?? present);
  const bundles = host.bundles ?? new Uint8Array(0);
  const metadataAt = PAGE;
  const wrappersAt = align(metadataAt + metadata.length, 8);
  const bundlesAt = align(wrappersAt + indexes.length * 24, PAGE);
  const namesAt = align(bundlesAt + bundles.length, 8);
  const names = "\0.rocm_kpack_ref\0.hipFatBinSegment\0.hip_fatbin\0.shstrtab\0";
  const sectionsAt = align(namesAt + names.length, 8);
  const sections = [
    { name: ".rocm_kpack_ref", type: PROGBITS, at: metadataAt, size: metadata.length, alloc: true },
    { name: ".hipFatBinSegment", type: PROGBITS, at: wrappersAt, size: indexes.length * 24, alloc: true },
    {
      name: ".hip_fatbin",
      type: host.bundles ? PROGBITS : NOBITS,
      at: bundlesAt,
      size: host.bundles ? bundles.length : PAGE,
      alloc: true,
    },
    { name: ".shstrtab", type: STRTAB, at: namesAt, size: names.length, alloc: false },
  ].filter(({ name }) => name !== ".rocm_kpack_ref" || host.withoutMetadata !== true);
  const loads: readonly Segment[] = [
    { type: 1, offset: 0, address: BASE, fileSize: bundlesAt, memorySize: bundlesAt, alignment: PAGE },
    {
      type: 1,
      offset: bundlesAt,
      address: BASE + bundlesAt,
      fileSize: bundles.length,
      memorySize: Math.max(bundles.length, PAGE),
      alignment: PAGE,
    },
  ];
  const segments = host.segments ? host.segments(loads) : loads;
  const bytes = new Uint8Array(sectionsAt + (sections.length + 1) * 64);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  view.setUint16(16, host.type ?? 3, true);
  view.setUint16(18, 62, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(32, 64n, true);
  view.setBigUint64(40, BigInt(sectionsAt), true);
  view.setUint16(52, 64, true);
  view.setUint16(54, 56, true);
  view.setUint16(56, segments.length, true);
  view.setUint16(58, 64, true);
  view.setUint16(60, sections.length + 1, true);
  view.setUint16(62, sections.length, true);
  segments.forEach((segment, index) => {
    const at = 64 + index * 56;
    view.setUint32(at, segment.type, true);
    view.setUint32(at + 4, 4, true);
    const words = [segment.offset, segment.address, segment.address, segment.fileSize, segment.memorySize];
    [...words, segment.alignment].forEach((word, position) =>
      view.setBigUint64(at + 8 + position * 8, BigInt(word), true),
    );
  });
  bytes.set(metadata, metadataAt);
  indexes.forEach((reserved1, position) => {
    const at = wrappersAt + position * 24;
    const magic = host.magic?.[position] ?? (host.bundles ? "HIPF" : "HIPK");
    const bundleOffset = host.bundleOffsets?.[position] ?? 0;
    const pointer = magic === "HIPF" ? bundlesAt + bundleOffset : metadataAt;
    view.setUint32(at, MAGICS[magic], true);
    view.setUint32(at + 4, 1, true);
    view.setBigUint64(at + 8, BigInt(BASE + pointer), true);
    view.setUint32(at + 16, reserved1, true);
  });
  bytes.set(bundles, bundlesAt);
  bytes.set(new TextEncoder().encode(names), namesAt);
  sections.forEach(({ name, type, at, size, alloc }, position) => {
    const header = sectionsAt + (position + 1) * 64;
    view.setUint32(header, names.indexOf(`${name}\0`), true);
    view.setUint32(header + 4, type, true);
    view.setBigUint64(header + 8, alloc ? 2n : 0n, true);
    view.setBigUint64(header + 16, alloc ? BigInt(BASE + at) : 0n, true);
    view.setBigUint64(header + 24, BigInt(at), true);
    view.setBigUint64(header + 32, BigInt(size), true);
    view.setBigUint64(header + 48, 8n, true);
  });
  return bytes;
}

function align(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}
