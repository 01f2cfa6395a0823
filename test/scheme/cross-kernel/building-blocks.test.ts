import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  type CoverageOptions,
  coverFingerprints,
  type DictionaryWindow,
} from "../../../src/scheme/cross-kernel/dictionary-windows.ts";
import { EFFORT_PARAMETERS } from "../../../src/scheme/cross-kernel/effort.ts";
import {
  countGroups,
  FingerprintCollector,
  type FingerprintTable,
} from "../../../src/scheme/cross-kernel/fingerprint-table.ts";
import {
  computeFingerprints,
  FIRST_SAMPLING_BITS,
  thinFingerprints,
} from "../../../src/scheme/cross-kernel/fingerprints.ts";
import { FrameGraphBuilder } from "../../../src/scheme/cross-kernel/frame-graph-builder.ts";
import { MaxHeap } from "../../../src/scheme/cross-kernel/max-heap.ts";
import { areMostlySmall, PLANNERS } from "../../../src/scheme/cross-kernel/planner.ts";
import { buildDictionary, looksTrained } from "../../../src/scheme/cross-kernel/shared-dictionary.ts";
import { groupSiblings } from "../../../src/scheme/cross-kernel/sibling-groups.ts";
import { codePiece, joined, randomKernel, siblingKernels } from "../../support/kernel-families.ts";

const WINDOW = 32;
const MAGIC = Uint8Array.of(0x37, 0xa4, 0x30, 0xec);

function tableOf(kernels: readonly Uint8Array[]): FingerprintTable {
  const collector = new FingerprintCollector();
  for (const kernel of kernels) collector.add(computeFingerprints(kernel));
  return collector.finish();
}

const alone = (kernels: readonly unknown[]): readonly number[][] => kernels.map((_, kernel) => [kernel]);

describe("fingerprints", () => {
  it("are the same for the same bytes wherever they stand at steps of four", () => {
    const piece = randomKernel(1, 20_000);
    const own = computeFingerprints(piece);
    assert.ok(own.hashes.length > 100);
    for (const before of [4, 8, 60, 4096, 10_004]) {
      const { hashes, positions } = computeFingerprints(
        joined([randomKernel(2, before), piece, randomKernel(3, 500)]),
      );
      const found = new Map([...positions].map((position, index) => [position, hashes[index]]));
      own.positions.forEach((position, index) =>
        assert.equal(found.get(position + before), own.hashes[index], `at ${position} + ${before}`),
      );
      const within = positions.filter((at) => at >= before && at + WINDOW <= before + piece.length);
      assert.equal(within.length, own.positions.length, "no others stand inside of the piece");
    }
  });

  it("differ when a byte of the window does", () => {
    const piece = randomKernel(1, 4000);
    const own = computeFingerprints(piece);
    const changed = piece.slice();
    changed[2001] = (changed[2001] ?? 0) ^ 1;
    const other = computeFingerprints(changed);
    const clear = (position: number): boolean => position > 2001 || position + WINDOW <= 2001;
    const far = ({ hashes, positions }: typeof own): readonly (readonly [number, number])[] =>
      [...positions].flatMap((at, index) => (clear(at) ? [[at, hashes[index] ?? 0] as const] : []));
    assert.deepEqual(far(other), far(own));
    assert.ok([...other.positions].every((at, i) => clear(at) || !own.hashes.includes(other.hashes[i] ?? 0)));
  });

  it("do not depend on where the bytes lie in memory, and leave out a rest of up to three bytes", () => {
    const kernel = randomKernel(4, 5001);
    const wanted = computeFingerprints(kernel.slice(0, 5000));
    for (const shift of [0, 1, 2, 3, 4, 5]) {
      const buffer = new Uint8Array(6000);
      buffer.set(kernel, shift);
      for (const size of [5000, 5001])
        assert.deepEqual(computeFingerprints(buffer.subarray(shift, shift + size)), wanted);
    }
  });

  it("are thinned to just those that a thinner sampling takes", () => {
    const all = computeFingerprints(randomKernel(5, 400_000));
    const perBit = 100_000 / 2 ** FIRST_SAMPLING_BITS;
    assert.ok(all.hashes.length > perBit * 0.9 && all.hashes.length < perBit * 1.1);
    let before = all;
    for (let bits = FIRST_SAMPLING_BITS; bits < 10; bits++) {
      const thin = thinFingerprints(all, bits);
      assert.deepEqual(thinFingerprints(before, bits), thin, "in steps or at once");
      const expected = all.hashes.length / 2 ** (bits - FIRST_SAMPLING_BITS);
      assert.ok(Math.abs(thin.hashes.length - expected) < 5 * Math.sqrt(expected));
      const places = new Map([...all.positions].map((at, index) => [at, all.hashes[index]]));
      thin.positions.forEach((at, index) => assert.equal(places.get(at), thin.hashes[index]));
      before = thin;
    }
  });

  it("are none for what is shorter than a window, one for a run of one word", () => {
    for (const size of [0, 1, 31]) assert.equal(computeFingerprints(randomKernel(1, size)).hashes.length, 0);
    for (let value = 0; value < 64; value++)
      assert.ok(computeFingerprints(new Uint8Array(10_000).fill(value)).hashes.length <= 1);
  });

  it("are never 0, never more than there are windows, in order", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(300), (bytes, repeats) => {
        const kernel = joined([bytes, new Uint8Array(repeats), bytes]);
        const { hashes, positions } = computeFingerprints(kernel);
        assert.equal(hashes.length, positions.length);
        assert.ok(hashes.every((hash) => hash !== 0));
        assert.ok(
          positions.every((at, index) => at % 4 === 0 && (index === 0 || at > (positions[index - 1] ?? 0))),
        );
        assert.ok((positions.at(-1) ?? 0) + WINDOW <= kernel.length || positions.length === 0);
      }),
      { numRuns: 100 },
    );
  });
});

