import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  type Codecs,
  type CompressionScheme,
  convertArchive,
  isKpackError,
  memorySink,
  memorySource,
  nodeCodecs,
  none,
  openArchive,
  zstdCrossKernel,
  type ZstdCodec,
  zstdPerKernel,
} from "../../../src/node.ts";
import type { Effort } from "../../../src/scheme/cross-kernel/effort.ts";
import { PLANNER_NAMES } from "../../../src/scheme/cross-kernel/planner.ts";
import { codePiece, joined, sharedPieceKernels, siblingKernels } from "../../support/kernel-families.ts";
import {
  kernelsDigest,
  kernelsToWrite,
  openBytes,
  randomNumbers,
  readAll,
  sha256,
  writeToMemory,
} from "../../support/kernels.ts";
import { mutate, pick } from "../../support/mutations.ts";
import { exoticGraphs, graphArchive, kernelsOfGraph } from "../../support/raw-graph.ts";

/** KPACK_FUZZ_SEED repeats a run, KPACK_FUZZ_SECONDS makes it longer. */
const FIRST_SEED = Number(process.env["KPACK_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const SECONDS = Number(process.env["KPACK_FUZZ_SECONDS"] ?? 2.5);

const planner = fc.constantFrom(...PLANNER_NAMES);
const effort = fc.constantFrom<Effort>("fast", "default");
/** Of few different ones, so that kernels share some. */
const piece = fc.oneof(
  fc.integer({ min: 0, max: 9 }).map((seed) => codePiece(seed, 4096)),
  fc.integer({ min: 0, max: 30 }).map((seed) => codePiece(seed + 100, 300)),
  fc.uint8Array({ maxLength: 60 }),
);
const kernels = fc.array(fc.array(piece, { maxLength: 8 }).map(joined), { maxLength: 25 });

describe("any kernels", () => {
  it("that are written across kernels are read back in any order, at once too", async () => {
    const options = fc.record({
      planner,
      effort,
      jobs: fc.integer({ min: 1, max: 5 }),
      shareIdentical: fc.boolean(),
      cacheSize: fc.constantFrom(0, 10_000, undefined),
    });
    await fc.assert(
      fc.asyncProperty(kernels, options, fc.nat(), async (list, how, seed) => {
        const scheme = zstdCrossKernel({ codecs: nodeCodecs, ...how });
        const { bytes } = await writeToMemory(kernelsToWrite(list), { scheme, ...how });
        const archive = await openBytes(bytes, { schemes: [scheme] });
        assert.deepEqual(archive.findings, []);
        const random = randomNumbers(seed);
        const order = [...archive.entries].toSorted(() => random() - 0.5);
        const check = async (index: number): Promise<void> => {
          const entry = order[index];
          if (!entry) return;
          const number = Number(/k(\d+)/.exec(entry.binaryKey)?.[1]);
          assert.deepEqual(await archive.readKernel(entry, { checkHash: true }), list[number]);
        };
        for (const index of order.keys()) await check(index);
        await Promise.all(order.map(async (_, index) => await check(index)));
        await archive.decompressor.verifyArea?.((finding) => assert.fail(finding.message));
      }),
      { numRuns: 40 },
    );
  });

  it("stay what they are through all schemes and back", async () => {
    await fc.assert(
      fc.asyncProperty(kernels, planner, effort, async (list, by, how) => {
        const cross = zstdCrossKernel({ codecs: nodeCodecs, planner: by, effort: how });
        const first = (await writeToMemory(kernelsToWrite(list), { scheme: cross })).bytes;
        const digest = kernelsDigest(await readAll(await openBytes(first)));
        let bytes = first;
        for (const scheme of [zstdPerKernel({ codecs: nodeCodecs }), none, cross]) {
          bytes = await converted(bytes, scheme);
          const archive = await openBytes(bytes);
          assert.equal(archive.schemeName, scheme.name);
          assert.deepEqual(archive.findings, []);
          assert.equal(kernelsDigest(await readAll(archive)), digest);
          const others = archive.toc.fields.filter(({ name }) => name.startsWith("cross_"));
          assert.equal(others.length, scheme === cross ? 4 : 0, "no fields of the scheme before are left");
        }
        assert.ok(Buffer.from(bytes).equals(first), "and the archive is the one that it was");
      }),
      { numRuns: 20 },
    );
  });
});

async function converted(bytes: Uint8Array, scheme: CompressionScheme): Promise<Uint8Array> {
  const sink = memorySink();
  await convertArchive(await openBytes(bytes), sink, { scheme, jobs: 2, verify: true });
  return sink.bytes();
}

const KERNEL_LIMIT = 1 << 20;

interface Base {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly tocOffset: number;
  readonly digests: ReadonlySet<string>;
  readonly byId: ReadonlyMap<string, string>;
}

async function fuzzBases(): Promise<readonly Base[]> {
  const corpora = {
    family: sharedPieceKernels(1, 10, { pool: 8, pieces: 4, piece: 1024 }),
    siblings: siblingKernels(2, { count: 3, targets: 3, size: 5000, distance: 600 }),
    odd: [new Uint8Array(), codePiece(1, 7), codePiece(2, 40), codePiece(2, 40), codePiece(3, 9000)],
  };
  const bases: Base[] = [];
  for (const [name, list] of Object.entries(corpora)) {
    for (const by of PLANNER_NAMES) {
      const scheme = zstdCrossKernel({ codecs: nodeCodecs, effort: "fast", planner: by });
      const { bytes } = await writeToMemory(kernelsToWrite(list), { scheme });
      bases.push(await baseOf(`${name}, ${by}`, bytes));
    }
  }
  for (const [name, graph] of Object.entries(exoticGraphs()))
    bases.push(await baseOf(name, graphArchive(graph), kernelsOfGraph(graph)));
  return bases;
}

async function baseOf(name: string, bytes: Uint8Array, wanted?: readonly Uint8Array[]): Promise<Base> {
  const archive = await openBytes(bytes);
  const byId = new Map<string, string>();
  for await (const { entry, bytes: kernel } of archive.readKernels()) byId.set(entry.id, sha256(kernel));
  if (wanted) assert.deepEqual([...byId.values()], wanted.map(sha256));
  return { name, bytes, tocOffset: archive.tocOffset, digests: new Set(byId.values()), byId };
}

let overLimit = 0;
/** Notes when it is asked for more than a kernel may have. */
const boundedZstd: ZstdCodec = {
  ...(nodeCodecs.zstd as ZstdCodec),
  async decompress(frame, size, options) {
    if (size > KERNEL_LIMIT) overLimit += 1;
    return await (nodeCodecs.zstd as ZstdCodec).decompress(frame, size, options);
  },
};
const boundedCodecs: Codecs = { zstd: boundedZstd };

/** Reads all there is; every failure must be the library's. Returns how many kernels came out. */
async function readEverything(bytes: Uint8Array, base: Base, onlyArea: boolean): Promise<number> {
  const refused = (error: unknown): undefined => {
    if (!isKpackError(error)) throw error;
  };
  const archive = await openArchive(memorySource(bytes), {
    schemes: [none, zstdCrossKernel({ codecs: boundedCodecs, cacheSize: 1 << 20 })],
    limits: { kernelSize: KERNEL_LIMIT, tocSize: KERNEL_LIMIT },
  }).catch(refused);
  if (!archive) return 0;
  let read = 0;
  for (const entry of archive.entries) {
    const kernel: Uint8Array | undefined = await archive
      .readKernel(entry, { checkHash: true })
      .catch(refused);
    if (!kernel) continue;
    read += 1;
    const digest = sha256(kernel);
    // Frames have checksums, so a change in the area alone cannot give other bytes.
    if (onlyArea) assert.equal(digest, base.byId.get(entry.id), "other bytes than were packed");
    else if (archive.kernelHash(entry.ordinal) !== undefined && base.bytes.length === bytes.length)
      assert.equal(await archive.hashMatches(entry.ordinal, kernel), true);
  }
  await archive.decompressor.verifyArea?.(() => undefined)?.catch(refused);
  return read;
}

describe("mutated archives of the scheme across kernels", () => {
  it("give a typed error or right bytes: no other exception, no hang, no huge allocation", async (context) => {
    const bases = await fuzzBases();
    const memory = process.memoryUsage.rss();
    const end = performance.now() + SECONDS * 1000;
    let rounds = 0;
    let kernelsRead = 0;
    for (let seed = FIRST_SEED; performance.now() < end; seed++, rounds++) {
      const random = randomNumbers(seed);
      const base = pick(random, bases);
      const isWithArea = base.tocOffset > 64;
      const onlyArea = isWithArea && random() < 0.4;
      const { length } = base.bytes;
      const tables = Buffer.from(base.bytes).lastIndexOf("cross_offset");
      const [from, to] = onlyArea
        ? [64, base.tocOffset]
        : random() < 0.7
          ? [tables, length]
          : [base.tocOffset, length];
      let bytes = base.bytes;
      for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
        const changed = mutate(bytes, pick(random, bases).bytes, random, from, to);
        bytes = onlyArea ? keepingRest(bytes, changed, base.tocOffset) : changed;
      }
      const started = performance.now();
      try {
        kernelsRead += await readEverything(bytes, base, onlyArea);
        assert.equal(overLimit, 0, "more was asked for than a kernel may have");
        assert.ok(performance.now() - started < 5000, "it took too long");
        assert.ok(process.memoryUsage.rss() - memory < 512 << 20, "memory grew without bound");
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
