import { concat } from "./raw-msgpack.ts";

export type Random = () => number;

/** Values at which sizes, offsets and counts tend to go wrong. */
const EXTREMES: readonly bigint[] = [
  0n,
  1n,
  3n,
  15n,
  16n,
  63n,
  64n,
  127n,
  128n,
  255n,
  256n,
  2n ** 16n - 1n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 4n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 64n,
  2n ** 64n - 1n,
];

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** Changes bytes in one of many ways. `from` to `to` is where it begins to. */
export function mutate(
  bytes: Uint8Array,
  other: Uint8Array,
  random: Random,
  from: number,
  to: number,
): Uint8Array {
  if (bytes.length === 0) return bytes;
  // An earlier mutation may have cut the bytes off before `to`.
  const at = Math.min(from + Math.floor(random() * Math.max(1, to - from)), bytes.length - 1);
  const copy = bytes.slice();
  switch (Math.floor(random() * 9)) {
    case 0:
      copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      return copy;
    case 1:
      copy[at] = random() * 256;
      return copy;
    case 2:
      return copy.subarray(0, at);
    case 3:
      return concat(
        copy.subarray(0, at),
        copy.subarray(Math.min(copy.length, at + 1 + Math.floor(random() * 9))),
      );
    case 4: {
      const size = 1 + Math.floor(random() * 9);
      return concat(copy.subarray(0, at), noise(random, size), copy.subarray(at));
    }
    case 5: {
      const start = Math.floor(random() * other.length);
      const piece = other.subarray(start, start + Math.floor(random() * 64));
      copy.set(piece.subarray(0, Math.max(0, copy.length - at)), at);
      return copy;
    }
    case 6:
      return concat(copy.subarray(0, at), other.subarray(Math.floor(random() * other.length)));
    case 7:
      return setInteger(copy, at, random);
    default: {
      const length = Math.min(copy.length - at, 1 + Math.floor(random() * 16));
      copy.fill(pick(random, [0, 0xff, 0x80, 0x91, 0xc1, 0xdd, 0xdf]), at, at + length);
      return copy;
    }
  }
}

/** Overwrites bytes by an extreme integer: little-endian, or as MessagePack writes it with its tag. */
function setInteger(bytes: Uint8Array, at: number, random: Random): Uint8Array {
  const value = pick(random, EXTREMES);
  const view = new DataView(bytes.buffer);
  const width = pick(random, [4, 8, 9]);
  if (at + width > bytes.length) return bytes;
  if (width === 4) view.setUint32(at, Number(BigInt.asUintN(32, value)), true);
  else if (width === 8) view.setBigUint64(at, value, true);
  else {
    bytes[at] = pick(random, [0xcf, 0xd3]);
    view.setBigUint64(at + 1, value);
  }
  return bytes;
}

function noise(random: Random, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, () => random() * 256);
}
