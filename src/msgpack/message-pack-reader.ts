import { decodeUtf8 } from "../bytes/text.ts";
import { FormatError, type FormatErrorCode } from "../errors/errors.ts";
import { safeNumber } from "../bytes/uint64.ts";

/** Nesting beyond this is refused: no TOC needs it, and some readers' stacks do not survive it. */
const DEPTH_LIMIT = 128;

/** The kind of the value that stands next. */
export type MessagePackKind =
  | "nil"
  | "boolean"
  | "integer"
  | "float"
  | "string"
  | "binary"
  | "array"
  | "map"
  | "extension";

/**
 * Walks MessagePack token by token, without building values. Counts are checked against the bytes that are left,
 * so that nothing is reserved for elements that cannot be there; nesting costs no stack.
 */
export class MessagePackReader {
  readonly bytes: Uint8Array;
  position: number;
  /** Deepest nesting met by `skip`, counted from the value that was skipped. */
  deepest = 0;
  readonly #view: DataView;
  readonly #file: string | undefined;
  readonly #base: number;

  constructor(
    bytes: Uint8Array,
    place: { readonly file?: string | undefined; readonly base?: number } = {},
    position = 0,
  ) {
    this.bytes = bytes;
    this.position = position;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#file = place.file;
    this.#base = place.base ?? 0;
  }

  /** The kind of the next value, without moving. */
  kind(field: string): MessagePackKind {
    if (this.position >= this.bytes.length) throw this.#truncated(field);
    const tag = this.#byte(this.position);
    if (tag <= 0x7f || tag >= 0xe0) return "integer";
    if (tag <= 0x8f) return "map";
    if (tag <= 0x9f) return "array";
    if (tag <= 0xbf) return "string";
    if (tag === 0xc0) return "nil";
    if (tag === 0xc1) throw this.error("MALFORMED_MSGPACK", "byte c1 is never used in MessagePack", field);
    if (tag <= 0xc3) return "boolean";
    if (tag <= 0xc6) return "binary";
    if (tag <= 0xc9) return "extension";
    if (tag <= 0xcb) return "float";
    if (tag <= 0xd3) return "integer";
    if (tag <= 0xd8) return "extension";
    if (tag <= 0xdb) return "string";
    return tag <= 0xdd ? "array" : "map";
  }

  /** Number of pairs of the map that begins here; moves to its first key. */
  mapSize(field: string): number {
    const count = this.#containerSize(field, "map", 0x80, 0xde);
    if (count * 2 > this.bytes.length - this.position) throw this.#tooMany(field, count, "pairs");
    return count;
  }

  /** Number of elements of the array that begins here; moves to the first. */
  arraySize(field: string): number {
    const count = this.#containerSize(field, "array", 0x90, 0xdc);
    if (count > this.bytes.length - this.position) throw this.#tooMany(field, count, "elements");
    return count;
  }

  /** Moves into a string and returns its size in bytes; the bytes begin at `position`. */
  stringSize(field: string): number {
    this.#expect("string", field);
    const tag = this.#byte(this.position);
    let size: number;
    if (tag <= 0xbf) {
      size = tag & 0x1f;
      this.position += 1;
    } else {
      size = this.#sized(tag - 0xd9, field);
    }
    if (size > this.bytes.length - this.position) throw this.#truncated(field);
    return size;
  }

  string(field: string): string {
    const start = this.position;
    const size = this.stringSize(field);
    const text = decodeUtf8(this.bytes.subarray(this.position, this.position + size));
    if (text === undefined) {
      this.position = start;
      throw this.error("MALFORMED_TEXT", "a string is not valid UTF-8", field);
    }
    this.position += size;
    return text;
  }

  binary(field: string): Uint8Array {
    this.#expect("binary", field);
    const size = this.#sized(this.#byte(this.position) - 0xc4, field);
    if (size > this.bytes.length - this.position) throw this.#truncated(field);
    this.position += size;
    return this.bytes.subarray(this.position - size, this.position);
  }

  /** An integer that must be a safe number from 0 on: an ordinal, an offset, a size. */
  unsigned(field: string): number {
    const tag = this.position < this.bytes.length ? this.#byte(this.position) : 0xc1;
    if (tag <= 0x7f) {
      this.position += 1;
      return tag;
    }
    const start = this.position;
    const value = this.integer(field);
    if (typeof value === "number" && value >= 0) return value;
    this.position = start;
    if (typeof value === "bigint" && value > 0n) {
      throw this.error(
        "OUT_OF_BOUNDS",
        "the value is larger than any file",
        field,
        undefined,
        `0x${value.toString(16)}`,
      );
    }
    throw this.error("WRONG_TYPE", "the value is negative", field, "an integer from 0 on", String(value));
  }

