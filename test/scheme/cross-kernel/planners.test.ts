import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Archive, nodeCodecs, zstdCrossKernel, zstdPerKernel } from "../../../src/node.ts";
import { CrossKernelDecompressor } from "../../../src/scheme/cross-kernel/cross-kernel-decompressor.ts";
import { type Effort, EFFORTS } from "../../../src/scheme/cross-kernel/effort.ts";
import type { FrameGraph } from "../../../src/scheme/cross-kernel/frame-graph.ts";
import { PLANNER_NAMES, type PlannerName } from "../../../src/scheme/cross-kernel/planner.ts";
import {
  codePiece,
  randomKernel,
  sharedPieceKernels,
  siblingKernels,
  smallSimilarKernels,
} from "../../support/kernel-families.ts";
import { kernelsToWrite, openBytes, readAll, writeToMemory } from "../../support/kernels.ts";

type Kernels = readonly Uint8Array[];

const FAMILY = sharedPieceKernels(1, 16, { pool: 24, pieces: 9 });
const SIBLINGS = siblingKernels(2, { count: 4, targets: 4, size: 30_000, distance: 2000 });
const SMALL = smallSimilarKernels(3, 120, 3000);
const SMALL_FAMILY = sharedPieceKernels(4, 100, { pool: 60, pieces: 5, piece: 512 });
const RANDOM = Array.from({ length: 10 }, (_, index) => randomKernel(index, 30_000));
const UNRELATED = Array.from({ length: 10 }, (_, index) => codePiece(index + 70, 30_000));
const TINY = Array.from({ length: 40 }, (_, index) => codePiece(index + 90, index + 1));
const MIXTURE = [
  ...FAMILY.slice(0, 8),
  new Uint8Array(),
  ...SIBLINGS.slice(0, 8),
  ...SMALL.slice(0, 20),
  ...RANDOM.slice(0, 3),
  ...TINY.slice(0, 5),
];
const CORPORA: Readonly<Record<string, Kernels>> = {
  "kernels of shared pieces": FAMILY,
  "sibling targets": SIBLINGS,
  "small similar kernels": SMALL,
  "small kernels of shared pieces": SMALL_FAMILY,
  "random kernels": RANDOM,
  "unrelated kernels": UNRELATED,
  "tiny kernels": TINY,
  "a mixture": MIXTURE,
  "empty kernels": [new Uint8Array(), new Uint8Array(), new Uint8Array()],
  "one kernel": [codePiece(1, 20_000)],
  "one empty kernel": [new Uint8Array()],
  "one tiny kernel": [Uint8Array.of(1)],
  "no kernels": [],
  "kernels of one repeated byte": [1, 2, 3].map((value) => new Uint8Array(50_000).fill(value)),
  "kernels that are beginnings of one": [1000, 5000, 20_000, 50_000].map((size) => codePiece(5, size)),
};

interface Written {
  readonly bytes: Uint8Array;
  readonly archive: Archive;
  readonly graph: FrameGraph;
}

const written = new Map<Kernels, Map<string, Promise<Written>>>();

/** An archive of the kernels with the usual options, made once. */
async function write(kernels: Kernels, planner: PlannerName, effort: Effort): Promise<Written> {
  const ofKernels = written.get(kernels) ?? new Map<string, Promise<Written>>();
  written.set(kernels, ofKernels);
  const key = `${planner} ${effort}`;
  const known = ofKernels.get(key) ?? writeAnew(kernels, planner, effort);
  ofKernels.set(key, known);
  return await known;
}

async function writeAnew(
  kernels: Kernels,
  planner: PlannerName,
  effort: Effort,
  options: { readonly jobs?: number; readonly shareIdentical?: boolean } = {},
): Promise<Written> {
  const scheme = zstdCrossKernel({ codecs: nodeCodecs, planner, effort });
  const { bytes } = await writeToMemory(kernelsToWrite(kernels), { scheme, ...options });
  const archive = await openBytes(bytes);
  const { decompressor } = archive;
  assert.ok(decompressor instanceof CrossKernelDecompressor);
  return { bytes, archive, graph: decompressor.graph };
}

