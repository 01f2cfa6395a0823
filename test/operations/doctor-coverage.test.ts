import assert from "node:assert/strict";
import { test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import type { Wrapper } from "../../src/host/wrappers.ts";
import type { ArchiveSearch } from "../../src/loader/archive-search.ts";
import { diagnose } from "../../src/operations/doctor/doctor.node.ts";
import type { DoctorReport } from "../../src/operations/doctor/doctor-report.ts";
import { coverageFindings } from "../../src/operations/doctor/pairing-findings.ts";
import { resolveBinary } from "../../src/operations/resolve.node.ts";
import { buildBundle } from "../bundle/bundle-builder.ts";
import { entryOf, zstdArchive } from "../support/archive-builder.ts";
import { buildHost, type HostToBuild } from "../support/host-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

/** Which wrappers get a kernel, and what is said of those that do not. */

const NAME = "lib/liba.so";
const HOST: HostToBuild = { kernelName: NAME, searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 2 };

function codesOf({ findings }: DoctorReport): readonly string[] {
  return findings.map(({ code }) => code);
}

/** The host with the pointer of one wrapper set to 0. */
function withLostPointer(host: HostToBuild, position: number): Uint8Array {
  const bytes = buildHost(host);
  const first = Buffer.from(bytes.buffer).indexOf("HIPK");
  bytes.fill(0, first + position * 24 + 8, first + position * 24 + 16);
  return bytes;
}

for (const [held, name] of [
  ["gfx1100", "g_gfx110X.kpack"],
  ["gfx90a:xnack-", "g_gfx90a_xnack-.kpack"],
  ["gfx942", "g_mi300.kpack"],
] as const) {
  test(`${name} with kernels for ${held} is not looked for: an error, also without --isa`, async () => {
    using tree = new TemporaryTree();
    tree.write(NAME, buildHost(HOST));
    tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: keys(NAME, 2) } }));
    tree.write(`.kpack/${name}`, await archiveBytes({ targets: { [held]: keys(NAME, 2) } }));
    for (const isas of [[], [held]]) {
      const report = await diagnose([tree.path], { isas });
      assert.deepEqual(codesOf(report), ["KP312"]);
      const [finding] = report.findings;
      assert.match(finding?.evidence[0] ?? "", new RegExp(`^for ${held}: .*ARCHIVE_NOT_FOUND \\(13\\)`));
      assert.ok(finding?.remedy.includes(`${tree.path}/.kpack/g_${held}.kpack`), finding?.remedy);
    }
  });
}

test("a target whose archive gfx_arches does not list gets no kernel", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  const content = { targets: { gfx906: keys(NAME, 2), gfx1200: keys(NAME, 2) }, listed: ["gfx906"] };
  tree.write(".kpack/g_gfx906.kpack", await archiveBytes(content));
  tree.link(".kpack/g_gfx1200.kpack", "g_gfx906.kpack");
  const report = await diagnose([tree.path]);
  assert.deepEqual(codesOf(report), ["KP305", "KP312"]);
});

test("a group whose name begins with another's is another group", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  const other = {
    kernelName: "lib/libb.so",
    searchPaths: ["../.kpack/g_extra_@GFXARCH@.kpack"],
    wrappers: 2,
  };
  const archive = await archiveBytes({ targets: { gfx1100: keys("lib/libb.so", 2) } });
  tree.write(".kpack/g_extra_gfx1100.kpack", archive);
  const alone = await diagnose([tree.path]);
  assert.deepEqual(codesOf(alone), ["KP303", "KP304"]);
  assert.match(alone.findings[0]?.remedy ?? "", /^Copy the folder/);
  tree.write("lib/libb.so", buildHost(other));
  const report = await diagnose([tree.path]);
  assert.deepEqual(codesOf(report), ["KP303"]);
  assert.deepEqual(report.findings[0]?.files, [tree.at(NAME)]);
  assert.deepEqual(
    report.binaries.map(({ archives }) => archives.length),
    [0, 1],
  );
});

