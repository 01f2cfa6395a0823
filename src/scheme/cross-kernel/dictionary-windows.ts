import type { FingerprintTable } from "./fingerprint-table.ts";
import { MaxHeap } from "./max-heap.ts";

/** A run of a kernel's bytes that goes into the shared dictionary. */
export interface DictionaryWindow {
  readonly kernel: number;
  readonly offset: number;
  readonly size: number;
}

export interface CoverageOptions {
  /** Most bytes of the dictionary. */
  readonly capacity: number;
  /** A window has to save this part of its own size to be taken. */
  readonly leastGain: number;
}

export interface Coverage {
  /** Best first. */
  readonly windows: readonly DictionaryWindow[];
  /** By fingerprint: 1 when a window has it. */
  readonly covered: Uint8Array;
  /** About how many bytes of all kernels stand in the windows too, the windows' own not counted. */
  readonly gain: number;
}

/** Size and alignment of windows: about what a kernel's functions have. */
const WINDOW_SIZE = 4096;

/**
 * Chooses the windows that cover the most: greedily, each time the window whose fingerprints, as far as no chosen window
 * has them, occur in the most other groups. The gain of a window only falls, so it is computed anew just when it
 * comes to the top of the heap.
 */
export function coverFingerprints(
  table: FingerprintTable,
  sizes: readonly number[],
  groupCounts: Uint16Array,
  options: CoverageOptions,
): Coverage {
  const covered = new Uint8Array(table.distinct);
  const least = (options.leastGain * WINDOW_SIZE) / table.bytesPerFingerprint;
  const gainOf = gainFunction(table, groupCounts, covered);
  const candidates = candidateWindows(table, gainOf, least);
  const heap = new MaxHeap(candidates.gains);
  const windows: DictionaryWindow[] = [];
  let size = 0;
  let totalGain = 0;
  for (let top = heap.top(); top !== undefined && size < options.capacity; top = heap.top()) {
    const kernel = candidates.kernels[top] ?? 0;
    const start = candidates.starts[top] ?? 0;
    const end = candidates.ends[top] ?? 0;
    const gain = gainOf(kernel, start, end);
    if (gain > least && gain < heap.value(top)) {
      heap.lowerTop(gain);
      continue;
    }
    heap.removeTop();
    if (gain <= least) continue;
    const numbers = table.numbers[kernel] ?? new Uint32Array();
    for (let index = start; index < end; index++) covered[numbers[index] ?? 0] = 1;
    const offset = (candidates.windows[top] ?? 0) * WINDOW_SIZE;
    windows.push({ kernel, offset, size: Math.min(WINDOW_SIZE, (sizes[kernel] ?? 0) - offset) });
    size += WINDOW_SIZE;
    totalGain += gain;
  }
  return { windows, covered, gain: totalGain * table.bytesPerFingerprint };
}

/** How often the fingerprints from `start` to `end` of a kernel occur elsewhere, those that are covered not counted. */
type GainOf = (kernel: number, start: number, end: number) => number;

function gainFunction(table: FingerprintTable, groupCounts: Uint16Array, covered: Uint8Array): GainOf {
  const seen = new Uint32Array(table.distinct);
  let stamp = 0;
  return (kernel, start, end) => {
    const numbers = table.numbers[kernel] ?? new Uint32Array();
    let gain = 0;
    stamp += 1;
    for (let index = start; index < end; index++) {
      const number = numbers[index] ?? 0;
      if (covered[number] !== 0 || seen[number] === stamp) continue;
      seen[number] = stamp;
      const groups = groupCounts[number] ?? 0;
      if (groups > 1) gain += groups - 1;
    }
    return gain;
  };
}

interface Candidates {
  readonly kernels: number[];
  /** Index of the window in its kernel. */
  readonly windows: number[];
  /** First fingerprint of the window, and the one after its last. */
  readonly starts: number[];
  readonly ends: number[];
  readonly gains: number[];
}

function candidateWindows(table: FingerprintTable, gainOf: GainOf, least: number): Candidates {
  const candidates: Candidates = { kernels: [], windows: [], starts: [], ends: [], gains: [] };
  table.positions.forEach((positions, kernel) => {
    for (let start = 0; start < positions.length; ) {
      const window = Math.floor((positions[start] ?? 0) / WINDOW_SIZE);
      let end = start + 1;
      while (end < positions.length && (positions[end] ?? 0) < (window + 1) * WINDOW_SIZE) end += 1;
      const gain = gainOf(kernel, start, end);
      if (gain > least) {
        candidates.kernels.push(kernel);
        candidates.windows.push(window);
        candidates.starts.push(start);
        candidates.ends.push(end);
        candidates.gains.push(gain);
      }
      start = end;
    }
  });
  return candidates;
}