const sizes = new Map<Kernels, number>();

async function sizePerKernel(kernels: Kernels): Promise<number> {
  const known = sizes.get(kernels);
  if (known !== undefined) return known;
  const scheme = zstdPerKernel({ codecs: nodeCodecs, level: 3 });
  const { bytes } = await writeToMemory(kernelsToWrite(kernels), { scheme });
  sizes.set(kernels, bytes.length);
  return bytes.length;
}

/** The frame that others name, if there is one: our planners make one at most. */
function dictionaryOf(graph: FrameGraph): number | undefined {
  const named = new Set(graph.frames.flatMap(({ dictionaries }) => dictionaries));
  assert.ok(named.size <= 1);
  return [...named][0];
}

/** The ordinals in each frame, for frames with kernels. */
function groupsOf(graph: FrameGraph): readonly (readonly number[])[] {
  const groups = Map.groupBy(graph.kernels.keys(), (ordinal) => graph.kernels[ordinal]?.[0]?.frame ?? -1);
  return [...groups].toSorted(([a], [b]) => a - b).map(([, group]) => group);
}

for (const planner of PLANNER_NAMES) {
  describe(`the planner ${planner}`, () => {
    for (const effort of planner === "auto" ? EFFORTS : (["fast", "default"] as const)) {
      for (const [name, kernels] of Object.entries(CORPORA)) {
        it(`gives back ${name} as they were, at effort ${effort}, and writes them alike each time`, async () => {
          const { bytes, archive, graph } = await write(kernels, planner, effort);
          const read = await readAll(archive);
          assert.deepEqual(
            read.map(({ bytes: kernel }) => kernel),
            kernels.map((_, index) => kernels[read[index]?.ordinal === 0 ? 0 : index]),
          );
          const findings: unknown[] = [];
          await archive.decompressor.verifyArea?.((finding) => findings.push(finding));
          assert.deepEqual(findings, []);
          for (const jobs of effort === "default" ? [1, 2, 5] : [1]) {
            const again = await writeAnew(kernels, planner, effort, { jobs });
            assert.ok(Buffer.from(again.bytes).equals(bytes), `${jobs} jobs`);
          }
          assert.ok(graph.depth <= 2);
          const dictionary = dictionaryOf(graph);
          if (dictionary === undefined) return;
          assert.equal(dictionary, graph.frames.length - 1, "the dictionary stands last, beside the TOC");
          for (const { dictionaries } of graph.frames.slice(0, -1))
            assert.deepEqual(dictionaries, [dictionary]);
          assert.ok(graph.kernels.every((slices) => slices.every(({ frame }) => frame !== dictionary)));
        });
      }

      it(`is never more than 1% larger than zstd-per-kernel at effort ${effort}`, async () => {
        for (const kernels of [RANDOM, UNRELATED, TINY, CORPORA["one kernel"] ?? [], MIXTURE]) {
          const [{ bytes }, plain] = [await write(kernels, planner, effort), await sizePerKernel(kernels)];
          assert.ok(bytes.length <= plain * 1.01 + 64, `${bytes.length} against ${plain}`);
        }
      });
    }

    it("stores identical kernels once, under two ordinals", async () => {
      const [a, b] = [codePiece(1, 9000), codePiece(2, 9000)] as const;
      const kernels = [a, b, a.slice(), new Uint8Array(), b.slice(), new Uint8Array(), a.slice()];
      const { archive, graph, bytes } = await writeAnew(kernels, planner, "fast", { shareIdentical: false });
      assert.equal(await archive.decompressor.kernelCount(), 7);
      for (const [ordinal, kernel] of kernels.entries())
        assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), kernel);
      for (const [one, other] of [
        [0, 2],
        [0, 6],
        [1, 4],
        [3, 5],
      ] as const)
        assert.deepEqual(graph.kernels[one], graph.kernels[other]);
      const shared = await writeAnew(kernels, planner, "fast", { shareIdentical: true });
      assert.ok(bytes.length < shared.bytes.length + 100, "the second copies cost table entries only");
      assert.equal(await shared.archive.decompressor.kernelCount(), 3);
    });
  });
}

