import { type ElfFile, type ElfSection, readElfFile, SECTION_TYPE_NOBITS } from "../elf/elf-file.ts";
import { ELF_MACHINE_X86_64, ELF_TYPE_RELOCATABLE } from "../elf/elf-header.ts";
import { findRelocations, R_X86_64_64, R_X86_64_RELATIVE, type Relocation } from "../elf/relocations.ts";
import { readSymbol } from "../elf/symbols.ts";
import type { Source } from "../source/source.ts";
import type { HostLayout, HostSection, PointerMap, ResolvedPointer, ResolveOptions } from "./host-layout.ts";

/** Sections of an ELF host binary, and where the pointers in its wrappers lead. */
export async function readElfLayout(source: Source, options: ResolveOptions): Promise<HostLayout> {
  const elf = await readElfFile(source, options);
  return {
    format: "elf",
    isObject: elf.header.type === ELF_TYPE_RELOCATABLE,
    sections: elf.sections.map(hostSection),
    async resolvePointers(from: Source, section: HostSection, how: ResolveOptions): Promise<PointerMap> {
      return await resolvePointers(from, elf, section, how);
    },
  };
}

function hostSection(section: ElfSection): HostSection {
  const { index, name, address, size, offset, type } = section;
  const fileSize = type === SECTION_TYPE_NOBITS ? 0 : size;
  return { index, name, address, memorySize: size, fileOffset: offset, fileSize };
}

async function resolvePointers(
  source: Source,
  elf: ElfFile,
  section: HostSection,
  options: ResolveOptions,
): Promise<PointerMap> {
  const pointers = new Map<number, ResolvedPointer>();
  const target = elf.sections[section.index];
  if (target === undefined || elf.header.machine !== ELF_MACHINE_X86_64) return pointers;
  const start = elf.header.type === ELF_TYPE_RELOCATABLE ? 0 : section.address;
  const range = { start, end: start + section.memorySize, target };
  for (const relocation of await findRelocations(source, elf, range, options)) {
    pointers.set(relocation.place - start, await resolve(source, elf, relocation, options));
  }
  return pointers;
}

async function resolve(
  source: Source,
  elf: ElfFile,
  relocation: Relocation,
  options: ResolveOptions,
): Promise<ResolvedPointer> {
  const { addend, type } = relocation;
  if (addend === undefined) return { relocation: "RELR", target: (word) => ({ address: word }) };
  if (type === R_X86_64_RELATIVE) {
    return { relocation: "R_X86_64_RELATIVE", target: () => ({ address: addend }) };
  }
  const table = elf.sections[relocation.section.link];
  if (type !== R_X86_64_64 || table === undefined) {
    return { relocation: `relocation type ${type}`, target: () => undefined };
  }
  const symbol = await readSymbol(source, table, relocation.symbolIndex, options);
  const { sectionIndex, value } = symbol;
  // An undefined symbol comes from another file.
  const address = sectionIndex === 0 ? undefined : { address: value + addend, sectionIndex };
  return { relocation: "R_X86_64_64", target: () => address };
}