describe("the table of fingerprints", () => {
  it("numbers equal ones alike and others otherwise", () => {
    const [a, b] = [randomKernel(1, 8000), randomKernel(2, 8000)] as const;
    const table = tableOf([a, joined([b, a]), b, a, new Uint8Array()]);
    const [first, both, second, again, none] = table.numbers;
    assert.deepEqual(again, first);
    assert.deepEqual(none, new Uint32Array());
    assert.ok(first?.every((number) => both?.includes(number)));
    assert.ok(second?.every((number) => both?.includes(number) && !first?.includes(number)));
    assert.equal(table.distinct, new Set(table.numbers.flatMap((numbers) => [...numbers])).size);
    assert.ok(table.numbers.every((numbers, kernel) => numbers.length === table.positions[kernel]?.length));
    assert.equal(table.bytesPerFingerprint, 4 << FIRST_SAMPLING_BITS);
  });

  it("is thinned, all kernels alike, when there are too many fingerprints", () => {
    // What 1 GiB of kernels would have: 9 kernels of half a million fingerprints.
    const collector = new FingerprintCollector();
    for (let kernel = 0; kernel < 9; kernel++) {
      const hashes = new Uint32Array(500_000);
      for (let index = 0; index < hashes.length; index++)
        hashes[index] = (index % 1000) * 268_000 + kernel + 1;
      collector.add({ hashes, positions: hashes });
    }
    const table = collector.finish();
    assert.equal(table.bytesPerFingerprint, 4 << (FIRST_SAMPLING_BITS + 1));
    const total = table.numbers.reduce((sum, { length }) => sum + length, 0);
    assert.ok(table.distinct > 4000 && table.distinct <= 4600, `${table.distinct}`);
    assert.ok(total > 2_000_000 && total < 2_600_000, `${total}`);
  });

  it("counts groups, each once", () => {
    const [a, b] = [randomKernel(1, 4000), randomKernel(2, 4000)] as const;
    const table = tableOf([a, joined([a, a]), b, a]);
    const number = table.numbers[0]?.[0] ?? 0;
    assert.equal(countGroups(table, alone([1, 2, 3, 4]))[number], 3);
    assert.equal(countGroups(table, [[0, 1], [2], [3]])[number], 2);
    assert.equal(countGroups(table, [[0, 1, 2, 3]])[number], 1);
    assert.equal(countGroups(table, [[2]])[number], 0);
  });
});

