import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { constants, zstdCompressSync } from "node:zlib";
import type { FindingCode, KpackErrorCode } from "../../src/node.ts";
import {
  type ArchiveChanges,
  buildArchive,
  entryOf,
  noneArchive,
  type RawArchive,
  tocOf,
  zstdArchive,
} from "../support/archive-builder.ts";
import { kpackError } from "../support/expect-error.ts";
import { openBytes, sampleKernel } from "../support/kernels.ts";
import { concat, hex, map, pack, raw, RawBytes } from "../support/raw-msgpack.ts";

const A = sampleKernel(1, 700);
const B = sampleKernel(2, 300);

function frame(bytes: Uint8Array, params: Record<number, number> = {}): Uint8Array {
  return new Uint8Array(zstdCompressSync(bytes, { params }));
}

/** Everything is read, and exactly these warnings are given on opening. */
async function reads(
  bytes: Uint8Array,
  kernels: readonly Uint8Array[],
  findings: readonly (readonly [FindingCode, string | undefined])[] = [],
): Promise<void> {
  const seen: unknown[] = [];
  const archive = await openBytes(bytes, { onFinding: (finding) => seen.push(finding) });
  const found: Uint8Array[] = [];
  for await (const kernel of archive.readKernels()) found.push(kernel.bytes);
  assert.deepEqual(
    found.map((one) => Buffer.from(one)),
    kernels.map((one) => Buffer.from(one)),
  );
  assert.deepEqual(
    archive.findings.map(({ code, field }) => [code, field]),
    findings,
  );
  assert.deepEqual(seen, archive.findings);
  for (const { severity, file, message } of archive.findings) {
    assert.equal(severity, "warning");
    assert.equal(file, "test.kpack");
    assert.ok(message.length > 10);
  }
}

async function openFails(bytes: Uint8Array, code: KpackErrorCode, field: RegExp): Promise<void> {
  await kpackError(async () => await openBytes(bytes), code, field);
}

async function readFails(bytes: Uint8Array, code: KpackErrorCode, field: RegExp): Promise<void> {
  const archive = await openBytes(bytes);
  await kpackError(async () => await archive.readKernel("a.so#0", "gfx942"), code, field);
}

function withOrdinal(ordinal: unknown): ArchiveChanges {
  return { entries: map(["a.so#0", map(["gfx942", entryOf(ordinal, A.length)])]) };
}

const frames = [frame(A), frame(B)];

