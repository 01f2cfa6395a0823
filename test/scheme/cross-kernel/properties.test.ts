import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  type CompressionScheme,
  convertArchive,
  memorySink,
  memorySource,
  nodeCodecs,
  none,
  openArchive,
  zstdCrossKernel,
  zstdPerKernel,
} from "../../../src/node.ts";
import type { Effort } from "../../../src/scheme/cross-kernel/effort.ts";
import { PLANNER_NAMES } from "../../../src/scheme/cross-kernel/planner.ts";
import {
  boundedCodecs,
  fuzzArchives,
  type FuzzBase,
  KERNEL_LIMIT,
  readableKernels,
  refused,
} from "../../support/archive-fuzz.ts";
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
import { exoticGraphs, graphArchive, kernelsOfGraph } from "../../support/raw-graph.ts";

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

interface Base extends FuzzBase {
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

/** Reads all there is; every failure must be the library's. Returns how many kernels came out. */
async function readEverything(bytes: Uint8Array, base: Base, onlyArea: boolean): Promise<number> {
  const archive = await openArchive(memorySource(bytes), {
    schemes: [none, zstdCrossKernel({ codecs: boundedCodecs, cacheSize: 1 << 20 })],
    limits: { kernelSize: KERNEL_LIMIT, tocSize: KERNEL_LIMIT },
  }).catch(refused);
  if (!archive) return 0;
  let read = 0;
  for await (const { entry, kernel } of readableKernels(archive)) {
    read += 1;
    // Frames have checksums, so a change in the area alone cannot give other bytes.
    if (onlyArea) assert.equal(sha256(kernel), base.byId.get(entry.id), "other bytes than were packed");
    else if (archive.kernelHash(entry.ordinal) !== undefined && base.bytes.length === bytes.length)
      assert.equal(await archive.hashMatches(entry.ordinal, kernel), true);
  }
  await archive.decompressor.verifyArea?.(() => undefined)?.catch(refused);
  return read;
}

describe("mutated archives of the scheme across kernels", () => {
  it("give a typed error or right bytes: no other exception, no hang, no huge allocation", async (context) => {
    const range = ({ bytes, tocOffset }: Base, random: () => number): readonly [number, number] => [
      random() < 0.7 ? Buffer.from(bytes).lastIndexOf("cross_offset") : tocOffset,
      bytes.length,
    ];
    await fuzzArchives(context, await fuzzBases(), range, readEverything);
  });
});
