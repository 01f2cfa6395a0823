import xxhash from "xxhash-wasm";

/** Longer input is hashed in parts, so that the hash's own memory stays small. */
const PART = 1 << 20;

/** XXH64 (seed 0) of some bytes. */
export type Xxh64 = (bytes: Uint8Array) => bigint;

let loading: Promise<Xxh64> | undefined;

/**
 * Loads XXH64: fast enough to hash every kernel while packing, and the hash that zstd's own checksum is cut from.
 * It finds damage, not forgery.
 */
export function loadXxh64(): Promise<Xxh64> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined; // memory may have been short for a moment: the next call tries again
    throw error;
  });
  return loading;
}

async function load(): Promise<Xxh64> {
  const api = await xxhash();
  return (bytes) => {
    if (bytes.length <= PART) return api.h64Raw(bytes);
    const hash = api.create64();
    for (let start = 0; start < bytes.length; start += PART) hash.update(bytes.subarray(start, start + PART));
    return hash.digest();
  };
}

/** As people and JSON see it: 16 hexadecimal digits. */
export function formatXxh64(hash: bigint): string {
  return hash.toString(16).padStart(16, "0");
}