describe("what a planner stores", () => {
  const ratio = async (kernels: Kernels, planner: PlannerName, effort: Effort = "fast"): Promise<number> =>
    (await write(kernels, planner, effort)).bytes.length / (await sizePerKernel(kernels));

  for (const planner of ["auto", "dictionary", "blocks"] as const) {
    it(`shared pieces go into a dictionary: ${planner}`, async () => {
      for (const kernels of [FAMILY, SMALL_FAMILY]) {
        for (const effort of ["fast", "default"] as const) {
          const { graph } = await write(kernels, planner, effort);
          assert.notEqual(dictionaryOf(graph), undefined);
          assert.ok((await ratio(kernels, planner, effort)) < 0.4);
        }
      }
    });

    it(`what has nothing in common gets no dictionary: ${planner}`, async () => {
      for (const kernels of [RANDOM, UNRELATED, TINY, CORPORA["one kernel"] ?? []])
        assert.equal(dictionaryOf((await write(kernels, planner, "max")).graph), undefined);
    });

    it(`a dictionary that does not pay for itself is left out: ${planner}`, async () => {
      // Two kernels of a hundred have a piece in common, and small pieces of it at that.
      const piece = codePiece(1, 400);
      const kernels = Array.from({ length: 12 }, (_, index) => {
        const kernel = codePiece(index + 20, 40_000);
        if (index < 2) kernel.set(piece, 8192);
        return kernel;
      });
      assert.equal(dictionaryOf((await write(kernels, planner, "max")).graph), undefined);
    });
  }

  it("siblings go into one frame, one for each target, in ordinal order", async () => {
    const { graph } = await write(SIBLINGS, "siblings", "default");
    assert.deepEqual(
      groupsOf(graph),
      Array.from({ length: 4 }, (_, index) => [0, 1, 2, 3].map((target) => index * 4 + target)),
    );
    assert.equal(dictionaryOf(graph), undefined);
    assert.ok((await ratio(SIBLINGS, "siblings")) < 0.35);
  });

  it("siblings are found wherever their ordinals stand", async () => {
    const byTarget = [0, 1, 2, 3].flatMap((target) => SIBLINGS.filter((_, index) => index % 4 === target));
    const { graph } = await write(byTarget, "siblings", "fast");
    assert.deepEqual(
      groupsOf(graph),
      Array.from({ length: 4 }, (_, index) => [0, 4, 8, 12].map((first) => first + index)),
    );
  });

  it("auto is about as good as the best planner, whatever the kernels are", async () => {
    for (const kernels of [FAMILY, SIBLINGS, SMALL, SMALL_FAMILY, MIXTURE, RANDOM]) {
      const others = await Promise.all(
        (["dictionary", "siblings"] as const).map((planner) => ratio(kernels, planner, "default")),
      );
      const found = await ratio(kernels, "auto", "default");
      assert.ok(found <= Math.min(...others) * 1.05 + 0.005, `${found} against ${others.join(", ")}`);
    }
  });

  it("blocks puts small kernels into frames of 48 KiB at most", async () => {
    for (const kernels of [SMALL, SMALL_FAMILY, TINY]) {
      const { graph } = await write(kernels, "blocks", "fast");
      const groups = groupsOf(graph);
      const total = kernels.reduce((sum, { length }) => sum + length, 0);
      assert.ok(groups.length <= Math.ceil(total / 20_000), `${groups.length} frames`);
      for (const group of groups)
        assert.ok(group.reduce((sum, ordinal) => sum + (kernels[ordinal]?.length ?? 0), 0) <= 48 * 1024);
    }
  });

  it("dictionary leaves each kernel in a frame of its own", async () => {
    for (const kernels of [FAMILY, SIBLINGS, SMALL]) {
      const { graph } = await write(kernels, "dictionary", "default");
      assert.deepEqual(
        groupsOf(graph),
        kernels.map((_, ordinal) => [ordinal]),
      );
    }
  });

  it("no kernel needs more decoded than 4.25 times the smallest of its frame, small frames apart", async () => {
    for (const planner of PLANNER_NAMES) {
      const { graph } = await write(MIXTURE, planner, "max");
      for (const group of groupsOf(graph)) {
        const members = group.map((ordinal) => MIXTURE[ordinal]?.length ?? 0);
        const sum = members.reduce((a, b) => a + b, 0);
        assert.ok(sum <= Math.max(48 * 1024, 4.25 * Math.min(...members)) || group.length === 1);
      }
    }
  });

  it("more effort does not make it larger by more than a little", async () => {
    for (const kernels of [FAMILY, SIBLINGS, SMALL_FAMILY]) {
      const found = [];
      for (const effort of EFFORTS) found.push((await write(kernels, "auto", effort)).bytes.length);
      const [fast = 0, normal = 0, max = 0] = found;
      assert.ok(normal <= fast * 1.01 && max <= normal * 1.01, found.join(", "));
    }
  });
});

