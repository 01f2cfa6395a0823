import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { isKpackError, nodeCodecs, none, zstdPerKernel } from "../../src/node.ts";
import { findingOrThrow } from "../../src/errors/finding.ts";
import { verifyArchive } from "../../src/operations/verify.ts";
import { entryOf, noneArchive, zstdArchive } from "../support/archive-builder.ts";
import { expectedArchives, fixtureBytes } from "../support/archive-fixtures.ts";
import { kernelToWrite, openBytes, sampleKernel, writeToMemory } from "../support/kernels.ts";
import { fixture } from "../support/pack-inputs.ts";
import { concat, map, RawBytes } from "../support/raw-msgpack.ts";

interface Verdict {
  readonly good: boolean;
  readonly strictlyGood: boolean;
  /** `severity CODE`, each once. */
  readonly codes: readonly string[];
  /** Readers that would refuse it; undefined when it cannot even be opened. */
  readonly refusedBy: readonly string[] | undefined;
}

async function verify(bytes: Uint8Array): Promise<Verdict> {
  const judge = (findings: readonly { severity: string; code: string }[]): Omit<Verdict, "refusedBy"> => ({
    good: !findings.some(({ severity }) => severity === "error"),
    strictlyGood: !findings.some(({ severity }) => severity !== "note"),
    codes: [...new Set(findings.map(({ severity, code }) => `${severity} ${code}`))].toSorted(),
  });
  try {
    await using archive = await openBytes(bytes);
    const report = await verifyArchive(archive);
    const refusedBy = report.readers.filter(({ accepts }) => !accepts).map(({ reader }) => reader);
    return { ...judge(report.findings), refusedBy };
  } catch (error) {
    return { ...judge([findingOrThrow(error)]), refusedBy: undefined };
  }
}

/** What EXPECTED.json leaves open (`should`, `none`) and cases.md answers with "read". */
const READ_ALL_THE_SAME: Readonly<Record<string, string>> = {
  format_version_2: "FORMAT_VERSION_FIELD",
  missing_compression_scheme: "MISSING_FIELD",
  missing_gfx_arches: "MISSING_FIELD",
  bomb_window_2GiB: "NO_CONTENT_SIZE",
  zstd_frame_middle_flipped: "NOT_A_CODE_OBJECT",
};

describe("verify on the fixtures", () => {
  for (const [name, { expect, error }] of expectedArchives) {
    const short = name.replace(/^D\/\w+\/(.*)\.kpack$/, "$1");
    const isGood = expect === "ok" || short in READ_ALL_THE_SAME;
    it(`${name} is ${isGood ? "good" : "bad"}`, async () => {
      const verdict = await verify(fixtureBytes(name));
      assert.equal(verdict.good, isGood, verdict.codes.join(", "));
      if (error?.strictness === "must") assert.ok(!verdict.good);
      const warning = READ_ALL_THE_SAME[short];
      if (warning !== undefined)
        assert.ok(verdict.codes.includes(`warning ${warning}`), verdict.codes.join(", "));
    });
  }

  it("oddities are warnings, so that only --strict fails", async () => {
    const oddities: Readonly<Record<string, string>> = {
      "D/odd/arch_not_listed": "TARGET_NOT_LISTED",
      "D/odd/blobs_overlap_each_other": "EXTENTS_OVERLAP",
      "D/odd/gap_before_toc": "UNUSED_BYTES",
      "D/odd/no_original_size": "MISSING_ORIGINAL_SIZE",
      "D/odd/path_traversal": "UNSAFE_PATH",
      "D/odd/trailing_bytes": "TRAILING_BYTES",
      "D/odd/unknown_keys": "UNKNOWN_FIELD",
      "D/odd/unreferenced_blob": "UNREFERENCED_KERNEL",
      "D/odd/zstd_bytes_after_last_frame": "UNUSED_BYTES",
      "D/odd/zstd_no_content_size": "NO_CONTENT_SIZE",
      "D/ok/none_empty": "TARGET_WITHOUT_KERNELS",
      "D/ok/none_zero_byte_kernel": "NOT_A_CODE_OBJECT",
    };
    for (const [name, code] of Object.entries(oddities)) {
      const { good, strictlyGood, codes } = await verify(fixtureBytes(`${name}.kpack`));
      assert.deepEqual(
        [good, strictlyGood, codes.includes(`warning ${code}`)],
        [true, false, true],
        `${name}: ${codes.join()}`,
      );
    }
    for (const name of ["none_kdb", "none_small", "zstd_features", "zstd_level19", "zstd_identical_kernels"])
      assert.ok((await verify(fixtureBytes(`D/ok/${name}.kpack`))).strictlyGood, name);
  });
});

