import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoaderBehaviour } from "../../src/loader/archive-search.ts";
import { parseLoaderEnvironment } from "../../src/loader/environment.ts";
import { formatStatus } from "../../src/loader/loader-status.ts";
import { type Resolution, resolveKernel } from "../../src/loader/resolve.ts";
import { NodeLoaderFileSystem } from "../../src/loader/resolve.node.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { asRuntimeReads } from "../../src/loader/runtime-toc.ts";
import { noneArchive, type TocPairs } from "../support/archive-builder.ts";
import { concat, hex, map, pack, raw, RawMap } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject, TemporaryTree } from "../support/trees.ts";

/** Archives that our reader refuses, and runtimes do not, or each in its own way. */

const FIRST = codeObject("gfx942", 1, 300);
const SECOND = codeObject("gfx942", 2, 400);
const entry = (ordinal: unknown): RawMap => map(["ordinal", ordinal], ["original_size", 1]);

async function ask(
  files: readonly Uint8Array[],
  behaviour: LoaderBehaviour,
  isa = "gfx942",
): Promise<Resolution> {
  using tree = new TemporaryTree();
  await using fileSystem = new NodeLoaderFileSystem();
  const searchPaths = files.map((bytes, index) => tree.write(`${index}.kpack`, bytes));
  const request = {
    binaryPath: tree.at("lib/a.so"),
    metadata: { kernelName: "a.so", searchPaths },
    isas: [isa],
    index: 0,
    behaviour,
    environment: parseLoaderEnvironment({}, "posix"),
    workingFolder: "/w",
  };
  return await resolveKernel(request, fileSystem);
}

/** The ordinal that is found, or the status; by loader. */
async function outcomes(...files: readonly Uint8Array[]): Promise<readonly unknown[]> {
  const behaviours = ["before-2026-08", "current", "hrx"] as const;
  const answers = behaviours.map(async (behaviour) => {
    const { answer } = await ask(files, behaviour);
    return answer.kernel?.ordinal ?? (answer.failure && formatStatus(answer.failure.status));
  });
  return await Promise.all(answers);
}

const withToc = (toc: TocPairs, entries: unknown = map(["a.so#0", map(["gfx942", entry(0)])])): Uint8Array =>
  noneArchive([FIRST, SECOND], { entries, toc });

const NOT_FOUND = "KPACK_ERROR_KERNEL_NOT_FOUND (5)";
const NO_ARCHIVE = "KPACK_ERROR_ARCHIVE_NOT_FOUND (13)";

test("a scheme that is no text is opened by ROCm and found empty, and refused by HRX", async () => {
  for (const scheme of [5, null, ["none"], map(["a", 1]), "solid"]) {
    assert.deepEqual(await outcomes(withToc([["compression_scheme", scheme]])), [
      NOT_FOUND,
      NOT_FOUND,
      "KPACK_ERROR_INVALID_FORMAT (3)",
    ]);
  }
});

test("gfx_arches that is a text has no targets for ROCm, and does not matter to HRX", async () => {
  const arches = withToc([["gfx_arches", "gfx942"]]);
  const noTarget = "KPACK_ERROR_ARCH_NOT_FOUND (14)";
  assert.deepEqual(await outcomes(arches), [noTarget, noTarget, 0]);
});

