import type { Archive } from "../archive/archive.ts";
import { attributeFrames } from "./graph.ts";

/**
 * Says what part of all stored bytes an entry of the kernel with this ordinal has, where kernels share frames: each
 * kernel's part, divided among its entries. Undefined for schemes that store each kernel by itself.
 */
export function entryShares(archive: Archive): ((ordinal: number) => number) | undefined {
  const map = archive.decompressor.describeFrames?.();
  if (!map) return undefined;
  const entriesOfKernel = new Map<number, number>();
  for (const { ordinal } of archive.entries)
    entriesOfKernel.set(ordinal, (entriesOfKernel.get(ordinal) ?? 0) + 1);
  const { kernels } = attributeFrames(map);
  return (ordinal) => (kernels[ordinal] ?? 0) / (entriesOfKernel.get(ordinal) ?? 1);
}
