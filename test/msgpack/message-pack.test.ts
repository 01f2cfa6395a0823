import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode, encode, ExtData } from "@msgpack/msgpack";
import * as fc from "fast-check";
import { decodeBytes, decodeValue, toJson } from "../../src/msgpack/message-pack-decode.ts";
import { MessagePackReader } from "../../src/msgpack/message-pack-reader.ts";
import { encodeValue, MessagePackWriter } from "../../src/msgpack/message-pack-writer.ts";
import {
  isKpackError,
  type KpackErrorCode,
  MessagePackExtension,
  MessagePackFloat,
  type MessagePackValue,
} from "../../src/node.ts";
import { canonical, messagePackValue } from "../support/message-pack-values.ts";
import { concat, hex } from "../support/raw-msgpack.ts";

/** The value as @msgpack/msgpack takes it. */
function forJudge(value: MessagePackValue): unknown {
  if (value instanceof MessagePackExtension) return new ExtData(value.type, value.data);
  if (Array.isArray(value)) return value.map((one: MessagePackValue) => forJudge(one));
  return value;
}

/** A value of @msgpack/msgpack in the form that `canonical` compares; floats that are whole are not told apart there. */
function fromJudge(value: unknown): unknown {
  if (value instanceof ExtData) return new MessagePackExtension(value.type, value.data as Uint8Array);
  if (Array.isArray(value)) return value.map(fromJudge);
  if (typeof value === "object" && value !== null && !(value instanceof Uint8Array))
    return new Map(Object.entries(value).map(([key, one]) => [key, fromJudge(one)]));
  return value;
}

/** `canonical`, but as a reader sees it that knows one kind of number. */
function loose(value: unknown): string {
  return JSON.stringify(canonical(value))
    .replaceAll('"float ', '"integer ')
    .replaceAll("integer -0", "integer 0");
}

function hasMap(value: MessagePackValue): boolean {
  return Array.isArray(value) ? value.some(hasMap) : value instanceof Map;
}

function sortedPairs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedPairs);
  if (!(value instanceof Map)) return value;
  const pairs = [...value].map(([key, one]): [string, unknown] => [String(key), sortedPairs(one)]);
  return new Map(pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function fails(hexText: string, code: KpackErrorCode): void {
  for (const read of [
    (reader: MessagePackReader): unknown => decodeValue(reader, "field"),
    (reader: MessagePackReader): unknown => reader.skip("field"),
  ]) {
    assert.throws(
      () => read(new MessagePackReader(hex(hexText), { file: "f", base: 100 })),
      (error) => isKpackError(error, code) && error.field === "field" && (error.offset ?? 0) >= 100,
      hexText,
    );
  }
}

describe("MessagePack", () => {
  it("that we write is what another library reads", () => {
    fc.assert(
      fc.property(messagePackValue, (value) => {
        const judged = decode(encodeValue(value), { useBigInt64: true, mapKeyConverter: String });
        assert.equal(loose(sortedPairs(fromJudge(judged))), loose(sortedPairs(value)));
      }),
      { numRuns: 200 },
    );
  });

  it("without maps is byte for byte what another library writes: the shortest form", () => {
    const writable = messagePackValue.filter(
      (value) => !hasMap(value) && !/bigint|float/.test(JSON.stringify(canonicalKinds(value))),
    );
    fc.assert(
      fc.property(writable, (value) => {
        assert.deepEqual(encodeValue(value), encode(forJudge(value)).slice());
      }),
      { numRuns: 200 },
    );
  });

  it("that another library writes is what we read", () => {
    fc.assert(
      fc.property(messagePackValue, (value) => {
        if (hasMap(value)) return;
        const bytes = encode(forJudge(canNumber(value)), { useBigInt64: true });
        assert.equal(loose(decodeBytes(bytes, "value")), loose(value));
      }),
      { numRuns: 200 },
    );
  });

  it("comes back with value and type, and skipping lands where decoding lands", () => {
    fc.assert(
      fc.property(messagePackValue, fc.nat(20), (value, before) => {
        const bytes = concat(new Uint8Array(before), encodeValue(value), Uint8Array.of(0xc1));
        const decoding = new MessagePackReader(bytes, {}, before);
        assert.deepEqual(canonical(decodeValue(decoding, "value")), canonical(value));
        const skipping = new MessagePackReader(bytes, {}, before);
        skipping.skip("value");
        assert.equal(skipping.position, bytes.length - 1);
        assert.equal(decoding.position, bytes.length - 1);
      }),
      { numRuns: 200 },
    );
  });

  it("that is cut anywhere is refused, not read past its end", () => {
    fc.assert(
      fc.property(messagePackValue, fc.double({ min: 0, max: 1, noNaN: true }), (value, where) => {
        const bytes = encodeValue(value);
        const cut = bytes.subarray(0, Math.min(bytes.length - 1, Math.floor(where * bytes.length)));
        for (const read of [decodeBytes, skipBytes]) {
          assert.throws(
            () => read(cut, "value"),
            (error) => isKpackError(error, "TRUNCATED", "COUNT_TOO_LARGE"),
          );
        }
      }),
      { numRuns: 200 },
    );
  });

  it("of random bytes gives a value or a typed error, the same for decoding and skipping", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const outcome = (read: (bytes: Uint8Array, field: string) => unknown): unknown => {
          try {
            read(bytes, "value");
            return "read";
          } catch (error) {
            assert.ok(isKpackError(error), String(error));
            return error.code;
          }
        };
        const [skipped, decoded] = [outcome(skipBytes), outcome(decodeBytes)];
        if (decoded !== "MALFORMED_TEXT") assert.equal(decoded, skipped);
      }),
      { numRuns: 2000 },
    );
  });
});