describe("who else would read it", () => {
  const A = sampleKernel(1, 900);
  const frame = new Uint8Array(zstdCompressSync(A));
  const all = ["python", "cpp-2026-02", "cpp-2026-07", "hrx"];
  const cpp = ["cpp-2026-02", "cpp-2026-07"];
  const entries = (originalSize: unknown, more: Parameters<typeof entryOf>[2] = []): unknown =>
    map(["a.so#0", map(["gfx942", entryOf(0, originalSize, more)])]);
  const withoutSize = map(["a.so#0", map(["gfx942", map(["type", "hsaco"], ["ordinal", 0])])]);
  const nested = (depth: number): RawBytes =>
    new RawBytes(concat(new Uint8Array(depth).fill(0x91), Uint8Array.of(0xc0)));
  const big = 257 * 1024 * 1024;
  const cases: readonly (readonly [string, () => Uint8Array, readonly string[] | undefined])[] = [
    ["what ROCm's tool writes: all", () => fixtureBytes("D/ok/zstd_small.kpack"), []],
    [
      "an archive with our extra fields: all",
      () =>
        noneArchive([A], {
          toc: [
            ["kernel_hashes", new Uint8Array(8)],
            ["kernel_hash_algorithm", "other"],
          ],
        }),
      [],
    ],
    ["bytes after the TOC: not Python", () => fixtureBytes("D/odd/trailing_bytes.kpack"), ["python"]],
    [
      "a frame without content size: not Python",
      () => fixtureBytes("D/odd/zstd_no_content_size.kpack"),
      ["python"],
    ],
    [
      "a skippable frame: not Python",
      () => zstdArchive([A], [concat(Uint8Array.of(0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9), frame)]),
      ["python"],
    ],
    [
      "no gfx_arches: not Python, and the runtime finds nothing",
      () => fixtureBytes("D/bad/missing_gfx_arches.kpack"),
      ["python", ...cpp],
    ],
    ...["group_name", "gfx_arch_family", "format_version"].map(
      (key) =>
        [
          `no ${key}: not Python`,
          (): Uint8Array => noneArchive([A], { toc: [[key, undefined]] }),
          ["python"],
        ] as const,
    ),
    ["no compression_scheme: all", () => noneArchive([A], { toc: [["compression_scheme", undefined]] }), []],
    ["0 bytes, none: not HRX", () => fixtureBytes("D/ok/none_zero_byte_kernel.kpack"), ["hrx"]],
    ["0 bytes, zstd: not HRX", () => fixtureBytes("D/ok/zstd_zero_byte_kernel.kpack"), ["hrx"]],
    [
      "no original_size, zstd: not the runtime, not HRX",
      () => zstdArchive([A], [frame], { entries: withoutSize }),
      [...cpp, "hrx"],
    ],
    ["no original_size, none: all", () => noneArchive([A], { entries: withoutSize }), []],
    ["another original_size, none: all read it", () => noneArchive([A], { entries: entries(5) }), []],
    [
      "another original_size, zstd: Python alone reads it",
      () => zstdArchive([A], [frame], { entries: entries(901) }),
      [...cpp, "hrx"],
    ],
    ["a TOC 32 deep: all", () => noneArchive([A], { toc: [["x", nested(31)]] }), []],
    ["a TOC 33 deep: not HRX", () => noneArchive([A], { toc: [["x", nested(32)]] }), ["hrx"]],
    [
      "a kernel over 256 MiB: not HRX",
      () => {
        const zeros = new Uint8Array(big);
        return zstdArchive([zeros], [new Uint8Array(zstdCompressSync(zeros, { params: { 100: 1 } }))]);
      },
      ["hrx"],
    ],
    ["a damaged frame: none of them", () => fixtureBytes("D/bad/zstd_frame_truncated.kpack"), all],
    ["a kernel past the end: none of them", () => fixtureBytes("D/bad/blob_past_eof.kpack"), all],
    [
      "a kernel in the header: HRX sees that it is wrong",
      () => fixtureBytes("D/bad/blob_over_header.kpack"),
      ["hrx"],
    ],
    ["a kernel that reaches into the TOC: they read it", () => fixtureBytes("D/bad/blob_over_toc.kpack"), []],
    ["an unknown scheme: it cannot be opened", () => fixtureBytes("D/bad/scheme_unknown.kpack"), undefined],
  ];
  for (const [title, bytes, refusedBy] of cases) {
    it(title, async () => {
      assert.deepEqual((await verify(bytes())).refusedBy, refusedBy);
    });
  }

  it("says why", async () => {
    await using archive = await openBytes(fixtureBytes("D/odd/trailing_bytes.kpack"));
    const { readers } = await verifyArchive(archive);
    assert.deepEqual(
      readers.map(({ reader, accepts, reasons }) => [reader, accepts, reasons]),
      [
        ["python", false, ["bytes follow the TOC"]],
        ["cpp-2026-02", true, []],
        ["cpp-2026-07", true, []],
        ["hrx", true, []],
      ],
    );
  });
});