/** Kernels for gfx942 as small frames, the last of which says that it is larger than the file. */
function withBadFrame(count: number, frame: Uint8Array): Uint8Array {
  const kernel = codeObject("gfx942", 0);
  const entries = map(
    ...keys(NAME, 2).map((key, index): [string, unknown] => [
      key,
      map(["gfx942", entryOf(index, kernel.length)]),
    ]),
  );
  const bytes = zstdArchive(
    [kernel],
    Array.from({ length: count }, () => frame),
    { entries },
  );
  const last = 64 + 4 + (count - 1) * (4 + frame.length);
  new DataView(bytes.buffer).setUint32(last, 0x7fffffff, true);
  return bytes;
}

test("an archive that the runtime refuses to open gives no kernels", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  tree.write(
    ".kpack/g_gfx942.kpack",
    withBadFrame(40, new Uint8Array(zstdCompressSync(codeObject("gfx942", 0)))),
  );
  const report = await diagnose([tree.path], { isas: ["gfx942"] });
  assert.deepEqual(codesOf(report), ["KP301", "KP312"]);
  assert.match(report.findings[0]?.evidence[0] ?? "", /size of frame 39/);
  assert.deepEqual(
    report.verdicts.map(({ loads, found }) => [loads, found]),
    [["no", 0]],
  );
  const { wrappers } = await resolveBinary(tree.at(NAME), { isas: ["gfx942"] });
  assert.deepEqual(
    wrappers.map(({ answer }) => answer.failure?.status.number),
    [13, 13],
  );
});

test("a large archive of small frames is not walked, which the report says", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  const kernel = codeObject("gfx942", 0);
  const frame = new Uint8Array(8000);
  frame.set(zstdCompressSync(kernel));
  tree.write(".kpack/g_gfx942.kpack", withBadFrame(5000, frame));
  const report = await diagnose([tree.path]);
  assert.deepEqual(
    report.archives.map(({ walked }) => walked),
    [false],
  );
  assert.ok(report.bytesRead < report.totalSize / 20, `${report.bytesRead} of ${report.totalSize}`);
  assert.ok(!codesOf(report).includes("KP301"));
  const deep = await diagnose([tree.path], { deep: true });
  assert.deepEqual(
    deep.archives.map(({ walked }) => walked),
    [true],
  );
  assert.deepEqual(codesOf(deep), ["KP301"]);
});

test("a wrapper that has lost its metadata gets no kernel", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, withLostPointer(HOST, 1));
  tree.write(".kpack/g_gfx1100.kpack", await archiveBytes({ targets: { gfx1100: keys(NAME, 2) } }));
  const report = await diagnose([tree.path], { isas: ["gfx1100"] });
  assert.deepEqual(codesOf(report), ["KP104"]);
  assert.deepEqual(report.findings[0]?.evidence, ["wrapper[1].pointer"]);
  const [row] = report.coverage;
  assert.deepEqual([row?.missing, row?.missingBefore], [[1], [1]]);
  assert.deepEqual(row?.archives, [{ path: tree.at(".kpack/g_gfx1100.kpack"), wrappers: [0] }]);
  const [verdict] = report.verdicts;
  assert.deepEqual([verdict?.loads, verdict?.found, verdict?.foundBefore], ["partly", 1, 1]);
});