describe("writing across kernels", () => {
  it("stops soon after the signal, with its reason, in the map and in the reduce", async () => {
    for (const stage of ["pack", "compress"]) {
      const controller = new AbortController();
      const reason = new Error("enough");
      let after = 0;
      const writing = writeToMemory(kernelsToWrite(SMALL), {
        scheme: zstdCrossKernel({ codecs: nodeCodecs, effort: "fast", planner: "dictionary" }),
        jobs: 2,
        signal: controller.signal,
        onProgress: (progress) => {
          if (controller.signal.aborted) after += 1;
          else if (progress.stage === stage) controller.abort(reason);
        },
      });
      await assert.rejects(writing, (error) => error === reason);
      assert.ok(after <= 4, `${after} steps after it`);
    }
  });

  it("tells how far the reduce is, in bytes of kernels", async () => {
    const done: number[] = [];
    await writeToMemory(kernelsToWrite(SIBLINGS), {
      scheme: zstdCrossKernel({ codecs: nodeCodecs, effort: "fast" }),
      onProgress: (progress) => progress.stage === "compress" && done.push(progress.done),
    });
    assert.deepEqual(
      done,
      done.toSorted((a, b) => a - b),
    );
    assert.equal(
      done.at(-1),
      SIBLINGS.reduce((sum, { length }) => sum + length, 0),
    );
  });

  it("reads a kernel again that is too large to be kept", async () => {
    const large = new Uint8Array(65 << 20);
    large.set(codePiece(1, 100_000));
    let reads = 0;
    const [first, second] = kernelsToWrite([codePiece(2, 1000), large]);
    assert.ok(first && second);
    const counted = {
      ...second,
      kernel: {
        size: large.length,
        read: async (): Promise<Uint8Array> => {
          reads += 1;
          return large;
        },
      },
    };
    const scheme = zstdCrossKernel({ codecs: nodeCodecs, effort: "fast" });
    const how = { scheme, extraFields: false, shareIdentical: false };
    const { bytes } = await writeToMemory([first, counted], how);
    assert.ok(reads >= 2);
    const archive = await openBytes(bytes);
    assert.ok(Buffer.from(await archive.decompressor.decompressKernel(1)).equals(large));
  });

  it("refuses efforts and planners that there are not", () => {
    for (const options of [{ effort: "more" }, { planner: "best" }, { effort: "toString" }])
      assert.throws(() => zstdCrossKernel({ codecs: nodeCodecs, ...(options as object) }), RangeError);
  });
});