describe("what verify compares", () => {
  it("each code object with the target that it is listed under", async () => {
    const code = await fixture("A/hsaco/vadd_gfx942.hsaco");
    const xnack = await fixture("A/hsaco/vadd_gfx90a-xnack-.hsaco");
    const cases: readonly (readonly [Uint8Array, string, boolean])[] = [
      [code, "gfx942", true],
      [code, "gfx942:xnack-", true],
      [code, "gfx1100", false],
      [code, "gfx9-4-generic", false],
      [xnack, "gfx90a:xnack-", true],
      [xnack, "gfx90a:sramecc+:xnack-", true],
      [xnack, "gfx90a", false],
      [xnack, "gfx90a:xnack+", false],
    ];
    for (const [bytes, target, isGood] of cases) {
      const archive = (
        await writeToMemory([kernelToWrite(bytes, { binaryKey: "a#0", target })], { scheme: none })
      ).bytes;
      const { good, codes } = await verify(archive);
      assert.equal(good, isGood, target);
      assert.deepEqual(codes, isGood ? [] : ["error TARGET_MISMATCH"], target);
    }
  });

  it("an entry that shares its kernel with one of another target", async () => {
    const code = await fixture("A/hsaco/vadd_gfx942.hsaco");
    const entries = [
      { binaryKey: "a#0", target: "gfx942" },
      { binaryKey: "a#0", target: "gfx1100" },
    ];
    const { bytes } = await writeToMemory([kernelToWrite(code, ...entries)], { scheme: none });
    await using archive = await openBytes(bytes);
    const report = await verifyArchive(archive);
    assert.deepEqual(
      report.findings.map(({ code: name, field }) => [name, field]),
      [["TARGET_MISMATCH", "a#0 gfx1100"]],
    );
    assert.deepEqual([report.entries, report.storedKernels, report.hashesChecked], [2, 1, 1]);
  });

  it("every byte of a kernel with its hash, in every scheme", async () => {
    const code = await fixture("A/hsaco/vadd_gfx942.hsaco");
    const kernels = [kernelToWrite(code, { binaryKey: "a#0", target: "gfx942" })];
    for (const at of [70, 500, 64 + code.length - 1]) {
      const { bytes } = await writeToMemory(kernels, { scheme: none });
      bytes[at] = (bytes[at] ?? 0) ^ 4;
      const { good, codes } = await verify(bytes);
      assert.ok(!good && codes.includes("error HASH_MISMATCH"), codes.join());
    }
    const { bytes } = await writeToMemory(kernels, { scheme: zstdPerKernel({ codecs: nodeCodecs }) });
    bytes[200] = (bytes[200] ?? 0) ^ 4;
    assert.ok(!(await verify(bytes)).good);
  });

  it("frame offsets of ours with the frames", async () => {
    const { bytes } = await writeToMemory(
      [1, 2, 3].map((seed) =>
        kernelToWrite(sampleKernel(seed, 400), { binaryKey: `k${seed}`, target: "gfx942" }),
      ),
      { scheme: zstdPerKernel({ codecs: nodeCodecs }) },
    );
    assert.ok((await verify(bytes)).good);
    const at = Buffer.from(bytes).indexOf("zstd_frame_offsets") + "zstd_frame_offsets".length + 2;
    for (const entry of [0, 8, 16]) {
      const damaged = bytes.slice();
      damaged[at + entry] = (damaged[at + entry] ?? 0) ^ 1;
      assert.ok(!(await verify(damaged)).good, `offset ${entry / 8}`);
    }
  });

  it("stops when it is aborted, and does not call that a finding", async () => {
    await using archive = await openBytes(fixtureBytes("D/ok/zstd_kdb.kpack"));
    const abort = new AbortController();
    const options = { signal: abort.signal, onProgress: () => abort.abort(new Error("enough")) };
    await assert.rejects(
      verifyArchive(archive, options),
      (error) => !isKpackError(error) && /enough/.test(String(error)),
    );
  });
});
