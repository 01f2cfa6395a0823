/**
 * Fingerprints of a kernel: sampled hashes of its 32-byte windows at steps of 4 bytes, the size of most instructions.
 * A window is sampled by its hash alone, so equal windows are sampled wherever they stand.
 */
export interface Fingerprints {
  /** Hashes of the sampled windows, in the order of their positions; never 0. */
  readonly hashes: Uint32Array;
  /** Where each window begins, in bytes. */
  readonly positions: Uint32Array;
}

const WORD = 4;
const WINDOW_WORDS = 8;
/** One window in 2^4 is sampled in the map phase. */
export const FIRST_SAMPLING_BITS = 4;

const MULTIPLIER = 0x9e3779b1 | 0;
/** The multiplier's power that a word has when it leaves the window. */
const LEAVING = power(MULTIPLIER, WINDOW_WORDS);

/** Computes the fingerprints of one kernel: a rolling hash over its words, whose well-mixed value decides. */
export function computeFingerprints(kernel: Uint8Array): Fingerprints {
  const words = wordsOf(kernel);
  const limit = 2 ** (32 - FIRST_SAMPLING_BITS);
  let hashes = new Uint32Array((words.length >>> FIRST_SAMPLING_BITS) + 64);
  let positions = new Uint32Array(hashes.length);
  let count = 0;
  let rolling = 0;
  let last = 0;
  for (let index = 0; index < words.length; index++) {
    rolling = (Math.imul(rolling, MULTIPLIER) + (words[index] ?? 0)) | 0;
    if (index >= WINDOW_WORDS) rolling = (rolling - Math.imul(words[index - WINDOW_WORDS] ?? 0, LEAVING)) | 0;
    else if (index < WINDOW_WORDS - 1) continue;
    const hash = mix(rolling);
    // A run of one repeated word has one fingerprint, not hundreds.
    if (hash >= limit || hash === last) continue;
    last = hash;
    if (count === hashes.length) {
      hashes = grown(hashes);
      positions = grown(positions);
    }
    hashes[count] = hash === 0 ? 1 : hash;
    positions[count] = (index - WINDOW_WORDS + 1) * WORD;
    count += 1;
  }
  return { hashes: hashes.slice(0, count), positions: positions.slice(0, count) };
}

/** The fingerprints that a thinner sampling, one window in 2^bits, would have taken. */
export function thinFingerprints({ hashes, positions }: Fingerprints, bits: number): Fingerprints {
  const limit = 2 ** (32 - bits);
  const kept = hashes.reduce((sum, hash) => sum + (hash < limit ? 1 : 0), 0);
  const thinHashes = new Uint32Array(kept);
  const thinPositions = new Uint32Array(kept);
  let count = 0;
  for (let index = 0; index < hashes.length; index++) {
    const hash = hashes[index] ?? 0;
    if (hash >= limit) continue;
    thinHashes[count] = hash;
    thinPositions[count] = positions[index] ?? 0;
    count += 1;
  }
  return { hashes: thinHashes, positions: thinPositions };
}

/** MurmurHash3's finaliser: every bit of the result depends on every bit of the value. */
function mix(value: number): number {
  let hash = Math.imul(value ^ (value >>> 15), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The kernel as 32-bit words in the machine's order; a rest of up to three bytes is left out. */
function wordsOf(kernel: Uint8Array): Uint32Array {
  const count = kernel.length >>> 2;
  if (kernel.byteOffset % WORD === 0) return new Uint32Array(kernel.buffer, kernel.byteOffset, count);
  return new Uint32Array(kernel.slice(0, count * WORD).buffer);
}

function grown(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(values.length * 2);
  larger.set(values);
  return larger;
}

function power(base: number, exponent: number): number {
  let result = 1;
  for (let step = 0; step < exponent; step++) result = Math.imul(result, base);
  return result;
}
