import { encode } from "@msgpack/msgpack";

/**
 * MessagePack by hand, for what no encoder writes: two equal keys, keys of odd types, bytes that are no MessagePack.
 * Everything else is left to @msgpack/msgpack, which shares no line with the library under test.
 */
export class RawMap {
  readonly pairs: readonly (readonly [unknown, unknown])[];
  constructor(pairs: readonly (readonly [unknown, unknown])[]) {
    this.pairs = pairs;
  }
}

/** Bytes that stand where a value is expected. */
export class RawBytes {
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

export function map(...pairs: readonly (readonly [unknown, unknown])[]): RawMap {
  return new RawMap(pairs);
}

export function hex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
}

export function raw(text: string): RawBytes {
  return new RawBytes(hex(text));
}

export function pack(value: unknown): Uint8Array {
  if (value instanceof RawBytes) return value.bytes;
  if (value instanceof RawMap) {
    const parts = value.pairs.flatMap(([key, element]) => [pack(key), pack(element)]);
    return concat(header(value.pairs.length, 0x80, 0xde), ...parts);
  }
  if (Array.isArray(value)) return concat(header(value.length, 0x90, 0xdc), ...value.map(pack));
  // It would write a number beyond 32 bits as a float.
  const isWide = typeof value === "number" && Number.isSafeInteger(value) && Math.abs(value) > 0x7fffffff;
  return encode(isWide ? BigInt(value) : value, { useBigInt64: true }).slice();
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

function header(count: number, small: number, large: number): Uint8Array {
  if (count < 16) return Uint8Array.of(small | count);
  if (count <= 0xffff) return Uint8Array.of(large, count >> 8, count & 0xff);
  const bytes = new Uint8Array(5);
  bytes[0] = large + 1;
  new DataView(bytes.buffer).setUint32(1, count);
  return bytes;
}
