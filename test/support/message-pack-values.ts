import * as fc from "fast-check";
import { MessagePackExtension, MessagePackFloat, type MessagePackValue } from "../../src/node.ts";

const leaf: fc.Arbitrary<MessagePackValue> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.constantFrom(-1, -32, -33, -128, -129, -32768, -32769, -(2 ** 31), -(2 ** 31) - 1),
  fc.constantFrom(127, 128, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32),
  fc.double().map((value) => (Number.isInteger(value) ? new MessagePackFloat(value) : value)),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(31, 32, 255, 256).map((size) => "x".repeat(size)),
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom(255, 256).map((size) => new Uint8Array(size)),
  fc
    .tuple(fc.integer({ min: 0, max: 127 }), fc.uint8Array({ maxLength: 20 }))
    .map(([type, data]) => new MessagePackExtension(type, data)),
);

/** Any value that MessagePack can say, with containers around the sizes at which their headers change. */
export const messagePackValue: fc.Arbitrary<MessagePackValue> = fc.letrec<{ value: MessagePackValue }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.array(tie("value"), { maxLength: 17 }),
      fc
        .array(fc.tuple(fc.string({ unit: "binary", maxLength: 6 }), tie("value")), { maxLength: 17 })
        .map((pairs) => new Map<MessagePackValue, MessagePackValue>(pairs)),
    ),
  }),
).value;

/** A value in one comparable form, whichever library it comes from. Integers and floats stay apart. */
export function canonical(value: unknown): unknown {
  if (typeof value === "bigint") return `integer ${value}`;
  if (typeof value === "number")
    return Number.isInteger(value) && !Object.is(value, -0) ? `integer ${value}` : float(value);
  if (value instanceof MessagePackFloat) return float(value.value);
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  if (value instanceof MessagePackExtension)
    return `extension ${value.type} ${Buffer.from(value.data).toString("hex")}`;
  if (Array.isArray(value)) return value.map(canonical);
  if (value instanceof Map)
    return { pairs: [...value].map(([key, one]) => [canonical(key), canonical(one)]) };
  if (typeof value === "string") return `text ${value}`;
  return value;
}

function float(value: number): string {
  return Object.is(value, -0) ? "float -0" : `float ${value}`;
}
