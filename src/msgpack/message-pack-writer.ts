import { ByteWriter } from "../bytes/byte-writer.ts";
import { encodeUtf8 } from "../bytes/text.ts";
import { MessagePackExtension, MessagePackFloat, type MessagePackValue } from "./message-pack-value.ts";

const BIG_ENDIAN = false;
const UINT64_MAX = 0xffffffffffffffffn;
const INT64_MIN = -0x8000000000000000n;
const FIXED_EXTENSION_SIZES: readonly number[] = [1, 2, 4, 8, 16];

/** Writes MessagePack in its shortest forms, in the order of the calls. What it cannot say exactly is refused. */
export class MessagePackWriter {
  readonly #out: ByteWriter;

  constructor(capacity?: number) {
    this.#out = new ByteWriter(capacity);
  }

  finish(): Uint8Array {
    return this.#out.finish();
  }

  /** Bytes that are MessagePack already. */
  raw(bytes: Uint8Array): void {
    this.#out.append(bytes);
  }

  mapHeader(count: number): void {
    this.#header(count, 0x80, 16, 0xde);
  }

  arrayHeader(count: number): void {
    this.#header(count, 0x90, 16, 0xdc);
  }

  /** @throws TypeError for text that UTF-8 cannot say: half of a surrogate pair */
  string(text: string): void {
    if (!text.isWellFormed()) throw new TypeError(`no valid text: ${JSON.stringify(text)}`);
    const bytes = encodeUtf8(text);
    if (bytes.length < 32) this.#out.u8(0xa0 | bytes.length);
    else this.#size(bytes.length, 0xd9, 0xda, 0xdb);
    this.#out.append(bytes);
  }

  binary(bytes: Uint8Array): void {
    this.#size(bytes.length, 0xc4, 0xc5, 0xc6);
    this.#out.append(bytes);
  }

  /** @throws RangeError beyond 64 bits */
  integer(value: number | bigint): void {
    const out = this.#out;
    if (value > UINT64_MAX || value < INT64_MIN) throw new RangeError(`no 64-bit integer: ${value}`);
    if (value >= 0) {
      if (value <= 0x7f) out.u8(Number(value));
      else if (value <= 0xffffffff) this.#size(Number(value), 0xcc, 0xcd, 0xce);
      else {
        out.u8(0xcf);
        out.u64(value, BIG_ENDIAN);
      }
    } else if (value >= -32) out.u8(Number(value) & 0xff);
    else if (value >= -0x80) {
      out.u8(0xd0);
      out.u8(Number(value) & 0xff);
    } else if (value >= -0x8000) {
      out.u8(0xd1);
      out.u16(Number(value) & 0xffff, BIG_ENDIAN);
    } else if (value >= -0x80000000) {
      out.u8(0xd2);
      out.u32(Number(value) >>> 0, BIG_ENDIAN);
    } else {
      out.u8(0xd3);
      out.u64(BigInt.asUintN(64, BigInt(value)), BIG_ENDIAN);
    }
  }

  float(value: number): void {
    this.#out.u8(0xcb);
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    this.#out.append(new Uint8Array(view.buffer));
  }

  value(value: MessagePackValue): void {
    if (value === null) this.#out.u8(0xc0);
    else if (typeof value === "boolean") this.#out.u8(value ? 0xc3 : 0xc2);
    else if (typeof value === "bigint") this.integer(value);
    else if (typeof value === "number") this.#number(value);
    else if (typeof value === "string") this.string(value);
    else if (value instanceof Uint8Array) this.binary(value);
    else if (value instanceof MessagePackFloat) this.float(value.value);
    else if (value instanceof MessagePackExtension) this.#extension(value);
    else if (Array.isArray(value)) {
      this.arrayHeader(value.length);
      for (const element of value as readonly MessagePackValue[]) this.value(element);
    } else {
      const pairs: readonly (readonly [MessagePackValue, MessagePackValue])[] =
        value instanceof Map ? [...value] : Object.entries(value);
      this.mapHeader(pairs.length);
      for (const [key, element] of pairs) {
        this.value(key);
        this.value(element);
      }
    }
  }

  #number(value: number): void {
    if (Number.isSafeInteger(value)) this.integer(value);
    else this.float(value);
  }

  #extension(extension: MessagePackExtension): void {
    const fixed = FIXED_EXTENSION_SIZES.indexOf(extension.data.length);
    if (fixed >= 0) this.#out.u8(0xd4 + fixed);
    else this.#size(extension.data.length, 0xc7, 0xc8, 0xc9);
    this.#out.u8(extension.type & 0xff);
    this.#out.append(extension.data);
  }

  #header(count: number, small: number, smallLimit: number, large: number): void {
    if (count < smallLimit) this.#out.u8(small | count);
    else if (count <= 0xffff) {
      this.#out.u8(large);
      this.#out.u16(count, BIG_ENDIAN);
    } else {
      this.#out.u8(large + 1);
      this.#out.u32(count, BIG_ENDIAN);
    }
  }

  #size(size: number, one: number, two: number, four: number): void {
    if (size <= 0xff) {
      this.#out.u8(one);
      this.#out.u8(size);
    } else if (size <= 0xffff) {
      this.#out.u8(two);
      this.#out.u16(size, BIG_ENDIAN);
    } else {
      this.#out.u8(four);
      this.#out.u32(size, BIG_ENDIAN);
    }
  }
}

/** One value as MessagePack bytes. */
export function encodeValue(value: MessagePackValue): Uint8Array {
  const writer = new MessagePackWriter();
  writer.value(value);
  return writer.finish();
}
