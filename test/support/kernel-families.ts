import { randomNumbers } from "./kernels.ts";

/** Kernels with structure, the same for the same seed: no data of anybody's, but what such data has in common. */

const PIECE = 4096;

/**
 * Something like code: words of four bytes, of a few hundred instructions, so that it compresses about as code does, and
 * not much better with what another piece holds than that has in common with it.
 */
export function codePiece(seed: number, size: number): Uint8Array {
  const random = randomNumbers(seed);
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 4) {
    const opcode = Math.floor(random() ** 2 * 64);
    const values = [random() * 256, random() ** 3 * 256, opcode, 0xbf ^ (opcode & 3)];
    for (let byte = 0; byte < 4 && at + byte < size; byte++) bytes[at + byte] = values[byte] ?? 0;
  }
  return bytes;
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}

export function randomKernel(seed: number, size: number): Uint8Array {
  const random = randomNumbers(seed);
  return Uint8Array.from({ length: size }, () => random() * 256);
}

/** Kernels of `pieces` pieces of 4 KiB each, taken from a pool of `pool` pieces that all families' kernels share. */
export function sharedPieceKernels(
  seed: number,
  count: number,
  options: { readonly pool: number; readonly pieces: number; readonly piece?: number },
): readonly Uint8Array[] {
  const random = randomNumbers(seed);
  const size = options.piece ?? PIECE;
  const pool = Array.from({ length: options.pool }, (_, index) => codePiece(seed * 1000 + index, size));
  return Array.from({ length: count }, (_, kernel) =>
    joined([
      ...Array.from(
        { length: options.pieces },
        () => pool[Math.floor(random() * options.pool)] ?? new Uint8Array(),
      ),
      codePiece(seed * 1000 + 500 + kernel, 256), // something of its own
    ]),
  );
}

/** For each of `count` kernels, `targets` versions that differ in one word of every `distance` bytes. */
export function siblingKernels(
  seed: number,
  options: {
    readonly count: number;
    readonly targets: number;
    readonly size: number;
    readonly distance: number;
  },
): readonly Uint8Array[] {
  const random = randomNumbers(seed);
  const kernels: Uint8Array[] = [];
  for (let index = 0; index < options.count; index++) {
    const base = codePiece(seed * 7919 + index, options.size);
    for (let target = 0; target < options.targets; target++) {
      const version = base.slice();
      const first = target === 0 ? version.length : Math.floor(random() * 64) * 4;
      for (let at = first; at < version.length; at += options.distance) version[at] = random() * 256;
      kernels.push(version);
    }
  }
  return kernels;
}

/** Small kernels that resemble each other: one skeleton with a few words of their own. */
export function smallSimilarKernels(seed: number, count: number, size: number): readonly Uint8Array[] {
  return siblingKernels(seed, { count: 1, targets: count, size, distance: 600 });
}
