import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { memorySource, nodeCodecs, type VerifyReport, zstdPerKernel } from "../../src/node.ts";
import { readNotes } from "../../src/code-object/notes.ts";
import { verifyArchive } from "../../src/operations/verify.ts";
import { entryOf, noneArchive, u32, zstdArchive } from "../support/archive-builder.ts";
import { kpackError } from "../support/expect-error.ts";
import { kernelToWrite, openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";
import { concat, map, pack, raw, RawBytes } from "../support/raw-msgpack.ts";

const A = sampleKernel(1, 900);
const BOUND = { timeout: 20_000 };

async function verify(bytes: Uint8Array): Promise<VerifyReport> {
  await using archive = await openBytes(bytes);
  return await verifyArchive(archive);
}

function codes(report: VerifyReport): readonly string[] {
  return [...new Set(report.findings.map(({ severity, code }) => `${severity} ${code}`))].toSorted();
}

function refusedBy(report: VerifyReport): readonly string[] {
  return report.readers.filter(({ accepts }) => !accepts).map(({ reader }) => reader);
}

describe("counts of a file", () => {
  it("300,000 entries of one kernel, each with findings", BOUND, async () => {
    const count = 300_000;
    const entry = pack(map(["gfx942", map(["ordinal", 0])]));
    const parts: Uint8Array[] = [Uint8Array.of(0xdf, 0, count >> 16, (count >> 8) & 0xff, count & 0xff)];
    for (let index = 0; index < count; index++) parts.push(pack(`k${index}`), entry);
    const report = await verify(
      noneArchive([A], { entries: new RawBytes(new Uint8Array(Buffer.concat(parts))) }),
    );
    assert.equal(report.entries, count);
    assert.equal(report.findings.filter(({ code }) => code === "MISSING_ORIGINAL_SIZE").length, count);
  });

  it("20 million kernels in a sparse file are refused, and not walked", BOUND, async () => {
    const count = 20_000_000;
    const area = new Uint8Array(4 + 4 * count);
    new DataView(area.buffer).setUint32(0, count, true);
    const fields = [
      ["zstd_offset", 64],
      ["zstd_size", area.length],
    ] as const;
    const bytes = zstdArchive([A], [], { toc: fields, file: { area } });
    await using archive = await openBytes(bytes);
    const before = process.memoryUsage().rss;
    const error = await kpackError(
      async () => await verifyArchive(archive),
      "LIMIT_EXCEEDED",
      /^number of kernels$/,
    );
    assert.equal(error.found, count);
    assert.ok(process.memoryUsage().rss - before < 200e6);
  });

  it("limits.kernelCount holds for stored kernels and for entries", async () => {
    const kernels = [A, sampleKernel(2, 50), sampleKernel(3, 60)];
    const oneEntry = map(["a.so#0", map(["gfx942", entryOf(1, 50)])]);
    const threeEntries = map(
      ...["a", "b", "c"].map((key) => [key, map(["gfx942", entryOf(0, 900)])] as const),
    );
    for (const [bytes, most] of [
      [noneArchive(kernels), 3],
      [noneArchive(kernels, { entries: oneEntry }), 3],
      [noneArchive([A], { entries: threeEntries }), 3],
    ] as const) {
      await using archive = await openBytes(bytes);
      await verifyArchive(archive, { limits: { kernelCount: most } });
      await kpackError(
        async () => await verifyArchive(archive, { limits: { kernelCount: most - 1 } }),
        "LIMIT_EXCEEDED",
      );
    }
  });

  it("100,000 kernels of no entry are gone through one by one", BOUND, async () => {
    // Sizes of 0, which are no frames, stand behind the only one.
    const frame = new Uint8Array(zstdCompressSync(A));
    const area = concat(u32(100_001), u32(frame.length), frame, new Uint8Array(400_000));
    const bytes = zstdArchive([A], [], { toc: [["zstd_size", area.length]], file: { area } });
    await using archive = await openBytes(bytes);
    const progress: number[] = [];
    const report = await verifyArchive(archive, { onProgress: ({ total }) => progress.push(total ?? 0) });
    const unreferenced = report.findings.filter(({ code }) => code === "UNREFERENCED_KERNEL");
    assert.match(unreferenced[0]?.message ?? "", /^100000 stored/);
    assert.deepEqual([progress.length, progress[0], unreferenced.length], [100_001, 100_001, 1]);
  });

  it("one long key with many targets does not stand in a finding for each", BOUND, async () => {
    const key = `../${"x".repeat(200_000)}`;
    const targets = Array.from({ length: 20_000 }, (_, index) => [`t${index}`, entryOf(0, 1)] as const);
    const report = await verify(noneArchive([A], { entries: map([key, map(...targets)]) }));
    assert.ok(report.findings.length >= 60_000);
    const longest = report.findings.reduce(
      (most, { message, field = "" }) => Math.max(most, message.length, field.length),
      0,
    );
    assert.ok(longest < 2000, String(longest));
  });

  it("65,536 targets, none of them listed", BOUND, async () => {
    const names = (letter: string): readonly string[] =>
      Array.from({ length: 65_536 }, (_, index) => `${letter}${index}`);
    const entry = pack(entryOf(0, 900));
    const parts = names("a").flatMap((name) => [pack(name), entry]);
    const targets = new Uint8Array(Buffer.concat([Uint8Array.of(0xdf, 0, 1, 0, 0), ...parts]));
    const entries = map(["a", new RawBytes(targets)]);
    const arches = new RawBytes(
      new Uint8Array(Buffer.concat([Uint8Array.of(0xdd, 0, 1, 0, 0), ...names("b").map(pack)])),
    );
    const report = await verify(noneArchive([A], { entries, toc: [["gfx_arches", arches]] }));
    assert.deepEqual(refusedBy(report), ["cpp-2026-02", "cpp-2026-07"]);
  });

  it("300,000 notes of a code object", BOUND, async () => {
    const source = memorySource(new Uint8Array(300_000 * 12), "notes");
    const note = { type: 7, offset: 0, size: source.size, alignment: 4 };
    const elf = { segments: [], sections: [note] } as unknown as Parameters<typeof readNotes>[1];
    assert.equal((await readNotes(source, elf)).length, 300_000);
  });
});

describe("text that is not valid UTF-8", () => {
  const bad = raw("a2 c328");
  const entries = map(
    ["a", map(["gfx942", entryOf(0, 900, [["metadata", bad]])])],
    ["b", map(["gfx942", entryOf(0, 900, [["metadata", map(["deep", [1, bad]])]])])],
    ["c", map(["gfx942", entryOf(0, 900, [["metadata", "fine"]])])],
    ["d", map(["gfx942", entryOf(0, 900, [["other", map([bad, 1])]])])],
  );

  it("is a finding for each entry, and the rest of the report stands", async () => {
    const bytes = noneArchive([A], { entries });
    const report = await verify(bytes);
    const found = report.findings.filter(({ code }) => code === "MALFORMED_TEXT");
    assert.deepEqual(
      found.map(({ severity, field }) => `${severity} ${field}`),
      ["error metadata of a gfx942", "error metadata of b gfx942", "error other of d gfx942"],
    );
    for (const { offset = 0 } of found) assert.equal(Buffer.from(bytes).readUint16BE(offset + 1), 0xc328);
    assert.ok(codes(report).includes("warning UNKNOWN_FIELD"));
    assert.deepEqual([report.entries, report.storedKernels, report.decodedSize], [4, 1, 900]);
    assert.deepEqual(refusedBy(report), ["python"]);
  });
});

describe("which damage other readers meet", () => {
  const cpp = ["cpp-2026-02", "cpp-2026-07"];
  const frame = new Uint8Array(zstdCompressSync(A));

  it("none in a field of ours", async () => {
    const { bytes } = await writeToMemory(
      [1, 2, 3].map((seed) =>
        kernelToWrite(sampleKernel(seed, 400), { binaryKey: `k${seed}`, target: "gfx942" }),
      ),
      { scheme: zstdPerKernel({ codecs: nodeCodecs }) },
    );
    const at = Buffer.from(bytes).indexOf("zstd_frame_offsets") + "zstd_frame_offsets".length + 2;
    for (const entry of [0, 8, 16]) {
      const damaged = bytes.slice();
      damaged[at + entry] = (damaged[at + entry] ?? 0) ^ 1;
      const report = await verify(damaged);
      assert.ok(codes(report).some((code) => code.startsWith("error")));
      assert.deepEqual(refusedBy(report), []);
    }
    const short = zstdArchive([A], [frame], { toc: [["zstd_frame_offsets", new Uint8Array(16)]] });
    assert.deepEqual(refusedBy(await verify(short)), []);
  });

  it("a wrong original_size of the second entry of a kernel: Python compares none", async () => {
    const entries = map(["a", map(["gfx942", entryOf(0, 900)])], ["b", map(["gfx942", entryOf(0, 901)])]);
    const zstd = await verify(zstdArchive([A], [frame], { entries }));
    assert.ok(codes(zstd).includes("error SIZE_MISMATCH"));
    assert.deepEqual(refusedBy(zstd), [...cpp, "hrx"]);
    assert.deepEqual(refusedBy(await verify(noneArchive([A], { entries }))), []);
  });

  it("gfx_arches that list none of the targets: the runtime finds nothing", async () => {
    const reasons = async (arches: readonly string[]): Promise<readonly string[]> => {
      const { readers } = await verify(noneArchive([A], { toc: [["gfx_arches", arches]] }));
      return readers.flatMap((reader) => reader.reasons.map((reason) => `${reader.reader}: ${reason}`));
    };
    const none = "gfx_arches lists none of the targets that its kernels are for, so it finds no kernel";
    assert.deepEqual(
      await reasons(["gfx1100", "gfx90a"]),
      cpp.map((reader) => `${reader}: ${none}`),
    );
    assert.deepEqual(await reasons(["gfx1100", "gfx942"]), []);
    assert.match((await reasons([]))[0] ?? "", /lists no target/);
  });
});
