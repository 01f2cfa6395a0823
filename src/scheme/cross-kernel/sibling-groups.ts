import { append } from "../../bytes/append.ts";
import { GrowingColumn } from "../../bytes/growing-column.ts";
import type { FingerprintTable } from "./fingerprint-table.ts";

/** Two kernels that share fingerprints. */
interface Pair {
  readonly a: number;
  readonly b: number;
  readonly shared: number;
}

export interface GroupOptions {
  /** A group holds at most this many times its smallest member's bytes: nobody decodes more to get one kernel. */
  readonly spread: number;
  /** Groups up to this size are always allowed, in bytes. */
  readonly floor: number;
}

const GROUP_SIZE_LIMIT = 16 << 20;
const MEMBER_LIMIT = 16;
/** A fingerprint in more groups than this says nothing about who resembles whom. */
const COMMON = 256;
/** Kernels remembered for one fingerprint. */
const POSTING_LIMIT = 64;
const LEAST_SHARED = 2;
/** Pairs that are considered for one kernel. */
const PARTNER_LIMIT = 32;
/** Who shares more fingerprints than this is as close as can be. */
const MOST_COUNTED = 1024;

/**
 * Puts kernels together that share much which no dictionary holds: the closest pairs first, as long as the groups stay
 * small enough for quick access to each member. Each group becomes one frame.
 *
 * @param covered by fingerprint: not 0 when a dictionary holds it
 */
export function groupSiblings(
  table: FingerprintTable,
  sizes: readonly number[],
  kernelCounts: Uint16Array,
  covered: Uint8Array | undefined,
  options: GroupOptions,
): readonly (readonly number[])[] {
  const groups = new DisjointGroups(sizes);
  for (const { a, b } of findPairs(table, kernelCounts, covered)) {
    groups.merge(a, b, (size, members, smallest) => {
      return (
        members <= MEMBER_LIMIT &&
        size <= GROUP_SIZE_LIMIT &&
        size <= Math.max(options.floor, options.spread * smallest)
      );
    });
  }
  return groups.finish();
}

/** Pairs of kernels by shared fingerprints, most first: for each kernel those with the closest kernels before it. */
function findPairs(
  table: FingerprintTable,
  kernelCounts: Uint16Array,
  covered: Uint8Array | undefined,
): Iterable<Pair> {
  const pairs = new PairList();
  // By fingerprint a linked list of the kernels that have it: the last one's place in `kernels` and `next`.
  const heads = new Int32Array(table.distinct).fill(-1);
  const lengths = new Uint8Array(table.distinct);
  const next: number[] = [];
  const kernels: number[] = [];
  const lastKernel = new Uint32Array(table.distinct);
  const shared = new Uint32Array(table.numbers.length);
  table.numbers.forEach((numbers, kernel) => {
    const met: number[] = [];
    for (const number of numbers) {
      const count = kernelCounts[number] ?? 0;
      if (count < 2 || count > COMMON || covered?.[number] === 1 || lastKernel[number] === kernel + 1)
        continue;
      lastKernel[number] = kernel + 1;
      for (let place = heads[number] ?? -1; place >= 0; place = next[place] ?? -1) {
        const other = kernels[place] ?? 0;
        if (shared[other] === 0) met.push(other);
        shared[other] = (shared[other] ?? 0) + 1;
      }
      const length = lengths[number] ?? 0;
      if (length === POSTING_LIMIT) continue;
      lengths[number] = length + 1;
      next.push(heads[number] ?? -1);
      kernels.push(kernel);
      heads[number] = next.length - 1;
    }
    for (const other of closest(met, shared)) pairs.add(other, kernel, shared[other] ?? 0);
    for (const other of met) shared[other] = 0;
  });
  return pairs.sorted();
}

/** Those that share the most; a kernel's group has no room for more. Counted, not sorted: there may be thousands. */
function closest(met: readonly number[], shared: Uint32Array): readonly number[] {
  const sharedBy = (other: number): number => Math.min(shared[other] ?? 0, MOST_COUNTED);
  const close = met.filter((other) => sharedBy(other) >= LEAST_SHARED);
  if (close.length <= PARTNER_LIMIT) return close;
  const counts = new Uint32Array(MOST_COUNTED + 1);
  for (const other of close) counts[sharedBy(other)] = (counts[sharedBy(other)] ?? 0) + 1;
  let threshold = MOST_COUNTED;
  let room = PARTNER_LIMIT;
  for (; room > (counts[threshold] ?? 0); threshold--) room -= counts[threshold] ?? 0;
  return close.filter((other) => {
    if (sharedBy(other) === threshold) return room-- > 0;
    return sharedBy(other) > threshold;
  });
}

/** Pairs as columns of numbers: there may be millions. */
class PairList {
  readonly #first = new GrowingColumn((length) => new Uint32Array(length), 1024);
  readonly #second = new GrowingColumn((length) => new Uint32Array(length), 1024);
  readonly #shared = new GrowingColumn((length) => new Uint32Array(length), 1024);

  add(a: number, b: number, shared: number): void {
    this.#first.push(a);
    this.#second.push(b);
    this.#shared.push(shared);
  }

  *sorted(): Generator<Pair> {
    const [first, second, shared] = [this.#first, this.#second, this.#shared];
    const order = Uint32Array.from({ length: first.length }, (_, index) => index);
    order.sort(
      (x, y) => shared.at(y) - shared.at(x) || first.at(x) - first.at(y) || second.at(x) - second.at(y),
    );
    for (const index of order) yield { a: first.at(index), b: second.at(index), shared: shared.at(index) };
  }
}

/** Union-find over kernels, with what a merge has to know of each group. */
class DisjointGroups {
  readonly #parents: Int32Array;
  readonly #groups: ({ size: number; smallest: number; readonly members: number[] } | undefined)[];

  constructor(sizes: readonly number[]) {
    this.#parents = Int32Array.from(sizes, (_, kernel) => kernel);
    this.#groups = sizes.map((size, kernel) => ({ size, smallest: size, members: [kernel] }));
  }

  merge(a: number, b: number, allowed: (size: number, members: number, smallest: number) => boolean): void {
    const first = this.#find(a);
    const second = this.#find(b);
    const into = this.#groups[first];
    const from = this.#groups[second];
    if (first === second || !into || !from) return;
    const size = into.size + from.size;
    const smallest = Math.min(into.smallest, from.smallest);
    if (!allowed(size, into.members.length + from.members.length, smallest)) return;
    this.#parents[second] = first;
    into.size = size;
    into.smallest = smallest;
    append(into.members, from.members);
    this.#groups[second] = undefined;
  }

  /** Members in ordinal order, groups in the order of their first members. */
  finish(): readonly (readonly number[])[] {
    return this.#groups
      .filter((group) => group !== undefined)
      .map(({ members }) => members.toSorted((a, b) => a - b))
      .toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
  }

  #find(kernel: number): number {
    let root = kernel;
    for (let parent = this.#parents[root] ?? root; parent !== root; parent = this.#parents[root] ?? root) {
      this.#parents[root] = this.#parents[parent] ?? parent;
      root = parent;
    }
    return root;
  }
}