test("of equal keys HRX takes the first, wherever they stand", async () => {
  const twice = (key: string, first: unknown, second: unknown): RawMap =>
    new RawMap([
      [key, first],
      [key, second],
    ]);
  const blob = (offset: number): RawMap => map(["offset", offset], ["size", 300]);
  const cases: readonly Uint8Array[] = [
    withToc([], twice("a.so#0", map(["gfx942", entry(1)]), map(["gfx942", entry(0)]))),
    withToc([], map(["a.so#0", twice("gfx942", entry(1), entry(0))])),
    withToc([], map(["a.so#0", map(["gfx942", twice("ordinal", 1, 0)])])),
    withToc(
      [["blobs", [blob(64), twice("offset", 64, 70), blob(64)]]],
      map(["a.so#0", map(["gfx942", entry(2)])]),
    ),
  ];
  const first = await outcomes(cases[0] ?? FIRST);
  assert.deepEqual(first, [NO_ARCHIVE, NO_ARCHIVE, 1]);
  assert.equal((await outcomes(cases[1] ?? FIRST))[2], 1);
  assert.equal((await outcomes(cases[2] ?? FIRST))[2], 1);
  const { answer } = await ask([cases[0] ?? FIRST], "hrx");
  assert.equal(answer.kernel?.size, 400, "the first one's kernel");
  const { paths } = await ask([cases[0] ?? FIRST], "current");
  assert.match(paths[0]?.reason ?? "", /ROCm's runtime would open it all the same/);
  // The second one's target is not the first one's.
  const other = withToc([], twice("a.so#0", map(["gfx90a", entry(1)]), map(["gfx942", entry(0)])));
  const missed = await ask([other], "hrx");
  assert.equal(missed.answer.failure?.status.number, 14);
});

test("no answer about HRX speaks of ROCm's runtime", async () => {
  const malformed = withToc([], map([raw("a1ff"), map(["gfx942", entry(0)])]));
  const { paths } = await ask([malformed], "hrx");
  for (const { reason } of paths) assert.doesNotMatch(reason ?? "", /ROCm/);
});

test("a TOC value of the wrong type ends the process of the older loader, whatever else is there", async () => {
  const good = await archiveBytes({ targets: { gfx942: ["a.so#0"] } });
  for (const bad of [
    withToc([], map(["a.so#0", map(["gfx942", entry("x")])])),
    withToc([], map(["a.so#0", map(["gfx942", entry(-1)])])),
    withToc([["blobs", "none"]]),
    withToc([["toc", []]]),
  ]) {
    const [before, current] = await outcomes(bad);
    assert.deepEqual([before, current], ["PROCESS_ENDS", NO_ARCHIVE]);
    assert.deepEqual((await outcomes(good, bad)).slice(0, 2), ["PROCESS_ENDS", 0]);
    const { paths, answer } = await ask([bad, good], "before-2026-08");
    assert.equal(paths.length, 1, "nothing is looked at afterwards");
    assert.match(answer.failure?.reason ?? "", /this runtime ends the process/);
  }
  // A TOC that is no map is looked out for.
  const noMap = noneArchive([FIRST], { file: { toc: [1] } });
  const { paths } = await ask([noMap], "before-2026-08");
  assert.equal(paths[0]?.status?.number, 10);
});

test("only what has to be changed is", async () => {
  const bytes = withToc([["more", [map(["a", 1], ["b", [1.5, null, hex("ff")]])]]]);
  for (const behaviour of ["current", "hrx"] as const) {
    const same = await asRuntimeReads(memorySource(bytes), behaviour, undefined);
    assert.equal(same.size, bytes.length);
    assert.deepEqual(Buffer.from(await same.read(0, same.size)), Buffer.from(bytes));
    const around = 64 + FIRST.length + SECOND.length - 8;
    assert.deepEqual(
      Buffer.from(await same.read(around, 16)),
      Buffer.from(bytes.subarray(around, around + 16)),
    );
  }
  // Texts are the same however their sizes are encoded.
  const keys = concat(hex("82"), pack("k"), pack(1), hex("d9016b"), pack(2));
  const twice = noneArchive([FIRST], { toc: [["more", 0]], file: { toc: map(["x", 1]) } });
  const tocAt = 64 + FIRST.length;
  const changed = concat(twice.subarray(0, tocAt), keys);
  const read = await asRuntimeReads(memorySource(changed), "hrx", undefined);
  assert.deepEqual(Buffer.from(await read.read(tocAt, read.size - tocAt)), Buffer.from(hex("81a16b01")));
});
