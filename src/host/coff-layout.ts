import { readCoffFile } from "../coff/coff-file.ts";
import type { Source } from "../source/source.ts";
import type { HostLayout, HostSection, PointerMap, ResolveOptions } from "./host-layout.ts";

/** Sections of a Windows host binary. Its wrappers hold absolute addresses, for the preferred image base. */
export async function readCoffLayout(source: Source, options: ResolveOptions): Promise<HostLayout> {
  const coff = await readCoffFile(source, options);
  const sections = coff.sections.map(
    (section): HostSection => ({
      index: section.index,
      name: section.name,
      address: coff.imageBase + section.address,
      memorySize: Math.max(section.virtualSize, section.presentSize),
      fileOffset: section.rawOffset,
      fileSize: section.presentSize,
    }),
  );
  return {
    format: "coff",
    isObject: coff.isObject,
    sections,
    // The base relocations only say which words move together with the image.
    resolvePointers: async (): Promise<PointerMap> => new Map(),
  };
}
