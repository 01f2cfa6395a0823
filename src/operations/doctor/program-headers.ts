import {
  type ElfFile,
  type ElfSection,
  type ElfSegment,
  SECTION_FLAG_ALLOC,
  SEGMENT_TYPE_LOAD,
} from "../../elf/elf-file.ts";
import { SECTION_TYPE_NOBITS } from "../../elf/elf-file.ts";

/** What is wrong with the program headers of a converted ELF binary. */
export interface ProgramHeaderFaults {
  /** The file contradicts itself, as after an old patchelf. */
  readonly damage: readonly string[];
  /** Where Linux before 5.18 believes the table to be, if that is wrong. */
  readonly misplaced: string | undefined;
  /** Segments that tools confuse. */
  readonly sharedOffsets: readonly string[];
}

const SEGMENT_TYPE_INTERPRETER = 3;
const SEGMENT_TYPE_PROGRAM_HEADERS = 6;
const ELF_TYPE_EXECUTABLE = 2;

/** Looks at the segments alone, not at the code. */
export function judgeProgramHeaders(elf: ElfFile, fileSize: number): ProgramHeaderFaults {
  const loads = elf.segments.filter(({ type }) => type === SEGMENT_TYPE_LOAD);
  return {
    damage: [
      ...damageOfSegments(loads, fileSize),
      ...damageOfTable(elf, loads),
      ...damageOfSections(elf, loads),
    ],
    misplaced: misplacedTable(elf, loads),
    sharedOffsets: sharedOffsets(loads),
  };
}

function damageOfSegments(loads: readonly ElfSegment[], fileSize: number): readonly string[] {
  const faults: string[] = [];
  let end = 0;
  for (const segment of loads) {
    const { index, offset, address, alignment, memorySize } = segment;
    if (alignment > 1 && (address - offset) % alignment !== 0) {
      faults.push(
        `segment ${index}: offset 0x${hex(offset)} and address 0x${hex(address)} do not fit its alignment`,
      );
    }
    if (segment.fileSize > 0 && offset + segment.fileSize > fileSize) {
      faults.push(`segment ${index} ends behind the end of the file`);
    }
    if (segment.fileSize > memorySize)
      faults.push(`segment ${index} has more bytes in the file than in memory`);
    if (address < end)
      faults.push(`segment ${index} begins at 0x${hex(address)}, before the one in front of it ends`);
    end = Math.max(end, address + memorySize);
  }
  return faults;
}

/** The table must be in memory where PT_PHDR says. */
function damageOfTable(elf: ElfFile, loads: readonly ElfSegment[]): readonly string[] {
  const table = elf.segments.find(({ type }) => type === SEGMENT_TYPE_PROGRAM_HEADERS);
  if (table === undefined) return [];
  const { programHeaderOffset } = elf.header;
  if (table.offset !== programHeaderOffset) {
    return [
      `PT_PHDR says that the table is at 0x${hex(table.offset)}, the header says 0x${hex(programHeaderOffset)}`,
    ];
  }
  return isMapped(table, loads) ? [] : ["no segment brings the program headers to where PT_PHDR says"];
}

const NEEDED_SECTIONS = [".rocm_kpack_ref", ".hipFatBinSegment"];

/** What the runtime reads has to be in memory at the section's address. */
function damageOfSections(elf: ElfFile, loads: readonly ElfSegment[]): readonly string[] {
  const isNeeded = ({ name, type, flags, size }: ElfSection): boolean =>
    NEEDED_SECTIONS.includes(name) &&
    type !== SECTION_TYPE_NOBITS &&
    (flags & SECTION_FLAG_ALLOC) !== 0n &&
    size > 0;
  return elf.sections
    .filter((section) => isNeeded(section) && !isMapped({ ...section, fileSize: section.size }, loads))
    .map(({ name }) => `no segment brings ${name} to its address`);
}

function isMapped(
  part: { readonly offset: number; readonly address: number; readonly fileSize: number },
  loads: readonly ElfSegment[],
): boolean {
  return loads.some(
    (load) =>
      part.offset >= load.offset &&
      part.offset + part.fileSize <= load.offset + load.fileSize &&
      part.offset - load.offset === part.address - load.address,
  );
}

/** Linux before 5.18 takes the table to be at the first segment's base plus its offset in the file. */
function misplacedTable(elf: ElfFile, loads: readonly ElfSegment[]): string | undefined {
  const [first] = loads;
  const isProgram =
    elf.header.type === ELF_TYPE_EXECUTABLE ||
    elf.segments.some(({ type }) => type === SEGMENT_TYPE_INTERPRETER);
  if (first === undefined || !isProgram) return undefined;
  const { programHeaderOffset } = elf.header;
  const table = loads.find(
    ({ offset, fileSize }) => programHeaderOffset >= offset && programHeaderOffset < offset + fileSize,
  );
  if (table === undefined) return undefined;
  const right = table.address + programHeaderOffset - table.offset;
  const computed = first.address - first.offset + programHeaderOffset;
  return computed === right
    ? undefined
    : `the program headers are at 0x${hex(right)}, old kernels say 0x${hex(computed)}`;
}

function sharedOffsets(loads: readonly ElfSegment[]): readonly string[] {
  return loads
    .filter((load) => load.fileSize === 0 && load.memorySize > 0)
    .flatMap((empty) =>
      loads
        .filter((load) => load.fileSize > 0 && load.offset === empty.offset)
        .map(
          (load) =>
            `segments ${empty.index} (zero-filled) and ${load.index} are both at 0x${hex(load.offset)}`,
        ),
    );
}

function hex(value: number): string {
  return value.toString(16);
}
