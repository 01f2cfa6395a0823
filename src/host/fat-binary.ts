import type { Extent } from "../bytes/extent.ts";
import type { Limits } from "../bytes/limits.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { scanBundles } from "../bundle/bundle-scanner.ts";
import type { Codecs } from "../codec/codec.ts";
import { hasElfMagic } from "../elf/elf-header.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import { readCoffLayout } from "./coff-layout.ts";
import { readElfLayout } from "./elf-layout.ts";
import {
  reportLostMetadata,
  reportNoBytes,
  reportOtherContainers,
  reportUnpaired,
} from "./fat-binary-findings.ts";
import type { HostLayout, HostSection } from "./host-layout.ts";
import { type LocatedWrapper, locateWrappers } from "./locate-wrappers.ts";
import { findMetadata } from "./metadata-places.ts";
import { type Wrapper, WRAPPER_SIZE } from "./wrappers.ts";

/** What a host binary has for the GPU. */
export interface FatBinary {
  readonly format: "elf" | "coff";
  /** An object file, which is not linked yet. */
  readonly isObject: boolean;
  /**
   * - `fat`: it holds bundles.
   * - `converted`: its kernels are in archives, its wrappers point to metadata.
   * - `debug-companion`: it has the sections, but no bytes of them.
   * - `none`: no device code.
   */
  readonly state: "fat" | "converted" | "debug-companion" | "none";
  /** In the order of their section, without all-zero ones: `index` is the position in the section. */
  readonly wrappers: readonly Wrapper[];
  /** In the order of the file. Empty unless the state is `fat`. */
  readonly bundles: readonly Bundle[];
  /** `.hip_fatbin`: one, except in odd object files. */
  readonly bundleSections: readonly HostSection[];
  readonly wrapperSections: readonly HostSection[];
  /** `.rocm_kpack_ref`, where a converted binary has it. */
  readonly metadataSection: HostSection | undefined;
  /** What the wrappers of a converted binary point to, up to the end of its section; else the metadata section. */
  readonly metadata: Extent | undefined;
}

export interface ReadFatBinaryOptions {
  /** For compressed bundles: zstd and zlib. */
  readonly codecs: Codecs;
  readonly limits?: Partial<Limits> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: OnFinding | undefined;
}

const BUNDLE_SECTIONS = [".hip_fatbin", ".hip_fat"];
const WRAPPER_SECTIONS = [".hipFatBinSegment", ".hipFatB"];
const METADATA_SECTIONS = [".rocm_kpack_ref", ".kpackrf"];
/** A linked file has one of each kind, an odd object file some more. */
const MOST_SECTIONS = 512;

/**
 * Reads the sections, wrappers and bundles of an ELF or COFF host binary, linked or not.
 *
 * Reads headers and tables, not the kernels; except that compressed bundles are decompressed once.
 *
 * @throws FormatError `HALF_CONVERTED` when its parts contradict each other about a conversion; and what the parts'
 *   own readers throw.
 */
export async function readFatBinary(source: Source, options: ReadFatBinaryOptions): Promise<FatBinary> {
  const { onFinding } = options;
  const layout = await readLayout(source, options.signal);
  const named = (names: readonly string[]): readonly HostSection[] =>
    layout.sections.filter(({ name }) => names.includes(name));
  const bundleSections = named(BUNDLE_SECTIONS);
  const wrapperSections = named(WRAPPER_SECTIONS);
  const [metadataSection] = named(METADATA_SECTIONS);
  reportOtherContainers(source, layout, onFinding);
  checkSections(source, [...bundleSections, ...wrapperSections]);

  const located: LocatedWrapper[] = [];
  let firstIndex = 0;
  for (const section of wrapperSections) {
    const found = await locateWrappers(source, layout, section, { bundleSections, firstIndex, ...options });
    for (const wrapper of found) located.push(wrapper);
    firstIndex += Math.floor(section.fileSize / WRAPPER_SIZE);
  }
  const hasBytes = bundleSections.some((section) => section.fileSize > 0);
  const state = conversionState(source, located, { hasBytes, bundleSections, metadataSection });
  if (state === "debug-companion") reportNoBytes(source, bundleSections, onFinding);
  const bundles =
    state === "fat" ? await readBundles(source, bundleSections, knownStarts(located), options) : [];
  const indices = bundleIndices(bundles);
  const wrappers = located.map((wrapper) => toWrapper(wrapper, indices));
  const places =
    state === "converted"
      ? await findMetadata(source, layout, wrappers, { metadataSection, signal: options.signal })
      : undefined;
  if (places) reportLostMetadata(source, wrappers, places.addresses, onFinding);
  else if (wrappers.length > 0) reportUnpaired(source, wrappers, bundles, onFinding);
  return {
    format: layout.format,
    isObject: layout.isObject,
    state,
    wrappers,
    bundles,
    bundleSections,
    wrapperSections,
    metadataSection,
    metadata: places?.extent,
  };
}