describe("odd archives that are read", () => {
  it("bytes after the TOC", async () => {
    await reads(
      noneArchive([A], { file: { trailing: Uint8Array.of(0) } }),
      [A],
      [["TRAILING_BYTES", undefined]],
    );
  });

  for (const key of ["group_name", "gfx_arch_family", "format_version", "gfx_arches", "compression_scheme"]) {
    it(`no ${key}`, async () => {
      const bytes = noneArchive([A, B], { toc: [[key, undefined]] });
      await reads(bytes, [A, B], [["MISSING_FIELD", key]]);
      const archive = await openBytes(bytes);
      assert.equal(archive.groupName, key === "group_name" ? "" : "g");
      assert.equal(archive.family, key === "gfx_arch_family" ? "" : "gfx942");
      assert.deepEqual(archive.targets, key === "gfx_arches" ? [] : ["gfx942"]);
      assert.equal(archive.schemeName, "none");
    });
  }

  it("TOC field format_version 2", async () => {
    await reads(
      noneArchive([A], { toc: [["format_version", 2]] }),
      [A],
      [["FORMAT_VERSION_FIELD", "format_version"]],
    );
  });

  for (const offset of [16, 63]) {
    it(`kernels from byte ${offset} on, inside the header's padding`, async () => {
      const bytes = noneArchive([A], { toc: [["blobs", [map(["offset", offset], ["size", 10])]]] });
      bytes.set(A.subarray(0, 10), offset);
      await reads(bytes, [A.subarray(0, 10)], [["AREA_BEFORE_64", undefined]]);
    });
  }

  it("a zstd area from byte 16 on", async () => {
    const area = concat(hex("01000000"), hex("0d000000"), hex("28b52ffd20042100007f454c46"));
    const toc = tocOf(map(["a.so#0", map(["gfx942", entryOf(0, 4)])]), "zstd-per-kernel", [
      ["zstd_offset", 16],
      ["zstd_size", area.length],
    ]);
    const bytes = buildArchive({ toc });
    bytes.set(area, 16);
    await reads(bytes, [hex("7f454c46")], [["AREA_BEFORE_64", undefined]]);
  });

  it("two keys with one ordinal, and two blobs with one extent", async () => {
    const shared = map(
      ["a.so#0", map(["gfx942", entryOf(0, A.length)])],
      ["b.so#0", map(["gfx942", entryOf(0, A.length)])],
    );
    await reads(noneArchive([A], { entries: shared }), [A, A]);
    const blob = map(["offset", 64], ["size", A.length]);
    const bytes = noneArchive([A, A], { toc: [["blobs", [blob, blob]]], file: { area: A } });
    await reads(bytes, [A, A]);
    const findings: string[] = [];
    await (await openBytes(bytes)).decompressor.verifyArea?.(({ code }) => findings.push(code));
    assert.deepEqual(findings, []);
  });

  it("unknown keys of the TOC, an entry and a blob", async () => {
    const entry = entryOf(0, A.length, [["later", map(["deep", [1, null, new Uint8Array(3)]])]]);
    const bytes = noneArchive([A], {
      entries: map(["a.so#0", map(["gfx942", entry])]),
      toc: [
        ["blobs", [map(["later", 1], ["size", A.length], ["offset", 64])]],
        ["later", [1.5, raw("c70305000102")]],
      ],
    });
    await reads(bytes, [A]);
    const [first] = (await openBytes(bytes)).entries;
    assert.deepEqual([...(first?.fields().keys() ?? [])], ["type", "later"]);
  });

  it("scheme none, and an original_size that is not the blob's size", async () => {
    const entries = map(["a.so#0", map(["gfx942", entryOf(0, 5)])]);
    await reads(noneArchive([A], { entries }), [A]);
  });

  it("no original_size at all", async () => {
    const entry = map(["type", "hsaco"], ["ordinal", 0]);
    const entries = map(["a.so#0", map(["gfx942", entry])]);
    await reads(noneArchive([A], { entries }), [A]);
    await reads(zstdArchive([A], [frame(A)], { entries }), [A]);
    const unsized = frame(A, { [constants.ZSTD_c_contentSizeFlag]: 0 });
    await reads(zstdArchive([A], [unsized], { entries }), [A]);
    const [first] = (await openBytes(noneArchive([A], { entries }))).entries;
    assert.equal(first?.originalSize, undefined);
  });

  it("a frame without content size, also of no bytes", async () => {
    const params = { [constants.ZSTD_c_contentSizeFlag]: 0 };
    const empty = new Uint8Array(0);
    await reads(zstdArchive([A, empty], [frame(A, params), frame(empty, params)]), [A, empty]);
  });

  it("skippable frames in front of the frame", async () => {
    const skippable = hex("502a4d1803000000010203 5f2a4d1800000000");
    await reads(zstdArchive([A], [concat(skippable, frame(A))]), [A]);
  });

  it("level 19, a window of 2^27, with checksum", async () => {
    const params = {
      [constants.ZSTD_c_compressionLevel]: 19,
      [constants.ZSTD_c_checksumFlag]: 1,
      [constants.ZSTD_c_contentSizeFlag]: 0,
    };
    const wide = frame(A, params);
    wide[5] = (27 - 10) << 3; // the window descriptor
    await reads(zstdArchive([A], [wide]), [A]);
  });

  it("kernels of 0 bytes", async () => {
    const empty = new Uint8Array(0);
    await reads(noneArchive([empty, A]), [empty, A]);
    await reads(zstdArchive([empty, A], [frame(empty), frame(A)]), [empty, A]);
  });

  it("no kernels, no binaries, or a binary without targets", async () => {
    await reads(noneArchive([]), []);
    await reads(zstdArchive([], []), []);
    await reads(noneArchive([A], { entries: map(["a.so#0", map()], ["b.so#0", map()]) }), []);
  });
});

