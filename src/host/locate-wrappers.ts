import { safeNumber } from "../bytes/uint64.ts";
import { LimitError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { HostLayout, HostSection, PointerTarget } from "./host-layout.ts";
import { parseWrappers, type RawWrapper, WRAPPER_POINTER_OFFSET, WRAPPER_SIZE } from "./wrappers.ts";

/** A wrapper of which it is known where in the file its bundle should begin. */
export interface LocatedWrapper {
  readonly raw: RawWrapper;
  readonly index: number;
  readonly fileOffset: number;
  readonly address: number;
  readonly pointsTo: number | undefined;
  readonly relocation: string | undefined;
  /** Offset in the file of what it points to, when that is in a section of bundles. */
  readonly bundleOffset: number | undefined;
}

export interface LocateWrappersOptions {
  readonly bundleSections: readonly HostSection[];
  /** Index of the section's first wrapper. */
  readonly firstIndex: number;
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: OnFinding | undefined;
}

const MOST_WRAPPER_BYTES = WRAPPER_SIZE * 1048576;

/** Reads the wrappers of one section and follows their pointers. */
export async function locateWrappers(
  source: Source,
  layout: HostLayout,
  section: HostSection,
  options: LocateWrappersOptions,
): Promise<readonly LocatedWrapper[]> {
  // The pointers of a COFF object file are known to its linker only.
  if (section.fileSize === 0 || (layout.format === "coff" && layout.isObject)) return [];
  if (section.fileSize > MOST_WRAPPER_BYTES) {
    throw new LimitError("LIMIT_EXCEEDED", "the section of wrappers is too large", {
      file: source.name,
      field: section.name,
      offset: section.fileOffset,
      expected: `at most ${MOST_WRAPPER_BYTES}`,
      found: section.fileSize,
    });
  }
  const bytes = await source.read(section.fileOffset, section.fileSize, { signal: options.signal });
  const place = { file: source.name, fileOffset: section.fileOffset };
  const wrappers = parseWrappers(bytes, place, options.onFinding);
  const pointers = await layout.resolvePointers(source, section, { signal: options.signal });
  return wrappers.map((raw) => {
    const pointer = pointers.get(raw.offset + WRAPPER_POINTER_OFFSET);
    const target = pointer === undefined ? { address: raw.word } : pointer.target(raw.word);
    return {
      raw,
      index: options.firstIndex + raw.index,
      fileOffset: section.fileOffset + raw.offset,
      address: section.address + raw.offset,
      pointsTo: target && safeNumber(target.address),
      relocation: pointer?.relocation,
      bundleOffset: target && fileOffsetOf(target, layout, options.bundleSections),
    };
  });
}

function fileOffsetOf(
  target: PointerTarget,
  layout: HostLayout,
  sections: readonly HostSection[],
): number | undefined {
  const address = safeNumber(target.address);
  if (address === undefined) return undefined;
  const section = sections.find((candidate) =>
    layout.isObject
      ? candidate.index === target.sectionIndex
      : address >= candidate.address && address - candidate.address < candidate.memorySize,
  );
  return section && section.fileOffset + address - section.address;
}
