import type { Archive, CompressionScheme, EncodedField, KernelToWrite } from "../../src/node.ts";
import { writeToMemory } from "./kernels.ts";

/** The TOC fields that are neither the old scheme's nor made anew by the writer. */
export function carriedFields(archive: Archive): readonly EncodedField[] {
  const own = new Set([...archive.scheme.fieldNames, "kernel_hash_algorithm", "kernel_hashes"]);
  return archive.toc.fields
    .filter((field) => !own.has(field.name))
    .map(({ name, start, end }) => ({ name, value: archive.toc.bytes.subarray(start, end) }));
}

/** One kernel per ordinal that an entry names, in the order of the ordinals, with all that its entries carry. */
export function kernelsOf(archive: Archive): readonly KernelToWrite[] {
  const byOrdinal = Map.groupBy(archive.entries, (entry) => entry.ordinal);
  return [...byOrdinal]
    .toSorted(([a], [b]) => a - b)
    .map(([, entries]) => {
      const first = entries[0];
      if (!first) throw new Error("a group is never empty");
      return {
        kernel: {
          size: first.originalSize ?? 0,
          read: async (options) => await archive.readKernel(first, { signal: options?.signal }),
        },
        entries: entries.map((entry) => ({
          binaryKey: entry.binaryKey,
          target: entry.target,
          position: entry.index,
          fields: entry.encodedFields(),
        })),
      };
    });
}

/** Reads an archive and writes what is in it once more. */
export async function rewrite(
  archive: Archive,
  scheme: CompressionScheme,
  options: { readonly extraFields?: boolean; readonly shareIdentical?: boolean; readonly jobs?: number } = {},
): Promise<Uint8Array> {
  const { bytes } = await writeToMemory(kernelsOf(archive), {
    scheme,
    groupName: archive.groupName,
    family: archive.family,
    targets: archive.targets,
    carriedFields: carriedFields(archive),
    ...options,
  });
  return bytes;
}