describe("odd archives that are refused", () => {
  const withFile = (file: Partial<RawArchive>): Uint8Array => noneArchive([A], { file });

  for (const [name, scheme] of [
    ["unknown", "lz4"],
    ["no text", 1],
    ["text as bin", new Uint8Array(4)],
  ] as const) {
    it(`a compression_scheme that is ${name}`, async () => {
      const error = await kpackError(
        async () => await openBytes(noneArchive([A], { toc: [["compression_scheme", scheme]] })),
        "UNKNOWN_SCHEME",
        /^compression_scheme$/,
      );
      if (scheme === "lz4") {
        assert.equal(error.found, "lz4");
        assert.equal(error.expected, "none, zstd-per-kernel, zstd-cross-kernel");
      }
    });
  }

  it("header version 2", async () => {
    await openFails(withFile({ version: 2 }), "UNSUPPORTED_VERSION", /^format version$/);
  });

  for (const tocOffset of [0, 8, 15, 1_000_000, 2 ** 40, 2n ** 63n, 2n ** 64n - 1n]) {
    it(`a TOC at byte ${tocOffset}`, async () => {
      const error = await kpackError(
        async () => await openBytes(withFile({ tocOffset })),
        "OUT_OF_BOUNDS",
        /^TOC offset$/,
      );
      assert.equal(error.offset, 8);
      const found = typeof tocOffset === "bigint" ? `0x${tocOffset.toString(16)}` : String(tocOffset);
      assert.equal(error.found, found);
    });
  }

  it("files of 0, 15 and 16 bytes, each with its own reason", async () => {
    const bytes = noneArchive([A]);
    await openFails(bytes.subarray(0, 0), "EMPTY_FILE", /no field/);
    await openFails(bytes.subarray(0, 15), "TRUNCATED", /^header$/);
    const noRoom = await kpackError(async () => await openBytes(bytes.subarray(0, 16)), "OUT_OF_BOUNDS");
    assert.match(noRoom.message, /no room for a table of contents \(expected more than 16 bytes, found 16\)/);
    assert.equal(noRoom.field, "TOC offset");
  });

  it("another file of the same size", async () => {
    const error = await kpackError(async () => await openBytes(new Uint8Array(64)), "BAD_MAGIC", /^magic$/);
    assert.equal(error.found, "00000000");
  });

  for (const [name, ordinal] of [
    ["text", "0"],
    ["a float", raw("cb3ff0000000000000")],
    ["negative", -1],
    ["nothing", null],
    ["a list", [0]],
  ] as const) {
    it(`an ordinal that is ${name}`, async () => {
      const field = /^toc\["a\.so#0"\]\.gfx942\.ordinal$/;
      await openFails(noneArchive([A], withOrdinal(ordinal)), "WRONG_TYPE", field);
      await openFails(zstdArchive([A], [frame(A)], withOrdinal(ordinal)), "WRONG_TYPE", field);
    });
  }

  it("an ordinal beyond 32 or 53 bits", async () => {
    for (const ordinal of [2 ** 32, 2n ** 53n, 2n ** 64n - 1n])
      await openFails(noneArchive([A], withOrdinal(ordinal)), "OUT_OF_BOUNDS", /ordinal$/);
  });

  it("an ordinal out of range, with the valid range", async () => {
    for (const bytes of [noneArchive([A, B], withOrdinal(2)), zstdArchive([A, B], frames, withOrdinal(2))]) {
      const archive = await openBytes(bytes);
      const error = await kpackError(
        async () => await archive.readKernel("a.so#0", "gfx942"),
        "ORDINAL_OUT_OF_RANGE",
        /^ordinal of a\.so#0 gfx942$/,
      );
      assert.equal(error.expected, "0 to 1");
      assert.equal(error.found, 2);
    }
  });

  for (const offset of [0, 8, 15]) {
    it(`a kernel inside the header, at byte ${offset}`, async () => {
      const blobs = [map(["offset", offset], ["size", 16])];
      await readFails(noneArchive([A], { toc: [["blobs", blobs]] }), "OVERLAP", /^blobs\[0\]$/);
    });
  }

  it("a zstd area inside the header", async () => {
    await openFails(zstdArchive([A], [frame(A)], { toc: [["zstd_offset", 15]] }), "OVERLAP", /^zstd_offset/);
  });

  it("kernels that reach into the TOC or past the end", async () => {
    const blobs = (size: number): ArchiveChanges => ({
      toc: [["blobs", [map(["offset", 64], ["size", size])]]],
    });
    await readFails(noneArchive([A], blobs(A.length + 1)), "OVERLAP", /^blobs\[0\]$/);
    await readFails(noneArchive([A], blobs(5 * 2 ** 30)), "OUT_OF_BOUNDS", /^blobs\[0\]$/);
    const size = zstdArchive([A], [frame(A)], { toc: [["zstd_size", frame(A).length + 9]] });
    await openFails(size, "OVERLAP", /zstd_size$/);
    const huge = zstdArchive([A], [frame(A)], { toc: [["zstd_size", 5 * 2 ** 30]] });
    await openFails(huge, "OUT_OF_BOUNDS", /zstd_size$/);
  });

  it("equal keys in the TOC, a binary, an entry or a blob, by name", async () => {
    const target = map(["gfx942", entryOf(0, A.length)]);
    const twice = map(["a.so#0", target], ["a.so#0", target]);
    await openFails(noneArchive([A], { entries: twice }), "DUPLICATE_KEY", /^toc\["a\.so#0"\]$/);
    const twoTargets = map(["a.so#0", map(...target.pairs, ...target.pairs)]);
    await openFails(noneArchive([A], { entries: twoTargets }), "DUPLICATE_KEY", /\["a\.so#0"\]\.gfx942$/);
    for (const key of ["type", "ordinal", "original_size", "metadata"]) {
      const entry = map(
        ["type", "hsaco"],
        ["ordinal", 0],
        ["original_size", 700],
        ["metadata", map()],
        [key, key === "type" ? "hsaco" : key === "metadata" ? map() : 0],
      );
      const entries = map(["a.so#0", map(["gfx942", entry])]);
      await openFails(noneArchive([A], { entries }), "DUPLICATE_KEY", new RegExp(`gfx942\\.${key}$`));
    }
    const blobs = [map(["offset", 64], ["size", 1], ["offset", 64])];
    await openFails(noneArchive([A], { toc: [["blobs", blobs]] }), "DUPLICATE_KEY", /^blobs\[0\]\.offset$/);
    const pairs = [["a", 1] as const, ["toc", map()] as const, ["a", 2] as const];
    await openFails(buildArchive({ toc: map(...pairs) }), "DUPLICATE_KEY", /^a$/);
  });

  it("gfx_arches that is text, or holds anything else", async () => {
    await openFails(noneArchive([A], { toc: [["gfx_arches", "gfx942"]] }), "WRONG_TYPE", /^gfx_arches$/);
    await openFails(noneArchive([A], { toc: [["gfx_arches", ["a", 1]]] }), "WRONG_TYPE", /^gfx_arches\[1\]$/);
  });

  it("zstd, and an original_size that is not what the frame holds", async () => {
    for (const size of [0, A.length - 1, A.length + 1, 2 ** 50])
      for (const flag of [0, 1]) {
        const entries = map(["a.so#0", map(["gfx942", entryOf(0, size)])]);
        const stored = frame(A, { [constants.ZSTD_c_contentSizeFlag]: flag });
        const archive = await openBytes(zstdArchive([A], [stored], { entries }));
        const error = await kpackError(async () => await archive.readKernel("a.so#0", "gfx942"));
        const isLimit = flag === 0 && size === 2 ** 50;
        assert.equal(error.code, isLimit ? "LIMIT_EXCEEDED" : "SIZE_MISMATCH", `${size} ${flag}`);
      }
  });

  it("a frame that reaches past the area, also by 32-bit overflow", async () => {
    for (const size of ["ffffffff", "00100000"]) {
      const bytes = zstdArchive([A], [frame(A)]);
      bytes.set(hex(size), 68);
      await readFails(bytes, "OUT_OF_BOUNDS", /^size of frame 0$/);
    }
  });

  it("a wrong content checksum", async () => {
    const stored = frame(A, { [constants.ZSTD_c_checksumFlag]: 1 });
    stored[stored.length - 1] = (stored.at(-1) ?? 0) ^ 1;
    await readFails(zstdArchive([A], [stored]), "CHECKSUM_MISMATCH", /^frame 0 \(a\.so#0 gfx942\)$/);
  });

  it("bytes or a second frame after the frame", async () => {
    for (const more of [Uint8Array.of(0), frame(B)])
      await readFails(zstdArchive([A], [concat(frame(A), more)]), "DECOMPRESSION_FAILED", /^frame 0/);
  });

  it("names as MessagePack bin", async () => {
    const bin = (text: string): RawBytes =>
      new RawBytes(concat(Uint8Array.of(0xc4, text.length), new TextEncoder().encode(text)));
    const target = map(["gfx942", entryOf(0, A.length)]);
    await openFails(
      noneArchive([A], { entries: map([bin("a.so#0"), target]) }),
      "WRONG_TYPE",
      /binary key in toc/,
    );
    const targetName = map(["a.so#0", map([bin("gfx942"), entryOf(0, 1)])]);
    await openFails(noneArchive([A], { entries: targetName }), "WRONG_TYPE", /toc\["a\.so#0"\]/);
    const key = map(["a.so#0", map(["gfx942", map([bin("ordinal"), 0])])]);
    await openFails(noneArchive([A], { entries: key }), "WRONG_TYPE", /key of an entry/);
    await openFails(buildArchive({ toc: map([bin("toc"), map()]) }), "WRONG_TYPE", /key of the TOC/);
  });

  it("a TOC that claims 2^32 elements, in every place that has a count", async () => {
    const bomb = (tag: string): RawBytes => raw(`${tag}ffffffff`);
    const cases: readonly (readonly [Uint8Array, RegExp])[] = [
      [buildArchive({ toc: bomb("df") }), /^TOC$/],
      [noneArchive([A], { entries: bomb("df") }), /^toc$/],
      [noneArchive([A], { entries: map(["a.so#0", bomb("df")]) }), /toc/],
      [noneArchive([A], { entries: map(["a.so#0", map(["gfx942", bomb("df")])]) }), /toc/],
      [noneArchive([A], { toc: [["blobs", bomb("dd")]] }), /^blobs$/],
      [noneArchive([A], { toc: [["blobs", [bomb("df")]]] }), /^blobs$/],
      [noneArchive([A], { toc: [["gfx_arches", bomb("dd")]] }), /^gfx_arches$/],
      [noneArchive([A], { toc: [["other", [[map(["x", bomb("dd")])]]]] }), /^other$/],
    ];
    const before = process.memoryUsage.rss();
    for (const [bytes, field] of cases) await openFails(bytes, "COUNT_TOO_LARGE", field);
    assert.ok(process.memoryUsage.rss() - before < 64 * 1024 * 1024);
  });

  it("a TOC that nests 100,000 deep", async () => {
    const deep = new RawBytes(concat(new Uint8Array(100_000).fill(0x91), pack(0)));
    await openFails(noneArchive([A], { toc: [["other", deep]] }), "MALFORMED_MSGPACK", /^other$/);
    const entry = entryOf(0, A.length, [["metadata", deep]]);
    const entries = map(["a.so#0", map(["gfx942", entry])]);
    await openFails(noneArchive([A], { entries }), "MALFORMED_MSGPACK", /^metadata$/);
  });

  it("control characters of a name do not reach the terminal through a message", async () => {
    const key = "a\u001b[31m\u202e\n.so#0";
    const entries = map([key, map(["gfx942\u0007", entryOf(-1, 1)])]);
    const error = await kpackError(
      async () => await openBytes(noneArchive([A], { entries })),
      "WRONG_TYPE",
      /ordinal$/,
    );
    // biome-ignore lint: control characters are the point
    assert.doesNotMatch(error.message, /[\u0000-\u001f\u202e]/);
  });
});
