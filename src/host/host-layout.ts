import type { Source } from "../source/source.ts";

/** What ELF and COFF files have in common for whoever looks for fat binaries in them. */
export interface HostLayout {
  readonly format: "elf" | "coff";
  /** An object file: not linked yet, so its sections have no addresses. */
  readonly isObject: boolean;
  readonly sections: readonly HostSection[];
  /** Finds what the words of a section will point to when the file is loaded. */
  resolvePointers(source: Source, section: HostSection, options: ResolveOptions): Promise<PointerMap>;
}

export interface HostSection {
  readonly index: number;
  readonly name: string;
  /** In memory; 0 in an object file. In a COFF image with the image base. */
  readonly address: number;
  /** In memory. */
  readonly memorySize: number;
  /** Absolute offset in the file. */
  readonly fileOffset: number;
  /** Bytes that the file has: 0 when the section is zero-filled in memory. */
  readonly fileSize: number;
}

export interface ResolveOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Pointers by the offset of their word in the section. Words without an entry hold their pointer in the file. */
export type PointerMap = ReadonlyMap<number, ResolvedPointer>;

export interface ResolvedPointer {
  /** How the word gets its value, for example `R_X86_64_RELATIVE` or `RELR`. */
  readonly relocation: string;
  /** Where it points, or undefined when only the loader knows. `word` is the value in the file. */
  readonly target: (word: bigint) => PointerTarget | undefined;
}

/** An address, and in object files, whose sections have none, an offset in a section. */
export interface PointerTarget {
  readonly address: bigint;
  readonly sectionIndex?: number | undefined;
}

/** The section whose bytes in the file hold `address`. Sections without an address are not in memory. */
export function sectionOfAddress(layout: HostLayout, address: number): HostSection | undefined {
  return layout.sections.find(
    (section) =>
      section.address > 0 && address >= section.address && address - section.address < section.fileSize,
  );
}

/** Tells of many addresses whether a section's bytes in the file hold them: as {@link sectionOfAddress} would find. */
export function addressTester(layout: HostLayout): (address: number) => boolean {
  const ranges: { readonly start: number; end: number }[] = [];
  const sections = layout.sections.filter(({ address, fileSize }) => address > 0 && fileSize > 0);
  for (const { address, fileSize } of sections.toSorted((a, b) => a.address - b.address)) {
    const last = ranges.at(-1);
    const end = address + fileSize;
    if (last === undefined || address > last.end) ranges.push({ start: address, end });
    else last.end = Math.max(last.end, end);
  }
  return (address) => {
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranges[middle]?.end ?? 0) > address) high = middle;
      else low = middle + 1;
    }
    const range = ranges[low];
    return range !== undefined && address >= range.start;
  };
}
