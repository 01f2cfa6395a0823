import type { KernelBytes } from "../archive/kernel-to-write.ts";
import type { Extent } from "../bytes/extent.ts";
import type { Bundle, BundleEntry } from "../bundle/bundle.ts";
import { scanBundles } from "../bundle/bundle-scanner.ts";
import {
  CODE_OBJECT_HEADER_SIZE,
  identifyPayload,
  type PayloadKind,
  readCodeObjectHeader,
} from "../code-object/code-object.ts";
import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import { detectFile, type FileKind } from "./detect.ts";
import { type FatBinary, readFatBinary, type ReadFatBinaryOptions } from "./fat-binary.ts";
import type { Wrapper } from "./wrappers.ts";

/** What a file holds for GPUs, whatever its container. */
export interface DeviceCode {
  readonly source: Source;
  readonly kind: FileKind;
  /** For host binaries. */
  readonly fatBinary: FatBinary | undefined;
  readonly bundles: readonly Bundle[];
  /** All payloads in file order, also those for the host and two under one id: only empty ones are left out. */
  readonly items: readonly DeviceItem[];
}

/** One payload for one target, or for the host. */
export interface DeviceItem {
  readonly file: string;
  /** The entry id, or for a bare code object its target. */
  readonly id: string;
  /** The target id; for an entry that names none, and for the host's, the entry id. */
  readonly target: string;
  readonly payload: PayloadKind;
  /** HIP's runtime loads it: a code object under a HIP id, or a bare one. */
  readonly isHipCodeObject: boolean;
  /** Whether it is not for a device: code that the bundle has for the host. */
  readonly isHost: boolean;
  /** Whether it stands in a host binary, not in a bundle's or code object's own file. */
  readonly isInHostBinary: boolean;
  /** Undefined for a bare code object. */
  readonly bundleIndex: number | undefined;
  /**
   * The indexes under which the runtime asks for it: those of the wrappers that point to its bundle; without any
   * wrappers in the file the bundle's own index; 0 for a bare code object. Empty: no wrapper points to the bundle, so
   * the runtime never asks. All items of a bundle share one array.
   */
  readonly keyIndexes: readonly number[];
  /** Where the payload stands in the file as it is; undefined where its bundle is compressed. */
  readonly extent: Extent | undefined;
  readonly kernel: KernelBytes;
}

/**
 * Reads what a fat binary, bundle file or code object has for GPUs. Kernels are left in the file: see
 * {@link DeviceItem.kernel}. Oddities go to `onFinding`.
 *
 * @throws FormatError `NO_DEVICE_CODE` for a file of another kind
 */
export async function readDeviceCode(source: Source, options: ReadFatBinaryOptions): Promise<DeviceCode> {
  const kind = await detectFile(source, options);
  switch (kind) {
    case "code-object":
      return {
        source,
        kind,
        fatBinary: undefined,
        bundles: [],
        items: [await bareCodeObject(source, options)],
      };
    case "bundle":
    case "compressed-bundle": {
      const bundles: Bundle[] = [];
      for await (const bundle of scanBundles(source, { offset: 0, size: source.size }, options))
        bundles.push(bundle);
      return {
        source,
        kind,
        fatBinary: undefined,
        bundles,
        items: await itemsOf(source, bundles, undefined, options),
      };
    }
    case "elf-host":
    case "coff-host": {
      const fatBinary = await readFatBinary(source, options);
      const { bundles } = fatBinary;
      return { source, kind, fatBinary, bundles, items: await itemsOf(source, bundles, fatBinary, options) };
    }
    case "kpack":
    case "other":
      throw noDeviceCode(source, kind);
  }
}

async function bareCodeObject(source: Source, options: ReadFatBinaryOptions): Promise<DeviceItem> {
  const { signal } = options;
  const header = readCodeObjectHeader(
    await source.read(0, Math.min(CODE_OBJECT_HEADER_SIZE, source.size), { signal }),
    {
      file: source.name,
    },
  );
  return {
    file: source.name,
    id: header.target.targetName,
    target: header.target.targetName,
    payload: "code-object",
    isHipCodeObject: true,
    isHost: false,
    isInHostBinary: false,
    bundleIndex: undefined,
    keyIndexes: [0],
    extent: { offset: 0, size: source.size },
    kernel: { size: source.size, read: (read) => source.read(0, source.size, read) },
  };
}

async function itemsOf(
  source: Source,
  bundles: readonly Bundle[],
  fatBinary: FatBinary | undefined,
  options: ReadFatBinaryOptions,
): Promise<readonly DeviceItem[]> {
  const items: DeviceItem[] = [];
  const wrapperIndexes =
    fatBinary && fatBinary.wrappers.length > 0 ? indexesByBundle(fatBinary.wrappers) : undefined;
  for (const bundle of bundles) {
    const keyIndexes = wrapperIndexes ? (wrapperIndexes.get(bundle.index) ?? []) : [bundle.index];
    for (const entry of bundle.entries.filter(({ size }) => size > 0)) {
      const { id } = entry;
      const payload = identifyPayload(await readFirst(source, bundle, entry, options.signal));
      items.push({
        file: source.name,
        id: id.text,
        target: id.isHost ? id.text : (id.target ?? id.text),
        payload,
        isHipCodeObject: id.isHip && payload === "code-object",
        isHost: id.isHost,
        isInHostBinary: fatBinary !== undefined,
        bundleIndex: bundle.index,
        keyIndexes,
        extent:
          bundle.container === "plain"
            ? { offset: bundle.offset + entry.offset, size: entry.size }
            : undefined,
        kernel: { size: entry.size, read: (read) => bundle.readEntry(entry, read) },
      });
    }
  }
  return items;
}

/** Grouped once: hostile files have as many bundles as wrappers, and tens of thousands of both. */
function indexesByBundle(wrappers: readonly Wrapper[]): ReadonlyMap<number, readonly number[]> {
  const indexes = new Map<number, number[]>();
  for (const { index, bundleIndex } of wrappers) {
    if (bundleIndex === undefined) continue;
    const known = indexes.get(bundleIndex);
    if (known) known.push(index);
    else indexes.set(bundleIndex, [index]);
  }
  return indexes;
}

async function readFirst(
  source: Source,
  bundle: Bundle,
  entry: BundleEntry,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const length = Math.min(entry.size, CODE_OBJECT_HEADER_SIZE);
  if (entry.head && entry.head.length >= length) return entry.head.subarray(0, length);
  if (bundle.container === "plain")
    return await source.read(bundle.offset + entry.offset, length, { signal });
  return (await bundle.readEntry(entry, { signal })).subarray(0, length);
}

function noDeviceCode(source: Source, kind: FileKind): FormatError {
  return new FormatError("NO_DEVICE_CODE", "this is no fat binary, bundle or code object", {
    file: source.name,
    field: "file",
    expected: "an ELF or COFF host binary, an offload bundle, or a code object",
    found: source.size === 0 ? "an empty file" : kind === "kpack" ? "a .kpack archive" : "something else",
    hint: kind === "kpack" ? 'It is packed already: "kpack convert" rewrites archives.' : undefined,
  });
}
