import { createHash } from "node:crypto";
import type {
  Archive,
  EntryToWrite,
  KernelToWrite,
  WriteArchiveOptions,
  WriteSummary,
} from "../../src/node.ts";
import { memorySink, memorySource, openArchive, writeArchive } from "../../src/node.ts";

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A small pseudo-random generator (mulberry32), the same numbers for the same seed everywhere. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A kernel that compresses about as code does: runs and noise. */
export function sampleKernel(seed: number, size: number): Uint8Array {
  const random = randomNumbers(seed);
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; ) {
    const run = 1 + Math.floor(random() * 24);
    const value = Math.floor(random() * 256);
    const isNoise = random() < 0.4;
    for (let end = Math.min(size, at + run); at < end; at++) bytes[at] = isNoise ? random() * 256 : value;
  }
  return bytes;
}

export function kernelToWrite(bytes: Uint8Array, ...entries: readonly EntryToWrite[]): KernelToWrite {
  return { kernel: { size: bytes.length, read: async () => bytes }, entries };
}

/** Kernels `lib/k0.so#0` … for gfx942 and gfx1100 in turn. */
export function kernelsToWrite(kernels: readonly Uint8Array[]): readonly KernelToWrite[] {
  return kernels.map((bytes, index) =>
    kernelToWrite(bytes, { binaryKey: `lib/k${index}.so#0`, target: index % 2 === 0 ? "gfx942" : "gfx1100" }),
  );
}

export async function writeToMemory(
  kernels: Iterable<KernelToWrite> | AsyncIterable<KernelToWrite>,
  options: Partial<WriteArchiveOptions> & Pick<WriteArchiveOptions, "scheme">,
): Promise<{ readonly bytes: Uint8Array; readonly summary: WriteSummary }> {
  const sink = memorySink();
  const summary = await writeArchive(sink, kernels, { groupName: "g", family: "gfx9X", ...options });
  return { bytes: sink.bytes(), summary };
}

export async function openBytes(
  bytes: Uint8Array,
  options: Parameters<typeof openArchive>[1] = {},
): Promise<Archive> {
  return await openArchive(memorySource(bytes, "test.kpack"), options);
}

export interface ReadKernel {
  readonly binary: string;
  readonly arch: string;
  readonly ordinal: number;
  readonly bytes: Uint8Array;
}

export async function readAll(archive: Archive): Promise<readonly ReadKernel[]> {
  const kernels: ReadKernel[] = [];
  for await (const { entry, bytes } of archive.readKernels({ checkHash: true }))
    kernels.push({ binary: entry.binaryKey, arch: entry.target, ordinal: entry.ordinal, bytes });
  return kernels;
}

/** As EXPECTED.json defines it: over the lines `binary TAB arch TAB size TAB sha256 NEWLINE`. */
export function kernelsDigest(kernels: readonly ReadKernel[]): string {
  const hash = createHash("sha256");
  for (const { binary, arch, bytes } of kernels)
    hash.update(`${binary}\t${arch}\t${bytes.length}\t${sha256(bytes)}\n`);
  return hash.digest("hex");
}