describe("the heap", () => {
  const drain = (heap: MaxHeap): readonly number[] => {
    const order: number[] = [];
    for (let top = heap.top(); top !== undefined; top = heap.top()) {
      order.push(top);
      heap.removeTop();
    }
    return order;
  };

  it("gives the largest value first, of equal ones the lowest index", () => {
    assert.deepEqual(drain(new MaxHeap([])), []);
    assert.deepEqual(drain(new MaxHeap([7])), [0]);
    assert.deepEqual(drain(new MaxHeap([1, 3, 2, 3, 0, 3])), [1, 3, 5, 2, 0, 4]);
    assert.deepEqual(drain(new MaxHeap([0, 0, 0, 0])), [0, 1, 2, 3]);
  });

  it("is as good as sorting, also when values fall", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(20), { maxLength: 60 }),
        fc.array(fc.nat(20), { maxLength: 40 }),
        (values, falls) => {
          const heap = new MaxHeap(values);
          const model = [...values];
          for (const fall of falls) {
            const top = heap.top();
            if (top === undefined) break;
            assert.equal(heap.value(top), Math.max(...model));
            assert.equal(top, model.indexOf(Math.max(...model)));
            model[top] = Math.min(heap.value(top), fall);
            heap.lowerTop(model[top] ?? 0);
          }
          const wanted = [...model.keys()].toSorted((a, b) => (model[b] ?? 0) - (model[a] ?? 0) || a - b);
          assert.deepEqual(drain(heap), wanted);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("groups of siblings", () => {
  const grouped = (
    kernels: readonly Uint8Array[],
    options: { readonly spread: number; readonly floor: number },
    covered?: (table: FingerprintTable) => Uint8Array,
  ): readonly (readonly number[])[] => {
    const table = tableOf(kernels);
    const counts = countGroups(table, alone(kernels));
    const kernelSizes = kernels.map(({ length }) => length);
    return groupSiblings(table, kernelSizes, counts, covered?.(table), options);
  };
  const FOUR = siblingKernels(1, { count: 2, targets: 4, size: 20_000, distance: 1000 });

  it("hold as much as the spread allows", () => {
    assert.deepEqual(grouped(FOUR, { spread: 4, floor: 0 }), [
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    for (const group of grouped(FOUR, { spread: 3.9, floor: 0 })) assert.ok(group.length <= 3);
    for (const group of grouped(FOUR, { spread: 2, floor: 0 })) assert.ok(group.length <= 2);
    assert.deepEqual(grouped(FOUR, { spread: 1.9, floor: 0 }), alone(FOUR));
  });

  it("measure the spread by the smallest member", () => {
    const large = codePiece(1, 40_000);
    const kernels = [large, large.subarray(0, 39_000), large.subarray(0, 6000)];
    assert.deepEqual(grouped(kernels, { spread: 4, floor: 0 }), [[0, 1], [2]]);
    assert.deepEqual(grouped(kernels, { spread: 20, floor: 0 }), [[0, 1, 2]]);
  });

  it("may reach the floor whatever the spread", () => {
    assert.deepEqual(grouped(FOUR, { spread: 1, floor: 80_000 }), [
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    for (const group of grouped(FOUR, { spread: 1, floor: 79_999 })) assert.ok(group.length <= 3);
  });

  it("have sixteen members at most", () => {
    const kernels = siblingKernels(2, { count: 1, targets: 40, size: 2000, distance: 1000 });
    const groups = grouped(kernels, { spread: 1000, floor: 0 });
    assert.ok(groups.every((group) => group.length <= 16));
    assert.ok(groups.length >= 3 && groups.length < 10, `${groups.length}`);
    assert.deepEqual(
      groups.flat().toSorted((a, b) => a - b),
      [...kernels.keys()],
    );
  });

  it("are not made of what has nothing in common, or only what a dictionary holds", () => {
    const random = [1, 2, 3].map((seed) => randomKernel(seed, 20_000));
    assert.deepEqual(grouped(random, { spread: 100, floor: 1e9 }), alone(random));
    const all = (table: FingerprintTable): Uint8Array => new Uint8Array(table.distinct).fill(1);
    assert.deepEqual(grouped(FOUR, { spread: 4, floor: 0 }, all), alone(FOUR));
    assert.deepEqual(grouped([], { spread: 4, floor: 0 }), []);
    const empty = [new Uint8Array(), new Uint8Array()];
    assert.deepEqual(grouped(empty, { spread: 4, floor: 1e9 }), alone(empty));
  });

  it("take the closest first", () => {
    const [a, b] = [codePiece(1, 20_000), codePiece(2, 20_000)] as const;
    const half = joined([a.subarray(0, 10_000), b.subarray(10_000)]);
    const kernels = [half, a, b, joined([a.subarray(0, 18_000), codePiece(3, 2000)])];
    assert.deepEqual(grouped(kernels, { spread: 2, floor: 0 }), [
      [0, 2],
      [1, 3],
    ]);
  });
});

describe("windows for the dictionary", () => {
  const covered = (
    kernels: readonly Uint8Array[],
    options: CoverageOptions,
  ): ReturnType<typeof coverFingerprints> => {
    const table = tableOf(kernels);
    const kernelSizes = kernels.map(({ length }) => length);
    return coverFingerprints(table, kernelSizes, countGroups(table, alone(kernels)), options);
  };
  /** In each kernel at the same place: `often` in all of them, `rarely` in two. */
  const often = codePiece(1, 4096);
  const rarely = codePiece(2, 4096);
  const kernels = Array.from({ length: 10 }, (_, index) =>
    joined([codePiece(index + 10, 4096), often, index < 2 ? rarely : codePiece(index + 30, 4096)]),
  );
  const unbounded = { capacity: 1e9, leastGain: 0.25 };

  it("come best first, each shared piece once", () => {
    const { windows, gain } = covered(kernels, unbounded);
    assert.deepEqual(windows, [
      { kernel: 0, offset: 4096, size: 4096 },
      { kernel: 0, offset: 8192, size: 4096 },
    ]);
    // Nine other kernels have the first, one the second.
    assert.ok(gain > 0.6 * 10 * 4096 && gain < 1.5 * 10 * 4096, `${gain}`);
  });

  it("have to save their part, and fit in the capacity", () => {
    assert.equal(covered(kernels, { capacity: 1e9, leastGain: 2 }).windows.length, 1);
    assert.equal(covered(kernels, { capacity: 1e9, leastGain: 100 }).windows.length, 0);
    assert.equal(covered(kernels, { capacity: 4096, leastGain: 0.25 }).windows.length, 1);
    assert.equal(covered(kernels, { capacity: 0, leastGain: 0.25 }).windows.length, 0);
    for (const capacity of [8192, 20_000, 40_960]) {
      const many = Array.from({ length: 30 }, (_, index) =>
        joined(
          [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21].map((seed) => codePiece(seed + (index % 2), 4096)),
        ),
      );
      const size = covered(many, { capacity, leastGain: 0.1 }).windows.reduce(
        (sum, one) => sum + one.size,
        0,
      );
      assert.ok(size > 0 && size < capacity + 4096, "at most a window more");
    }
  });

  it("end where their kernel does", () => {
    const short = codePiece(3, 5000);
    const { windows } = covered([short, short.slice(), short.slice()], unbounded);
    assert.deepEqual(
      windows.toSorted((a, b) => a.offset - b.offset),
      [
        { kernel: 0, offset: 0, size: 4096 },
        { kernel: 0, offset: 4096, size: 904 },
      ],
    );
  });

  it("mark what they cover, and are none where nothing is shared", () => {
    const table = tableOf(kernels);
    const { covered: marks } = covered(kernels, unbounded);
    const wanted = new Set(
      table.numbers[0]?.filter((_, index) => (table.positions[0]?.[index] ?? 0) >= 4096),
    );
    assert.ok([...marks.keys()].every((number) => (marks[number] === 1) === wanted.has(number)));
    assert.deepEqual(covered([randomKernel(1, 9000), randomKernel(2, 9000)], unbounded).windows, []);
    assert.deepEqual(covered([], unbounded).windows, []);
  });
});

describe("the shared dictionary", () => {
  const kernels = [randomKernel(1, 9000), randomKernel(2, 9000), joined([MAGIC, randomKernel(3, 9000)])];
  const build = async (
    windows: readonly DictionaryWindow[],
  ): Promise<{ bytes: Uint8Array; reads: number[] }> => {
    const reads: number[] = [];
    const bytes = await buildDictionary(windows, async (kernel) => {
      reads.push(kernel);
      return kernels[kernel] as Uint8Array;
    });
    return { bytes, reads };
  };

  it("has the best window last, and reads each kernel once", async () => {
    const { bytes, reads } = await build([
      { kernel: 1, offset: 4096, size: 4096 },
      { kernel: 0, offset: 0, size: 4096 },
      { kernel: 1, offset: 8192, size: 808 },
    ]);
    const [zero, one] = kernels as [Uint8Array, Uint8Array];
    assert.deepEqual(bytes, joined([one.subarray(8192), zero.subarray(0, 4096), one.subarray(4096, 8192)]));
    assert.deepEqual(reads, [1, 0]);
    assert.deepEqual((await build([])).bytes, new Uint8Array());
  });

  it("is moved by four bytes when it would look trained", async () => {
    const { bytes } = await build([{ kernel: 2, offset: 0, size: 4096 }]);
    assert.deepEqual(bytes, joined([new Uint8Array(4), (kernels[2] as Uint8Array).subarray(0, 4096)]));
    assert.ok(!looksTrained(bytes));
    const after = await build([
      { kernel: 2, offset: 0, size: 4096 },
      { kernel: 0, offset: 0, size: 4096 },
    ]);
    assert.equal(after.bytes.length, 8192, "only at the beginning");
  });

  it("looks trained by its first four bytes alone", () => {
    assert.ok(looksTrained(MAGIC));
    assert.ok(looksTrained(joined([Uint8Array.of(1), MAGIC, MAGIC]).subarray(1)), "not aligned");
    assert.ok(!looksTrained(MAGIC.subarray(0, 3)));
    assert.ok(!looksTrained(new Uint8Array()));
    assert.ok(!looksTrained(joined([new Uint8Array(4), MAGIC])));
  });
});

describe("plans", () => {
  it("hold every kernel once, whatever the kernels are", () => {
    const piece = fc.integer({ min: 0, max: 12 }).map((seed) => codePiece(seed, 4096));
    const kernel = fc.array(piece, { maxLength: 4 }).map(joined);
    fc.assert(
      fc.property(fc.array(kernel, { maxLength: 12 }), (kernels) => {
        const kernelSizes = kernels.map(({ length }) => length);
        const total = kernelSizes.reduce((sum, size) => sum + size, 0);
        const table = tableOf(kernels);
        for (const planner of Object.values(PLANNERS)) {
          for (const effort of Object.values(EFFORT_PARAMETERS)) {
            const plan = planner.plan({ table, sizes: kernelSizes }, effort);
            assert.deepEqual(
              plan.groups.flat().toSorted((a, b) => a - b),
              [...kernels.keys()],
            );
            assert.ok(plan.groups.every((group) => group.length > 0));
            const size = plan.windows.reduce((sum, window) => sum + window.size, 0);
            assert.ok(size <= total / 4 + 4096);
            for (const window of plan.windows)
              assert.ok(window.size > 0 && window.offset + window.size <= (kernelSizes[window.kernel] ?? 0));
          }
        }
      }),
      { numRuns: 25 },
    );
  });

  it("know small kernels by the one in the middle", () => {
    const [small, large] = [64 * 1024 - 1, 64 * 1024];
    assert.ok(areMostlySmall([]));
    assert.ok(areMostlySmall([small]));
    assert.ok(!areMostlySmall([large]));
    assert.ok(areMostlySmall([large * 100, small, 1]));
    assert.ok(!areMostlySmall([large, large, 1]));
  });
});

describe("the builder of the tables", () => {
  it("states the most frames that a kernel needs", () => {
    const graph = new FrameGraphBuilder();
    const frame = (...dictionaries: readonly number[]): number =>
      graph.addFrame({ storedSize: 10, contentSize: 300, dictionaries });
    assert.deepEqual([frame(2), frame(2, 3), frame(3), frame()], [0, 1, 2, 3]);
    graph.setKernel(1, [{ frame: 0, offset: 0, size: 300 }]);
    graph.setKernel(0, [{ frame: 3, offset: 299, size: 1 }]);
    assert.deepEqual(graph.finish(64), {
      cross_offset: 64,
      cross_frames: Uint8Array.of(10, 172, 2, 3, 0, 10, 172, 2, 3, 4, 10, 172, 2, 4, 0, 10, 172, 2, 0, 0),
      cross_kernels: Uint8Array.of(1, 3, 171, 2, 1, 1, 0, 0, 172, 2),
      cross_depth: 3,
    });
    graph.setKernel(2, [
      { frame: 1, offset: 0, size: 1 },
      { frame: 0, offset: 0, size: 1 },
    ]);
    assert.equal(graph.finish(64)["cross_depth"], 4);
    assert.equal(new FrameGraphBuilder().finish(64)["cross_depth"], 0);
  });
});