function skipBytes(bytes: Uint8Array, field: string): void {
  new MessagePackReader(bytes).skip(field);
}

function canonicalKinds(value: MessagePackValue): unknown {
  if (Array.isArray(value)) return value.map((one: MessagePackValue) => canonicalKinds(one));
  return value instanceof MessagePackFloat ? "float" : typeof value;
}

/** Without our own wrapper of floats, and -0, which the other library writes as 0. */
function canNumber(value: MessagePackValue): MessagePackValue {
  if (Array.isArray(value)) return value.map((one: MessagePackValue) => canNumber(one));
  return value instanceof MessagePackFloat ? value.value : value;
}

describe("reading MessagePack", () => {
  it("knows every form of every kind", () => {
    const forms: readonly (readonly [string, unknown])[] = [
      ["c0", null],
      ["c2", false],
      ["c3", true],
      ["00", 0],
      ["7f", 127],
      ["e0", -32],
      ["ff", -1],
      ["ccff", 255],
      ["cdffff", 65535],
      ["ceffffffff", 2 ** 32 - 1],
      ["cf001fffffffffffff", Number.MAX_SAFE_INTEGER],
      ["cf0020000000000000", 2n ** 53n],
      ["cfffffffffffffffff", 2n ** 64n - 1n],
      ["cf0000000000000001", 1],
      ["d080", -128],
      ["d18000", -32768],
      ["d280000000", -(2 ** 31)],
      ["d38000000000000000", -(2n ** 63n)],
      ["d3ffe0000000000001", Number.MIN_SAFE_INTEGER],
      ["ca3fc00000", 1.5],
      ["cb3ff8000000000000", 1.5],
      ["cb3ff0000000000000", new MessagePackFloat(1)],
      ["cb8000000000000000", new MessagePackFloat(-0)],
      ["a0", ""],
      ["a3616263", "abc"],
      ["d903616263", "abc"],
      ["da0003616263", "abc"],
      ["db00000003616263", "abc"],
      ["c40101", Uint8Array.of(1)],
      ["c5000101", Uint8Array.of(1)],
      ["c60000000101", Uint8Array.of(1)],
      ["90", []],
      ["9201c0", [1, null]],
      ["dc000101", [1]],
      ["dd0000000101", [1]],
      ["80", new Map()],
      ["8101a161", new Map([[1, "a"]])],
      ["de00010102", new Map([[1, 2]])],
      ["df000000010102", new Map([[1, 2]])],
      ["d4ff07", new MessagePackExtension(-1, Uint8Array.of(7))],
      ["d5010708", new MessagePackExtension(1, Uint8Array.of(7, 8))],
      ["d60101020304", new MessagePackExtension(1, Uint8Array.of(1, 2, 3, 4))],
      ["d7010102030405060708", new MessagePackExtension(1, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))],
      [`d801${"00".repeat(16)}`, new MessagePackExtension(1, new Uint8Array(16))],
      ["c70005", new MessagePackExtension(5, new Uint8Array(0))],
      ["c800010507", new MessagePackExtension(5, Uint8Array.of(7))],
      ["c9000000010507", new MessagePackExtension(5, Uint8Array.of(7))],
    ];
    for (const [text, value] of forms) {
      const reader = new MessagePackReader(hex(`${text}c1`));
      assert.deepEqual(decodeValue(reader, "field"), value, text);
      assert.equal(reader.position, text.length / 2, text);
      for (let size = 0; size < text.length; size += 2) {
        const isCount = /^(dc|dd|de|df|8|9)/.test(text);
        assert.throws(
          () => decodeBytes(hex(text.slice(0, size)), "field"),
          (error) => isKpackError(error, "TRUNCATED") || (isCount && isKpackError(error, "COUNT_TOO_LARGE")),
          `${text} cut to ${size / 2}`,
        );
      }
    }
  });

  it("keeps the first of two equal keys of a map of unknown shape", () => {
    assert.deepEqual(decodeBytes(hex("82a16101a16102"), "field"), new Map([["a", 1]]));
  });

  it("refuses the byte that is never used, and text that is no UTF-8", () => {
    fails("c1", "MALFORMED_MSGPACK");
    fails("9201c1", "MALFORMED_MSGPACK");
    for (const text of ["a1ff", "a2c328", "a3eda080", "a4f5808080", "a2c080"])
      assert.throws(
        () => decodeBytes(hex(text), "field"),
        (error) => isKpackError(error, "MALFORMED_TEXT"),
      );
  });

  it("keeps a byte order mark and a zero in text", () => {
    assert.equal(decodeBytes(hex("a4efbbbf00"), "field"), "\ufeff\u0000");
  });

  it("refuses counts of elements that cannot be there, in a moment", () => {
    for (const text of [
      "ddffffffff",
      "dfffffffff",
      "df80000000",
      "dcffff",
      "deffff",
      "9f",
      "8f",
      "9401dd10000000",
    ])
      fails(text, "COUNT_TOO_LARGE");
    for (const text of ["dbffffffff", "c6ffffffff", "c9ffffffff00", "bf", "c4ff"]) fails(text, "TRUNCATED");
    fails(`${"91".repeat(50)}${"ddfffffff0"}`, "COUNT_TOO_LARGE");
  });

  it("nests 128 deep and no deeper, without using the stack up", () => {
    assert.doesNotThrow(() => decodeBytes(hex(`${"91".repeat(128)}00`), "field"));
    assert.doesNotThrow(() => decodeBytes(hex(`${"8100".repeat(128)}00`), "field"));
    fails(`${"91".repeat(129)}00`, "MALFORMED_MSGPACK");
    fails(`${"8100".repeat(129)}00`, "MALFORMED_MSGPACK");
    const deep = concat(new Uint8Array(5_000_000).fill(0x91), Uint8Array.of(0));
    assert.throws(
      () => decodeBytes(deep, "field"),
      (error) => isKpackError(error, "MALFORMED_MSGPACK"),
    );
    const reader = new MessagePackReader(hex(`${"91".repeat(7)}00`));
    reader.skip("field");
    assert.equal(reader.deepest, 7);
  });

  it("says which type was expected and which was found, and does not move", () => {
    const calls: readonly (readonly [string, (reader: MessagePackReader) => unknown, string])[] = [
      ["string", (reader) => reader.string("x"), "01"],
      ["binary", (reader) => reader.binary("x"), "a0"],
      ["integer", (reader) => reader.integer("x"), "ca00000000"],
      ["float", (reader) => reader.float("x"), "01"],
      ["boolean", (reader) => reader.boolean("x"), "c0"],
      ["nil", (reader) => reader.nil("x"), "c2"],
      ["array", (reader) => reader.arraySize("x"), "80"],
      ["map", (reader) => reader.mapSize("x"), "90"],
      ["extension", (reader) => reader.extension("x"), "c400"],
    ];
    for (const [expected, call, text] of calls) {
      const reader = new MessagePackReader(hex(text), { file: "f", base: 7 });
      const found = reader.kind("x");
      assert.throws(() => call(reader), {
        name: "FormatError",
        code: "WRONG_TYPE",
        file: "f",
        field: "x",
        offset: 7,
        expected,
        found,
      });
      assert.equal(reader.position, 0);
    }
  });

  it("takes only whole numbers from 0 on where one is needed", () => {
    const unsigned = (text: string): number => new MessagePackReader(hex(text)).unsigned("x");
    assert.equal(unsigned("d30000000000000005"), 5);
    assert.equal(unsigned("cf001fffffffffffff"), Number.MAX_SAFE_INTEGER);
    for (const [text, code] of [
      ["ff", "WRONG_TYPE"],
      ["d3ffffffffffffffff", "WRONG_TYPE"],
      ["d38000000000000000", "WRONG_TYPE"],
      ["cf0020000000000000", "OUT_OF_BOUNDS"],
      ["cb3ff0000000000000", "WRONG_TYPE"],
      ["c0", "WRONG_TYPE"],
      ["cd00", "TRUNCATED"],
      ["", "TRUNCATED"],
    ] as const)
      assert.throws(
        () => unsigned(text),
        (error) => isKpackError(error, code),
        text,
      );
  });
});