test("a kernel that is known to be damaged serves no wrapper", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  const bytes = await archiveBytes({ targets: { gfx942: keys(NAME, 2) } });
  bytes[500] = (bytes[500] ?? 0) ^ 0xff; // in the first frame
  const archive = tree.write(".kpack/g_gfx942.kpack", bytes);
  const isas = ["gfx942"];
  const report = await diagnose([tree.path], { isas, deep: true });
  assert.deepEqual(codesOf(report), ["KP313", "KP202"]);
  const [row] = report.coverage;
  assert.deepEqual([row?.missing, row?.missingBefore], [[0], [0]]);
  assert.deepEqual(row?.archives, [{ path: archive, wrappers: [1] }]);
  const [verdict] = report.verdicts;
  assert.deepEqual([verdict?.loads, verdict?.found, verdict?.foundBefore], ["partly", 1, 1]);
  const { wrappers } = await resolveBinary(tree.at(NAME), { isas });
  assert.deepEqual(
    wrappers.map(({ answer }) => answer.failure?.status.number),
    [6, undefined],
  );
});

test("names of generic targets and of their processors fit each other", async () => {
  using tree = new TemporaryTree();
  tree.write(NAME, buildHost(HOST));
  const generic = await archiveBytes({ targets: { "gfx12-generic": keys(NAME, 2) } });
  tree.write(".kpack/g_gfx1200.kpack", generic);
  tree.write(
    ".kpack/g_gfx12-generic.kpack",
    await archiveBytes({ targets: { "gfx12-generic": keys(NAME, 2), gfx1201: keys(NAME, 2) } }),
  );
  const report = await diagnose([tree.path], { isas: ["gfx1200", "gfx1201"] });
  assert.deepEqual(codesOf(report), []);
});

test("wrappers that fail for different causes are not said to fail for one", async () => {
  using tree = new TemporaryTree();
  const bytes = await archiveBytes({ targets: { gfx942: keys(NAME, 2) } });
  bytes[500] = (bytes[500] ?? 0) ^ 0xff; // in the first frame
  tree.write(".kpack/g_gfx942.kpack", bytes);
  tree.write(NAME, buildHost({ ...HOST, wrappers: 3 }));
  const { findings } = await diagnose([tree.path], { isas: ["gfx942"], deep: true });
  assert.deepEqual(findings.find(({ code }) => code === "KP201")?.severity, "error");
  assert.deepEqual(findings.find(({ code }) => code === "KP202")?.evidence, [
    "for gfx942: 1 of 3 wrappers get KPACK_ERROR_DECOMPRESSION_FAILED (6), at 0",
  ]);
  tree.write(NAME, buildHost({ ...HOST, wrappers: [0, 5] }));
  const empty = await diagnose([tree.path], { isas: ["gfx942"], deep: true });
  assert.match(
    empty.findings.find(({ code }) => code === "KP312")?.evidence[0] ?? "",
    /^for gfx942: no wrapper gets a kernel; the first gets KPACK_ERROR_DECOMPRESSION_FAILED \(6\): /,
  );
});

test("wrappers of a fat binary are judged by their own bundles", async () => {
  using tree = new TemporaryTree();
  const bundle = (...targets: readonly string[]): Uint8Array =>
    buildBundle(
      targets.map((target) => ({ id: `hipv4-amdgcn-amd-amdhsa--${target}`, content: codeObject(target) })),
    );
  const both = bundle("gfx942", "gfx1100");
  const second = Math.ceil(both.length / 4096) * 4096;
  const bundles = new Uint8Array(second + 4096);
  bundles.set(both);
  bundles.set(bundle("gfx1100"), second);
  const host = { wrappers: 2, bundles, bundleOffsets: [0, second], withoutMetadata: true };
  const path = tree.write("lib/f.so", buildHost(host));
  const { verdicts, findings } = await diagnose([tree.path], { isas: ["gfx942", "gfx1100", "gfx906"] });
  assert.deepEqual(
    verdicts.map(({ loads, found, wrappers, lacking }) => [loads, found, wrappers, lacking]),
    [
      ["partly", 1, 2, [path]],
      ["yes", 2, 2, []],
      ["no", 0, 2, [path]],
    ],
  );
  assert.deepEqual(
    findings.map(({ code, severity, files, evidence }) => [code, severity, files, evidence[0]]),
    [
      ["KP312", "error", [path], "for gfx906: 2 of 2 wrappers find nothing in the bundles"],
      ["KP202", "warning", [path], "for gfx942: 1 of 2 wrappers find nothing in the bundles, at 1"],
      ["KP101", "note", [path], "2 wrapper(s), 2 bundle(s) for gfx1100, gfx942"],
    ],
  );
});

