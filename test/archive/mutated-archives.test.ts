import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Codecs,
  isKpackError,
  memorySource,
  nodeCodecs,
  none,
  openArchive,
  zstdPerKernel,
  type ZstdCodec,
} from "../../src/node.ts";
import { encodeValue } from "../../src/msgpack/message-pack-writer.ts";
import { expectedArchives, fixtureBytes } from "../support/archive-fixtures.ts";
import { kernelToWrite, randomNumbers, sampleKernel, sha256, writeToMemory } from "../support/kernels.ts";
import { mutate, pick } from "../support/mutations.ts";

/** KPACK_FUZZ_SEED repeats a run, KPACK_FUZZ_SECONDS makes it longer. */
const FIRST_SEED = Number(process.env["KPACK_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const SECONDS = Number(process.env["KPACK_FUZZ_SECONDS"] ?? 3);

const KERNEL_LIMIT = 1 << 20;
const LARGEST_FILE = 100_000;
const MEMORY_BOUND = 512 * 1024 * 1024;

interface Base {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly tocOffset: number;
  /** By ordinal, where the archive holds hashes of its kernels. */
  readonly hashes: ReadonlySet<string>;
  readonly kernels: ReadonlyMap<string, string>;
}

/** Refuses to be asked for more than a kernel may have, before any memory is taken. */
const boundedZstd: ZstdCodec = {
  compress: async () => await Promise.reject(new Error("nothing is written here")),
  async decompress(frame, size, options) {
    if (size > KERNEL_LIMIT) throw new BoundError(`room for ${size} bytes was asked for`);
    return await (nodeCodecs.zstd as ZstdCodec).decompress(frame, size, options);
  },
  async decompressUnsized(frame, limit, options) {
    if (limit > KERNEL_LIMIT) throw new BoundError(`room for ${limit} bytes was asked for`);
    return await (nodeCodecs.zstd as ZstdCodec).decompressUnsized(frame, limit, options);
  },
  createFrameDecompressor() {
    const decompressor = nodeCodecs.zstd?.createFrameDecompressor?.();
    assert.ok(decompressor);
    return {
      async decompress(frame, size) {
        if (size > KERNEL_LIMIT) throw new BoundError(`room for ${size} bytes was asked for`);
        return await decompressor.decompress(frame, size);
      },
      close: () => decompressor.close(),
    };
  },
};
const codecs: Codecs = { zstd: boundedZstd };
const schemes = [none, zstdPerKernel({ codecs })];

let boundErrors = 0;
class BoundError extends Error {
  constructor(message: string) {
    super(message);
    boundErrors += 1; // the library wraps what a codec throws, so it is counted as well
  }
}

async function baseOf(name: string, bytes: Uint8Array): Promise<Base> {
  const archive = await openArchive(memorySource(bytes), { schemes });
  const kernels = new Map<string, string>();
  const hashes = new Set<string>();
  for await (const { entry, bytes: kernel } of archive.readKernels()) {
    kernels.set(entry.id, sha256(kernel));
    const hash = archive.kernelHash(entry.ordinal);
    if (hash !== undefined) hashes.add(hash);
  }
  return { name, bytes, tocOffset: archive.tocOffset, hashes, kernels };
}

async function bases(): Promise<readonly Base[]> {
  const found: Base[] = [];
  for (const [path, { expect, size }] of expectedArchives)
    if (expect === "ok" && size < LARGEST_FILE) found.push(await baseOf(path, fixtureBytes(path)));
  const kernels = [300, 0, 2000, 20, 5000].map((size, index) =>
    kernelToWrite(
      sampleKernel(index, size),
      {
        binaryKey: `lib/k${index}.so#0`,
        target: "gfx942",
        fields: [{ name: "metadata", value: encodeValue({ a: [1, 2.5, "x"], b: new Uint8Array(9) }) }],
      },
      { binaryKey: `lib/k${index}.so#0`, target: "gfx90a:xnack-" },
    ),
  );
  for (const scheme of [none, zstdPerKernel({ codecs: nodeCodecs })])
    for (const extraFields of [true, false]) {
      const { bytes } = await writeToMemory(kernels, { scheme, extraFields });
      const name = `own ${scheme.name}${extraFields ? " with extra fields" : ""}`;
      // The own ones as often as the fixtures: only with hashes can wrong bytes be told from right ones.
      for (let copy = 0; copy < 4; copy++) found.push(await baseOf(name, bytes));
    }
  return found;
}

/** Opens and reads everything there is. What is refused must be refused by an error of the library. */
async function readEverything(bytes: Uint8Array, base: Base, onlyArea: boolean): Promise<number> {
  const refused = (error: unknown): undefined => {
    if (!isKpackError(error)) throw error;
  };
  const limits = { kernelSize: KERNEL_LIMIT, tocSize: KERNEL_LIMIT };
  const archive = await openArchive(memorySource(bytes), { schemes, limits }).catch(refused);
  if (!archive) return 0;
  const reader = archive.decompressor.openReader?.();
  let read = 0;
  for (const entry of archive.entries) {
    entry.encodedFields();
    try {
      entry.fields();
    } catch (error) {
      refused(error);
    }
    assert.equal(archive.find(entry.binaryKey, entry.target)?.index, entry.index);
    const kernel: Uint8Array | undefined = await archive
      .readKernel(entry, { checkHash: true })
      .catch(refused);
    const options = { expectedSize: entry.originalSize, id: entry.id };
    const reread: Uint8Array | undefined = await reader
      ?.decompressKernel(entry.ordinal, options)
      .catch(refused);
    if (!kernel) continue;
    if (reader) assert.deepEqual(reread, kernel, "other bytes where memory is used again");
    read += 1;
    const hash = archive.kernelHash(entry.ordinal);
    if (hash === undefined || !base.hashes.has(hash)) continue;
    const digest = sha256(kernel);
    if (onlyArea) assert.equal(digest, base.kernels.get(entry.id), "other bytes than were packed");
    else assert.ok([...base.kernels.values()].includes(digest), "bytes that were never packed");
  }
  reader?.close();
  await archive.decompressor.verifyArea?.(() => undefined)?.catch(refused);
  return read;
}

describe("mutated archives", () => {
  it("give a typed error or right bytes: no other exception, no hang, no huge allocation", async (context) => {
    const all = await bases();
    const memory = process.memoryUsage.rss();
    const end = performance.now() + SECONDS * 1000;
    let rounds = 0;
    let kernelsRead = 0;
    for (let seed = FIRST_SEED; performance.now() < end; seed++, rounds++) {
      const random = randomNumbers(seed);
      const base = pick(random, all);
      const onlyArea = random() < 0.3 && base.tocOffset > 64;
      const [from, to] = onlyArea
        ? [64, base.tocOffset]
        : random() < 0.7
          ? [base.tocOffset, base.bytes.length]
          : [0, base.bytes.length];
      let bytes = base.bytes;
      for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
        const changed = mutate(bytes, pick(random, all).bytes, random, from, to);
        // A change in the area alone must not move what follows.
        bytes = onlyArea ? keepingRest(bytes, changed, base.tocOffset) : changed;
      }
      const started = performance.now();
      try {
        kernelsRead += await readEverything(bytes, base, onlyArea);
        assert.equal(boundErrors, 0, "more memory was asked for than a kernel may have");
        assert.ok(performance.now() - started < 5000, "it took too long");
        assert.ok(process.memoryUsage.rss() - memory < MEMORY_BOUND, "memory grew without bound");
      } catch (cause) {
        throw new Error(`seed ${seed}, made from ${base.name}: repeat with KPACK_FUZZ_SEED=${seed}`, {
          cause,
        });
      }
    }
    context.diagnostic(`${rounds} archives from seed ${FIRST_SEED} on, ${kernelsRead} kernels read`);
    assert.ok(rounds > 20 && kernelsRead > 20);
  });
});

function keepingRest(bytes: Uint8Array, changed: Uint8Array, end: number): Uint8Array {
  const copy = bytes.slice();
  copy.set(changed.subarray(0, end));
  copy.set(bytes.subarray(end), end);
  return copy;
}
