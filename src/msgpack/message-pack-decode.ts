import { MessagePackReader } from "./message-pack-reader.ts";
import { MessagePackExtension, MessagePackFloat, type MessagePackValue } from "./message-pack-value.ts";

/**
 * Builds the next value. Maps become `Map`s in file order; of two equal keys the first is kept.
 * Meant for small values of unknown shape; what has a schema is read token by token.
 */
export function decodeValue(reader: MessagePackReader, field: string): MessagePackValue {
  const start = reader.position;
  reader.skip(field); // checks counts and depth before anything is built
  const end = reader.position;
  reader.position = start;
  const value = build(reader, field);
  reader.position = end;
  return value;
}

/** Decodes `bytes`, which must hold one value. */
export function decodeBytes(
  bytes: Uint8Array,
  field: string,
  place: { readonly file?: string | undefined; readonly base?: number } = {},
): MessagePackValue {
  return decodeValue(new MessagePackReader(bytes, place), field);
}

function build(reader: MessagePackReader, field: string): MessagePackValue {
  switch (reader.kind(field)) {
    case "nil":
      return reader.nil(field);
    case "boolean":
      return reader.boolean(field);
    case "integer":
      return reader.integer(field);
    case "float": {
      const value = reader.float(field);
      return Number.isInteger(value) ? new MessagePackFloat(value) : value;
    }
    case "string":
      return reader.string(field);
    case "binary":
      return reader.binary(field);
    case "extension": {
      const { type, data } = reader.extension(field);
      return new MessagePackExtension(type, data);
    }
    case "array": {
      const count = reader.arraySize(field);
      const values: MessagePackValue[] = [];
      for (let index = 0; index < count; index++) values.push(build(reader, field));
      return values;
    }
    case "map": {
      const count = reader.mapSize(field);
      const map = new Map<MessagePackValue, MessagePackValue>();
      for (let index = 0; index < count; index++) {
        const key = build(reader, field);
        const value = build(reader, field);
        if (!map.has(key)) map.set(key, value);
      }
      return map;
    }
  }
}

/** The value as JSON can say it: bytes as hexadecimal text, big integers as decimal text, maps as objects. */
export function toJson(value: MessagePackValue): unknown {
  if (value === null || typeof value !== "object")
    return typeof value === "bigint" ? value.toString() : value;
  if (value instanceof Uint8Array)
    return Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (value instanceof MessagePackFloat) return value.value;
  if (value instanceof MessagePackExtension) return { extension: value.type, data: toJson(value.data) };
  if (Array.isArray(value)) return value.map((element: MessagePackValue) => toJson(element));
  const pairs = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(pairs.map(([key, element]) => [jsonKey(key), toJson(element)]));
}

function jsonKey(key: MessagePackValue): string {
  return typeof key === "string" ? key : JSON.stringify(toJson(key));
}
