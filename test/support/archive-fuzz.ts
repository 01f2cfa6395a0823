import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import {
  type Archive,
  type ArchiveEntry,
  type Codecs,
  isKpackError,
  nodeCodecs,
  type ZstdCodec,
} from "../../src/node.ts";
import { randomNumbers } from "./kernels.ts";
import { mutate, pick, type Random } from "./mutations.ts";

/** KPACK_FUZZ_SEED repeats a run, KPACK_FUZZ_SECONDS makes it longer. */
const FIRST_SEED = Number(process.env["KPACK_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const SECONDS = Number(process.env["KPACK_FUZZ_SECONDS"] ?? 3);
const MEMORY_BOUND = 512 * 1024 * 1024;

/** The most that a kernel may have while damaged archives are read. */
export const KERNEL_LIMIT: number = 1 << 20;

/** An archive that damaged ones are made from. */
export interface FuzzBase {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly tocOffset: number;
}

let boundErrors = 0;
class BoundError extends Error {
  constructor(size: number) {
    super(`room for ${size} bytes was asked for`);
    boundErrors += 1; // the library wraps what a codec throws, so it is counted as well
  }
}

const zstd = nodeCodecs.zstd as ZstdCodec;

/** Node's zstd, but refuses to be asked for more than a kernel may have, before any memory is taken. */
export const boundedCodecs: Codecs = {
  zstd: {
    ...zstd,
    async decompress(frame, size, options) {
      if (size > KERNEL_LIMIT) throw new BoundError(size);
      return await zstd.decompress(frame, size, options);
    },
    async decompressUnsized(frame, limit, options) {
      if (limit > KERNEL_LIMIT) throw new BoundError(limit);
      return await zstd.decompressUnsized(frame, limit, options);
    },
    createFrameDecompressor(options) {
      const decompressor = zstd.createFrameDecompressor?.(options);
      assert.ok(decompressor);
      return {
        async decompress(frame, size) {
          if (size > KERNEL_LIMIT) throw new BoundError(size);
          return await decompressor.decompress(frame, size);
        },
        close: () => decompressor.close(),
      };
    },
  },
};

/** Passes over what the library refuses, and nothing else. */
export function refused(error: unknown): undefined {
  if (!isKpackError(error)) throw error;
}

/** Reads each kernel, also through memory that is used again, which must not make a difference. */
export async function* readableKernels(
  archive: Archive,
): AsyncGenerator<{ readonly entry: ArchiveEntry; readonly kernel: Uint8Array }> {
  const reader = archive.decompressor.openReader?.();
  for (const entry of archive.entries) {
    const kernel: Uint8Array | undefined = await archive
      .readKernel(entry, { checkHash: true })
      .catch(refused);
    const options = { expectedSize: entry.originalSize, id: entry.id };
    const again: Uint8Array | undefined = await reader
      ?.decompressKernel(entry.ordinal, options)
      .catch(refused);
    if (!kernel) continue;
    if (reader) assert.deepEqual(again, kernel, "other bytes where memory is used again");
    yield { entry, kernel };
  }
  reader?.close();
}

/**
 * Makes damaged archives for some seconds and has them read. `read` returns how many kernels came out; with `onlyArea`
 * nothing but the kernels' area was changed, and no byte moved.
 */
export async function fuzzArchives<Base extends FuzzBase>(
  context: TestContext,
  bases: readonly Base[],
  /** Where the change begins, when it is not in the area alone. */
  range: (base: Base, random: Random) => readonly [from: number, to: number],
  read: (bytes: Uint8Array, base: Base, onlyArea: boolean) => Promise<number>,
): Promise<void> {
  const memory = process.memoryUsage.rss();
  const end = performance.now() + SECONDS * 1000;
  let rounds = 0;
  let kernelsRead = 0;
  for (let seed = FIRST_SEED; performance.now() < end; seed++, rounds++) {
    const random = randomNumbers(seed);
    const base = pick(random, bases);
    const onlyArea = random() < 0.35 && base.tocOffset > 64;
    const [from, to] = onlyArea ? [64, base.tocOffset] : range(base, random);
    let { bytes } = base;
    for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
      const changed = mutate(bytes, pick(random, bases).bytes, random, from, to);
      // A change in the area alone must not move what follows.
      bytes = onlyArea ? keepingRest(bytes, changed, base.tocOffset) : changed;
    }
    const started = performance.now();
    try {
      kernelsRead += await read(bytes, base, onlyArea);
      assert.equal(boundErrors, 0, "more memory was asked for than a kernel may have");
      assert.ok(performance.now() - started < 5000, "it took too long");
      assert.ok(process.memoryUsage.rss() - memory < MEMORY_BOUND, "memory grew without bound");
    } catch (cause) {
      throw new Error(`seed ${seed}, made from ${base.name}: repeat with KPACK_FUZZ_SEED=${seed}`, { cause });
    }
  }
  context.diagnostic(`${rounds} archives from seed ${FIRST_SEED} on, ${kernelsRead} kernels read`);
  assert.ok(rounds > 20 && kernelsRead > 20);
}

function keepingRest(bytes: Uint8Array, changed: Uint8Array, end: number): Uint8Array {
  const copy = bytes.slice();
  copy.set(changed.subarray(0, end));
  copy.set(bytes.subarray(end), end);
  return copy;
}