test("a fat binary with SPIR-V lacks no GPU", async () => {
  using tree = new TemporaryTree();
  const bundles = buildBundle([{ id: "hip-spirv64-amd-amdhsa--amdgcnspirv", content: codeObject("gfx942") }]);
  const host = { wrappers: 1, bundles, bundleOffsets: [0], withoutMetadata: true };
  tree.write("lib/f.so", buildHost(host));
  const report = await diagnose([tree.path], { isas: ["gfx942"] });
  assert.deepEqual(codesOf(report), ["KP101"]);
});

test("the archive that hides others is the first candidate, not the first that was opened", async () => {
  using tree = new TemporaryTree();
  const searchPaths = ["../.kpack/all.kpack", "../.kpack/g_@GFXARCH@.kpack"];
  tree.write(NAME, buildHost({ ...HOST, searchPaths }));
  tree.write(".kpack/all.kpack", await archiveBytes({ targets: { gfx1100: keys(NAME, 2) } }));
  const variant = { targets: { "gfx90a:xnack-": keys(NAME, 1) } };
  tree.write(".kpack/g_gfx90a:xnack-.kpack", await archiveBytes(variant));
  tree.write(".kpack/g_gfx90a.kpack", await archiveBytes({ targets: { gfx90a: keys(NAME, 2) } }));
  const report = await diagnose([tree.path]);
  assert.deepEqual(codesOf(report), ["KP208"]);
  assert.deepEqual(report.findings[0]?.files, [tree.at(NAME), tree.at(".kpack/g_gfx90a:xnack-.kpack")]);
});

test("the time for holes grows with the number of wrappers, not with its square", () => {
  const count = 200_000;
  const wrappers = Array.from({ length: count }, (_, index): Wrapper => {
    const nothing = { pointsTo: undefined, relocation: undefined, bundleIndex: undefined };
    return { index, magic: "HIPK", fileOffset: 0, address: 0, ...nothing, reserved1: index };
  });
  const host = {
    path: "a.so",
    format: "elf",
    state: "converted",
    wrapperCount: count,
    wrappers,
    lost: new Set<number>(),
    metadata: undefined,
    targets: [],
    wrapperTargets: [],
    findings: [],
  } as const;
  const missing = Array.from({ length: count - 1 }, (_, index) => index + 1);
  const search: ArchiveSearch = {
    behaviour: "current",
    isas: [],
    paths: [],
    archives: [],
    failure: undefined,
  };
  const failure = { status: { name: "KPACK_ERROR_KERNEL_NOT_FOUND", number: 5 }, reason: "" } as const;
  const row = {
    binary: "a.so",
    isa: "gfx906",
    isas: ["gfx906"],
    wrappers: count,
    missing,
    missingBefore: missing,
    endedBefore: false,
    archives: [],
    search,
    failed: { key: "a.so#1", index: 1, candidates: [], kernel: undefined, failure },
    statuses: new Map(wrappers.slice(1).map(({ index }) => [index, failure.status])),
  };
  const indexes = new Set(wrappers.map(({ index }) => index));
  const keysOfBinary = { targets: new Map([["gfx942", indexes]]), withoutIndex: [] };
  const start = performance.now();
  const findings = coverageFindings(
    { host, archives: [], patterns: [], named: [], brokenLinks: [] },
    keysOfBinary,
    [row],
  );
  assert.ok(performance.now() - start < 5000);
  assert.deepEqual(findings[0]?.evidence, [
    "for gfx906: 199999 of 200000 wrappers get KPACK_ERROR_KERNEL_NOT_FOUND (5), at 1–199999",
  ]);
});