describe("writing MessagePack", () => {
  it("refuses integers beyond 64 bits and text with half a surrogate pair", () => {
    for (const value of [2n ** 64n, -(2n ** 63n) - 1n, 10n ** 30n])
      assert.throws(() => encodeValue(value), RangeError);
    assert.deepEqual(encodeValue(2n ** 64n - 1n), hex("cfffffffffffffffff"));
    assert.deepEqual(encodeValue(-(2n ** 63n)), hex("d38000000000000000"));
    for (const text of ["\ud800", "a\udc00b"]) assert.throws(() => encodeValue(text), TypeError);
    assert.deepEqual(encodeValue("\ud83d\ude80"), hex("a4f09f9a80"));
  });

  it("writes objects as maps in the order of their keys", () => {
    assert.deepEqual(encodeValue({ b: 1, a: [true] }), hex("82a16201a16191c3"));
  });

  it("puts what is encoded already between what is not", () => {
    const writer = new MessagePackWriter(1);
    writer.arrayHeader(3);
    writer.integer(1);
    writer.raw(hex("cb3ff0000000000000"));
    writer.float(2);
    assert.deepEqual(writer.finish(), hex("9301cb3ff0000000000000cb4000000000000000"));
  });

  it("heads text and bytes of every size", () => {
    for (const [size, text, bytes] of [
      [0, "a0", "c400"],
      [31, "bf", "c41f"],
      [32, "d920", "c420"],
      [255, "d9ff", "c4ff"],
      [256, "da0100", "c50100"],
      [65535, "daffff", "c5ffff"],
      [65536, "db00010000", "c600010000"],
    ] as const) {
      const content = new Uint8Array(size).fill(0x78);
      assert.ok(Buffer.from(concat(hex(text), content)).equals(encodeValue("x".repeat(size))), text);
      assert.ok(Buffer.from(concat(hex(bytes), content)).equals(encodeValue(content)), bytes);
      assert.equal(decodeBytes(encodeValue("x".repeat(size)), "x"), "x".repeat(size));
      assert.ok(Buffer.from(content).equals(decodeBytes(encodeValue(content), "x") as Uint8Array));
    }
  });

  it("heads containers of every size", () => {
    for (const [count, text] of [
      [0, "90"],
      [15, "9f"],
      [16, "dc0010"],
      [65535, "dcffff"],
      [65536, "dd00010000"],
    ] as const) {
      const writer = new MessagePackWriter();
      writer.arrayHeader(count);
      assert.deepEqual(writer.finish(), hex(text));
    }
  });
});

describe("MessagePack as JSON", () => {
  it("says everything that JSON can say", () => {
    const value = new Map<MessagePackValue, MessagePackValue>([
      ["big", 2n ** 60n],
      ["bytes", Uint8Array.of(0, 255)],
      ["float", new MessagePackFloat(1)],
      ["ext", new MessagePackExtension(5, Uint8Array.of(1))],
      ["list", [null, true, { a: 1 }]],
      [7, "number as key"],
      ["__proto__", 1],
    ]);
    assert.equal(
      JSON.stringify(toJson(value)),
      '{"7":"number as key","big":"1152921504606846976","bytes":"00ff","float":1,' +
        '"ext":{"extension":5,"data":"01"},"list":[null,true,{"a":1}],"__proto__":1}',
    );
  });
});
