import { printable } from "../bytes/text.ts";
import { readElfFile, type ElfSection, SECTION_TYPE_NOBITS } from "../elf/elf-file.ts";
import type { Finding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import { targetDisagreement } from "../target/target-agreement.ts";
import { CODE_OBJECT_HEADER_SIZE, type CodeObjectHeader, readCodeObjectHeader } from "./code-object.ts";
import type { KernelDescriptor } from "./kernel-descriptor.ts";
import {
  type CodeObjectMetadata,
  functionWithoutMetadata,
  type KernelFunction,
  parseMetadata,
} from "./kernel-metadata.ts";
import { readKernelDescriptors } from "./kernel-symbols.ts";
import { decodeMetadataNote, readNotes } from "./notes.ts";

/** A code object: one target's kernel functions, what they need, and what the file consists of. */
export interface CodeObject {
  /** In bytes. */
  readonly size: number;
  readonly header: CodeObjectHeader;
  /** Without the null section; empty when the file has no section headers. */
  readonly sections: readonly CodeObjectSection[];
  /** Undefined when there is no note of it. */
  readonly metadata: Omit<CodeObjectMetadata, "kernels"> | undefined;
  /** In the order of the metadata; then those that only have a descriptor, in the order of their names. */
  readonly functions: readonly KernelFunction[];
  /** What is odd about it, though it can be read. */
  readonly findings: readonly Finding[];
}

export interface CodeObjectSection {
  readonly name: string;
  /** `SHT_…` number. */
  readonly type: number;
  readonly address: number;
  readonly offset: number;
  /** In memory. */
  readonly size: number;
  /** In the file: 0 for a section without bytes. */
  readonly fileSize: number;
}

/**
 * Reads what a code object says about itself: header, section headers, notes, symbols and kernel descriptors, in about
 * ten positioned reads. The code itself is not read.
 *
 * @throws FormatError, LimitError when it is no code object or is damaged
 */
export async function readCodeObject(
  source: Source,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<CodeObject> {
  const firstBytes = await source.read(0, Math.min(CODE_OBJECT_HEADER_SIZE, source.size), options);
  const header = readCodeObjectHeader(firstBytes, { file: source.name });
  const elf = await readElfFile(source, options);
  const note = await decodeMetadataNote(await readNotes(source, elf, options), source.name);
  const metadata = note && parseMetadata(note, source.name);
  const descriptors = await readKernelDescriptors(source, elf, options);
  const kernels = metadata?.kernels ?? [];
  const described = new Set(kernels.map(({ symbol }) => kernelOfSymbol(symbol)));
  const functions: readonly KernelFunction[] = [
    ...kernels.map((kernel) => ({ ...kernel, descriptor: descriptors.get(kernelOfSymbol(kernel.symbol)) })),
    ...[...descriptors]
      .filter(([name]) => !described.has(name))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, descriptor]) => functionWithoutMetadata(name, descriptor)),
  ];
  return {
    size: source.size,
    header,
    sections: elf.sections.filter(({ index }) => index > 0).map(sectionOf),
    metadata: metadata && withoutKernels(metadata),
    functions,
    findings: oddities(source.name, header, metadata, functions, descriptors),
  };
}

function withoutKernels(metadata: CodeObjectMetadata): Omit<CodeObjectMetadata, "kernels"> {
  const { form, version, targetText, target, more } = metadata;
  return { form, version, targetText, target, more };
}

function kernelOfSymbol(symbol: string): string {
  return symbol.replace(/\.kd$/, "");
}

function sectionOf({ name, type, address, offset, size }: ElfSection): CodeObjectSection {
  return { name, type, address, offset, size, fileSize: type === SECTION_TYPE_NOBITS ? 0 : size };
}

function oddities(
  file: string,
  header: CodeObjectHeader,
  metadata: CodeObjectMetadata | undefined,
  functions: readonly KernelFunction[],
  descriptors: ReadonlyMap<string, KernelDescriptor>,
): readonly Finding[] {
  const findings: Finding[] = [];
  const warn = (code: Finding["code"], message: string, field: string): void => {
    findings.push({ severity: "warning", code, message, file, field });
  };
  if (!metadata)
    warn("MISSING_FIELD", "the code object has no metadata note: its kernels cannot be launched", "notes");
  const disagreement = metadata?.target && targetDisagreement(header.target, metadata.target);
  if (disagreement) {
    warn(
      "TARGET_MISMATCH",
      `the metadata is for ${printable(metadata.target ?? "")}, but by its ELF header ${disagreement}`,
      "amdhsa.target",
    );
  }
  // Version 2 has another, larger structure, at the kernel's own symbol.
  if (metadata?.form === "yaml") return findings;
  if (descriptors.size === 0 && functions.length > 0) {
    warn("MISSING_FIELD", "no kernel has a descriptor", "symbols");
    return findings;
  }
  for (const { name, descriptor, ldsSize, scratchSize } of functions) {
    if (!descriptor) {
      warn("MISSING_FIELD", `${printable(name)} has no kernel descriptor`, name);
    } else if (descriptor.ldsSize !== ldsSize || descriptor.scratchSize !== scratchSize) {
      const inMetadata = `LDS ${ldsSize} and scratch ${scratchSize} in the metadata`;
      const inDescriptor = `${descriptor.ldsSize} and ${descriptor.scratchSize} in the descriptor`;
      warn("SIZE_MISMATCH", `${printable(name)}: ${inMetadata}, ${inDescriptor}`, name);
    }
  }
  return findings;
}