  integer(field: string): number | bigint {
    this.#expect("integer", field);
    const at = this.position;
    const tag = this.#byte(at);
    if (tag <= 0x7f) {
      this.position = at + 1;
      return tag;
    }
    if (tag >= 0xe0) {
      this.position = at + 1;
      return tag - 256;
    }
    const width = 1 << (tag - (tag >= 0xd0 ? 0xd0 : 0xcc));
    if (width > this.bytes.length - at - 1) throw this.#truncated(field);
    this.position = at + 1 + width;
    switch (tag) {
      case 0xcc:
        return this.#byte(at + 1);
      case 0xcd:
        return this.#view.getUint16(at + 1);
      case 0xce:
        return this.#view.getUint32(at + 1);
      case 0xd0:
        return this.#view.getInt8(at + 1);
      case 0xd1:
        return this.#view.getInt16(at + 1);
      case 0xd2:
        return this.#view.getInt32(at + 1);
      default: {
        const value = tag === 0xcf ? this.#view.getBigUint64(at + 1) : this.#view.getBigInt64(at + 1);
        return safeNumber(value) ?? value;
      }
    }
  }

  float(field: string): number {
    this.#expect("float", field);
    const at = this.position;
    const width = this.#byte(at) === 0xca ? 4 : 8;
    if (width > this.bytes.length - at - 1) throw this.#truncated(field);
    this.position = at + 1 + width;
    return width === 4 ? this.#view.getFloat32(at + 1) : this.#view.getFloat64(at + 1);
  }

  boolean(field: string): boolean {
    this.#expect("boolean", field);
    this.position += 1;
    return this.#byte(this.position - 1) === 0xc3;
  }

  nil(field: string): null {
    this.#expect("nil", field);
    this.position += 1;
    return null;
  }

  extension(field: string): { readonly type: number; readonly data: Uint8Array } {
    this.#expect("extension", field);
    const tag = this.#byte(this.position);
    let size: number;
    if (tag <= 0xc9) {
      size = this.#sized(tag - 0xc7, field);
    } else {
      size = 1 << (tag - 0xd4);
      this.position += 1;
    }
    if (size + 1 > this.bytes.length - this.position) throw this.#truncated(field);
    const type = this.#view.getInt8(this.position);
    this.position += size + 1;
    return { type, data: this.bytes.subarray(this.position - size, this.position) };
  }

  /** Moves past the next value, whatever it is. */
  skip(field: string): void {
    const open: number[] = [];
    for (;;) {
      let children = 0;
      switch (this.kind(field)) {
        case "map":
          children = 2 * this.mapSize(field);
          break;
        case "array":
          children = this.arraySize(field);
          break;
        case "string": {
          const size = this.stringSize(field);
          this.position += size;
          break;
        }
        case "binary":
          this.binary(field);
          break;
        case "extension":
          this.extension(field);
          break;
        case "integer":
          this.integer(field);
          break;
        case "float":
          this.float(field);
          break;
        default:
          this.position += 1;
      }
      if (children > 0) {
        open.push(children);
        if (open.length > DEPTH_LIMIT) {
          throw this.error(
            "MALFORMED_MSGPACK",
            "values are nested too deep",
            field,
            `at most ${DEPTH_LIMIT} levels`,
          );
        }
        if (open.length > this.deepest) this.deepest = open.length;
        continue;
      }
      for (;;) {
        const left = open.pop();
        if (left === undefined) return;
        if (left > 1) {
          open.push(left - 1);
          break;
        }
      }
    }
  }

  error(
    code: FormatErrorCode,
    summary: string,
    field: string,
    expected?: string,
    found?: string,
  ): FormatError {
    return new FormatError(code, summary, {
      file: this.#file,
      field,
      offset: this.#base + this.position,
      expected,
      found,
    });
  }

  #expect(kind: MessagePackKind, field: string): void {
    const found = this.kind(field);
    if (found !== kind) throw this.error("WRONG_TYPE", "the value has the wrong type", field, kind, found);
  }

  #containerSize(field: string, kind: "map" | "array", small: number, large: number): number {
    this.#expect(kind, field);
    const tag = this.#byte(this.position);
    if (tag < large) {
      this.position += 1;
      return tag - small;
    }
    return this.#sized(tag - large + 1, field);
  }

  /** Reads the tag and the size behind it, of 1, 2 or 4 bytes (`width` 0, 1, 2). */
  #sized(width: number, field: string): number {
    const at = this.position + 1;
    const bytes = 1 << width;
    if (bytes > this.bytes.length - at) throw this.#truncated(field);
    this.position = at + bytes;
    return width === 0 ? this.#byte(at) : width === 1 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #byte(at: number): number {
    return this.#view.getUint8(at);
  }

  #truncated(field: string): FormatError {
    return this.error("TRUNCATED", "the MessagePack data ends inside a value", field);
  }

  #tooMany(field: string, count: number, what: string): FormatError {
    const left = this.bytes.length - this.position;
    return this.error(
      "COUNT_TOO_LARGE",
      `more ${what} than bytes are left`,
      field,
      `at most ${left} bytes`,
      `${count} ${what}`,
    );
  }
}