async function readLayout(source: Source, signal: AbortSignal | undefined): Promise<HostLayout> {
  const magic = await source.read(0, Math.min(4, source.size), { signal });
  return hasElfMagic(magic)
    ? await readElfLayout(source, { signal })
    : await readCoffLayout(source, { signal });
}

function conversionState(
  source: Source,
  wrappers: readonly LocatedWrapper[],
  parts: {
    readonly hasBytes: boolean;
    readonly bundleSections: readonly HostSection[];
    readonly metadataSection: HostSection | undefined;
  },
): FatBinary["state"] {
  const [first] = wrappers;
  if (first === undefined) {
    if (parts.hasBytes) return "fat";
    return parts.bundleSections.some(({ memorySize }) => memorySize > 0) ? "debug-companion" : "none";
  }
  const { magic } = first.raw;
  const other = wrappers.find(({ raw }) => raw.magic !== magic);
  const halfConverted = (wrapper: LocatedWrapper, summary: string, expected: string): FormatError =>
    new FormatError("HALF_CONVERTED", summary, {
      file: source.name,
      field: `wrapper[${wrapper.index}].magic`,
      offset: wrapper.fileOffset,
      expected,
      found: wrapper.raw.magic,
    });
  if (other) {
    throw halfConverted(other, "some wrappers are converted and others are not", `${magic} as before`);
  }
  if (magic === "HIPK") return "converted";
  if (parts.metadataSection) {
    throw halfConverted(first, "the metadata is there, but no wrapper is converted", "HIPK");
  }
  if (parts.hasBytes) return "fat";
  if (parts.bundleSections.length === 0) return "none";
  throw halfConverted(first, "the bundles are gone, but no wrapper is converted", "HIPK");
}

async function readBundles(
  source: Source,
  sections: readonly HostSection[],
  starts: readonly number[],
  options: ReadFatBinaryOptions,
): Promise<readonly Bundle[]> {
  const bundles: Bundle[] = [];
  for (const { fileOffset, fileSize } of sections) {
    if (fileSize === 0) continue;
    const scan = { ...options, knownStarts: starts, firstIndex: bundles.length };
    for await (const bundle of scanBundles(source, { offset: fileOffset, size: fileSize }, scan)) {
      bundles.push(bundle);
    }
  }
  return bundles;
}

function knownStarts(wrappers: readonly LocatedWrapper[]): readonly number[] {
  return wrappers.map(({ bundleOffset }) => bundleOffset).filter((offset) => offset !== undefined);
}

/** Bundles by their offset in the file: the first of those that share one compressed container. */
function bundleIndices(bundles: readonly Bundle[]): ReadonlyMap<number, number> {
  return new Map(
    bundles.filter(({ contentOffset }) => contentOffset === 0).map(({ offset, index }) => [offset, index]),
  );
}

function toWrapper(wrapper: LocatedWrapper, indices: ReadonlyMap<number, number>): Wrapper {
  const { index, fileOffset, address, pointsTo, relocation, bundleOffset } = wrapper;
  const { magic, reserved1 } = wrapper.raw;
  const bundleIndex = bundleOffset === undefined ? undefined : indices.get(bundleOffset);
  return { index, magic, fileOffset, address, pointsTo, relocation, bundleIndex, reserved1 };
}

/** All that follows looks at each of these sections for each wrapper, and reads each of them. */
function checkSections(source: Source, sections: readonly HostSection[]): void {
  if (sections.length > MOST_SECTIONS) {
    throw new LimitError("LIMIT_EXCEEDED", "there are too many sections of bundles and wrappers", {
      file: source.name,
      expected: `at most ${MOST_SECTIONS}`,
      found: sections.length,
    });
  }
  let total = 0;
  for (const section of sections) {
    checkInsideFile(source, section);
    total += section.fileSize;
    if (total > source.size) {
      throw new FormatError("OVERLAP", "the sections of bundles and wrappers share bytes", {
        file: source.name,
        field: section.name,
        offset: section.fileOffset,
        expected: `at most ${source.size} bytes in all`,
        found: total,
      });
    }
  }
}

function checkInsideFile(source: Source, section: HostSection): void {
  if (section.fileOffset + section.fileSize > source.size) {
    throw new FormatError("TRUNCATED", "the file ends before the section does", {
      file: source.name,
      field: section.name,
      offset: section.fileOffset,
      expected: `${section.fileSize} bytes`,
      found: Math.max(0, source.size - section.fileOffset),
    });
  }
}
