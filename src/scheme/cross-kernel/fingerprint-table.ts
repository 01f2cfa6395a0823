import { FIRST_SAMPLING_BITS, type Fingerprints, thinFingerprints } from "./fingerprints.ts";

/** Fingerprints kept at most, over all kernels. Beyond it every kernel's sampling is thinned. */
const FINGERPRINT_LIMIT = 4 << 20;

/** The fingerprints of all kernels, with equal ones numbered alike. */
export interface FingerprintTable {
  /** By kernel: the numbers of its fingerprints, in the order of their positions. */
  readonly numbers: readonly Uint32Array[];
  /** By kernel: where each fingerprint's window begins, in bytes. */
  readonly positions: readonly Uint32Array[];
  /** How many different fingerprints there are. */
  readonly distinct: number;
  /** Bytes that one sampled fingerprint stands for. */
  readonly bytesPerFingerprint: number;
}

/** Collects fingerprints within bounded memory: when they become too many, all are thinned. */
export class FingerprintCollector {
  #kernels: Fingerprints[] = [];
  #count = 0;
  #bits = FIRST_SAMPLING_BITS;

  add(fingerprints: Fingerprints): void {
    const thin = this.#bits > FIRST_SAMPLING_BITS ? thinFingerprints(fingerprints, this.#bits) : fingerprints;
    this.#kernels.push(thin);
    this.#count += thin.hashes.length;
    while (this.#count > FINGERPRINT_LIMIT) {
      this.#bits += 1;
      this.#kernels = this.#kernels.map((kernel) => thinFingerprints(kernel, this.#bits));
      this.#count = this.#kernels.reduce((sum, { hashes }) => sum + hashes.length, 0);
    }
  }

  /** Numbers equal fingerprints alike, by open addressing. */
  finish(): FingerprintTable {
    let slots = 1024;
    while (slots < this.#count * 2) slots *= 2;
    const hashes = new Uint32Array(slots);
    const numbers = new Uint32Array(slots);
    let distinct = 0;
    const numbered = this.#kernels.map((kernel) =>
      kernel.hashes.map((hash) => {
        let slot = Math.imul(hash, 0x9e3779b1) & (slots - 1);
        while (hashes[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & (slots - 1);
        if (hashes[slot] === 0) {
          hashes[slot] = hash;
          numbers[slot] = distinct;
          distinct += 1;
        }
        return numbers[slot] ?? 0;
      }),
    );
    return {
      numbers: numbered,
      positions: this.#kernels.map(({ positions }) => positions),
      distinct,
      bytesPerFingerprint: 4 << this.#bits,
    };
  }
}

/** By fingerprint: in how many of the groups of kernels it occurs (65,535 at most). */
export function countGroups(table: FingerprintTable, groups: readonly (readonly number[])[]): Uint16Array {
  const counts = new Uint16Array(table.distinct);
  const lastGroup = new Uint32Array(table.distinct);
  groups.forEach((group, index) => {
    for (const kernel of group) {
      for (const number of table.numbers[kernel] ?? []) {
        if (lastGroup[number] === index + 1) continue;
        lastGroup[number] = index + 1;
        const count = counts[number] ?? 0;
        if (count < 0xffff) counts[number] = count + 1;
      }
    }
  });
  return counts;
}
