import assert from "node:assert/strict";
import { test } from "node:test";
import type { Archive } from "../../src/archive/archive.ts";
import { openArchive } from "../../src/archive/open-archive.node.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import type { LoaderBehaviour } from "../../src/loader/archive-search.ts";
import { type LoaderVariables, parseLoaderEnvironment } from "../../src/loader/environment.ts";
import { compatibleTargets, stripIsaPrefix } from "../../src/loader/isa.ts";
import type { LoaderFileSystem } from "../../src/loader/loader-file-system.ts";
import { loaderStatus } from "../../src/loader/loader-status.ts";
import { agentIsas, isaNotes } from "../../src/loader/remedy.ts";
import { type Resolution, resolveKernel } from "../../src/loader/resolve.ts";
import { NodeLoaderFileSystem } from "../../src/loader/resolve.node.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { entryOf, noneArchive, type TocPairs, zstdArchive } from "../support/archive-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject, TemporaryTree } from "../support/trees.ts";
import { zstdCompressSync } from "node:zlib";

/** A file system of archives in memory, by path. */
function memoryFiles(files: Readonly<Record<string, Uint8Array>>): LoaderFileSystem & { opened: string[] } {
  const opened: string[] = [];
  const archives = new Map<string, Promise<Archive>>();
  return {
    opened,
    kind: async (path) => (path in files ? "file" : "missing"),
    realPath: async (path) => (path in files || !path.endsWith(".kpack") ? path : undefined),
    openArchive: async (path) => {
      const known = archives.get(path);
      if (known) return await known;
      opened.push(path);
      const opening = openArchive(memorySource(files[path] ?? new Uint8Array(0), path));
      archives.set(path, opening);
      return await opening;
    },
  };
}

interface Request {
  readonly isas?: readonly string[];
  readonly searchPaths?: readonly string[];
  readonly behaviour?: LoaderBehaviour;
  readonly variables?: LoaderVariables;
  readonly kernelName?: string;
}

async function ask(files: Readonly<Record<string, Uint8Array>>, request: Request = {}): Promise<Resolution> {
  return await resolveKernel(
    {
      binaryPath: "/r/lib/a.so",
      metadata: {
        kernelName: request.kernelName ?? "a.so",
        searchPaths: request.searchPaths ?? ["/k/@GFXARCH@.kpack"],
      },
      isas: request.isas ?? ["gfx942"],
      index: 0,
      behaviour: request.behaviour ?? "current",
      environment: parseLoaderEnvironment(request.variables ?? {}, "posix"),
      workingFolder: "/w",
    },
    memoryFiles(files),
  );
}

async function statusOf(
  bytes: Uint8Array,
  behaviour: LoaderBehaviour = "current",
): Promise<number | undefined> {
  const { answer } = await ask({ "/k/gfx942.kpack": bytes }, { behaviour });
  assert.equal(answer.kernel === undefined, answer.failure !== undefined);
  return answer.failure?.status.number;
}

const KERNEL = codeObject("gfx942");
const frame = (bytes: Uint8Array): Uint8Array => new Uint8Array(zstdCompressSync(bytes));

test("subsets of flags come most specific first and keep their order", () => {
  assert.deepEqual(compatibleTargets("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"), [
    "gfx942:sramecc+:xnack-",
    "gfx942:sramecc+",
    "gfx942:xnack-",
    "gfx942",
  ]);
  assert.deepEqual(compatibleTargets("g:a+:b+:c+"), [
    "g:a+:b+:c+",
    "g:a+:b+",
    "g:a+:c+",
    "g:b+:c+",
    "g:a+",
    "g:b+",
    "g:c+",
    "g",
  ]);
  assert.deepEqual(compatibleTargets("gfx1100"), ["gfx1100"]);
  assert.throws(() => compatibleTargets(`g${":x+".repeat(13)}`), RangeError);
  assert.equal(stripIsaPrefix("gfx1100"), "gfx1100");
});

test("lists of the environment split at : or, on Windows, at ;", () => {
  const variables = { ROCM_KPACK_PATH: "C:/a.kpack;;b.kpack", ROCM_KPACK_PATH_PREFIX: ":x::y" };
  assert.deepEqual(parseLoaderEnvironment(variables, "windows").override, ["C:/a.kpack", "b.kpack"]);
  assert.deepEqual(parseLoaderEnvironment(variables, "posix").override, ["C", "/a.kpack;;b.kpack"]);
  assert.deepEqual(parseLoaderEnvironment(variables, "posix").prefix, ["x", "y"]);
  assert.equal(parseLoaderEnvironment({ ROCM_KPACK_PATH: "::" }, "posix").override, undefined);
  assert.equal(parseLoaderEnvironment({ ROCM_KPACK_DEBUG: "1" }, "posix").debug, true);
});

test("every failure has the loader's own number", async () => {
  const entries = map(["a.so#0", map(["gfx942", entryOf(0, KERNEL.length)])]);
  const none = (changes: TocPairs = []): Uint8Array => noneArchive([KERNEL], { entries, toc: changes });
  const zstd = (size: number, bytes = frame(KERNEL)): Uint8Array =>
    zstdArchive([KERNEL], [bytes], { entries: map(["a.so#0", map(["gfx942", entryOf(0, size)])]) });
  assert.equal(await statusOf(none()), undefined);
  assert.equal(await statusOf(zstd(KERNEL.length)), undefined);
  assert.equal(await statusOf(none([["gfx_arches", ["gfx90a"]]])), 14);
  assert.equal(await statusOf(none([["gfx_arches", undefined]])), 14);
  assert.equal(
    await statusOf(noneArchive([KERNEL], { entries: map(["b.so#0", map(["gfx942", entryOf(0, 1)])]) })),
    5,
  );
  assert.equal(
    await statusOf(noneArchive([KERNEL], { entries: map(["a.so#0", map(["gfx942", entryOf(9, 1)])]) })),
    5,
  );
  assert.equal(await statusOf(zstd(KERNEL.length + 1)), 6);
  assert.equal(await statusOf(zstd(KERNEL.length, frame(KERNEL).subarray(0, 40))), 6);
  assert.equal(
    await statusOf(
      zstd(KERNEL.length, new Uint8Array([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0, ...frame(KERNEL)])),
    ),
    6,
  );
  assert.equal(
    await statusOf(
      zstdArchive([KERNEL], [frame(KERNEL)], {
        entries: map(["a.so#0", map(["gfx942", map(["ordinal", 0])])]),
      }),
    ),
    6,
  );
  assert.equal(await statusOf(none([["blobs", [map(["offset", 64], ["size", 1e6])]]])), 9);
  // What cannot be opened is skipped, and then there is no archive.
  for (const bytes of [
    new Uint8Array(0),
    new Uint8Array(40),
    noneArchive([KERNEL], { file: { version: 2 } }),
  ]) {
    assert.equal(await statusOf(bytes), 13);
  }
});

test("a file that cannot be opened has its own status in the steps", async () => {
  const statuses: (number | undefined)[] = [];
  for (const bytes of [
    new Uint8Array(0),
    new Uint8Array(40),
    noneArchive([KERNEL], { file: { version: 2 } }),
    noneArchive([KERNEL], { file: { toc: [1] } }),
  ]) {
    statuses.push((await ask({ "/k/gfx942.kpack": bytes })).paths[0]?.status?.number);
  }
  assert.deepEqual(statuses, [9, 3, 4, 10]);
});

test("a scheme that ROCm does not know is opened and found empty; HRX refuses it", async () => {
  using tree = new TemporaryTree();
  const bytes = noneArchive([KERNEL], { toc: [["compression_scheme", "solid"]] });
  const request = {
    binaryPath: tree.at("lib/a.so"),
    metadata: { kernelName: "a.so", searchPaths: [tree.write("a.kpack", bytes)] },
    isas: ["gfx942"],
    index: 0,
    environment: parseLoaderEnvironment({}, "posix"),
    workingFolder: "/w",
  };
  await using fileSystem = new NodeLoaderFileSystem();
  const { answer } = await resolveKernel({ ...request, behaviour: "current" }, fileSystem);
  assert.equal(answer.failure?.status.number, 5);
  assert.match(answer.failure.reason, /does not know the scheme solid/);
  const hrx = await resolveKernel({ ...request, behaviour: "hrx" }, fileSystem);
  assert.equal(hrx.answer.failure?.status.number, 3);
});

test("a candidate that fails is followed by the next, and before August 2026 it was the last", async () => {
  const entries = map(["a.so#0", map(["gfx942", entryOf(0, KERNEL.length + 1)])]);
  const files = {
    "/k/1.kpack": zstdArchive([KERNEL], [frame(KERNEL)], { entries }),
    "/k/2.kpack": await archiveBytes({ targets: { gfx942: ["a.so#0"] } }),
  };
  const searchPaths = ["/k/1.kpack", "/k/2.kpack"];
  const current = await ask(files, { searchPaths });
  assert.equal(current.answer.kernel?.archive, "/k/2.kpack");
  assert.equal(current.answer.candidates[0]?.status?.number, 6);
  const old = await ask(files, { searchPaths, behaviour: "before-2026-08" });
  assert.equal(old.answer.failure?.status.number, 6);
  const last = await ask(files, { searchPaths: searchPaths.toReversed(), kernelName: "b.so" });
  assert.equal(last.answer.failure?.status.number, 5, "the last candidate's error counts");
});

test("an archive of two paths is opened once and tried twice", async () => {
  const files = memoryFiles({ "/k/gfx942.kpack": await archiveBytes({ targets: { gfx942: ["b.so#0"] } }) });
  const { answer } = await resolveKernel(
    {
      binaryPath: "/r/a.so",
      metadata: { kernelName: "a.so", searchPaths: ["/k/@GFXARCH@.kpack", "/k/gfx942.kpack"] },
      isas: ["gfx942"],
      index: 0,
      behaviour: "current",
      environment: parseLoaderEnvironment({}, "posix"),
      workingFolder: "/w",
    },
    files,
  );
  assert.equal(files.opened.length, 1);
  assert.equal(answer.candidates.length, 2);
});

test("HRX asks the TOC, not gfx_arches", async () => {
  const bytes = await archiveBytes({ targets: { gfx942: ["a.so#0"] }, listed: ["gfx90a"] });
  assert.equal(await statusOf(bytes, "hrx"), undefined);
  assert.equal(await statusOf(bytes, "current"), 14);
});

test("HRX has bounds of its own", async () => {
  const file = await archiveBytes({ targets: { gfx942: ["b.so#0"] } });
  const many = (count: number): Readonly<Record<string, Uint8Array>> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`/k/${index}.kpack`, file]));
  const paths = Array.from({ length: 33 }, (_, index) => `/k/${index}.kpack`);
  const failure = async (request: Request, files = many(33)): Promise<string | undefined> =>
    (await ask(files, { behaviour: "hrx", ...request })).answer.failure?.status.name;
  assert.equal(await failure({ searchPaths: paths }), "HRX_LIMIT");
  assert.equal(await failure({ searchPaths: paths.slice(1) }), "KPACK_ERROR_KERNEL_NOT_FOUND");
  assert.equal(await failure({ isas: ["gfx942:a+:b+:c+:d+:e+"] }), "HRX_LIMIT");
  assert.equal(await failure({ isas: ["gfx942:a+:b+:c+:d+"] }), "KPACK_ERROR_ARCHIVE_NOT_FOUND");
  // 32 paths give 96 archives once they are expanded.
  const expanded = Array.from({ length: 32 }, (_, index) => `/k/@GFXARCH@${index}.kpack`);
  const isas = ["0", "1", "2"];
  const files = Object.fromEntries(
    isas.flatMap((isa) => expanded.map((path) => [path.replace("@GFXARCH@", isa), file])),
  );
  assert.equal(await failure({ searchPaths: expanded, isas }, files), "HRX_LIMIT");
  assert.equal((await ask(files, { searchPaths: expanded, isas })).archives.length, 96);
});

test("HRX names the first broken archive when nothing else explains the miss", async () => {
  const files = {
    "/k/1.kpack": await archiveBytes({ targets: { gfx942: ["b.so#0"] } }),
    "/k/2.kpack": noneArchive([KERNEL], { file: { version: 2 } }),
  };
  const searchPaths = ["/k/1.kpack", "/k/2.kpack"];
  assert.equal((await ask(files, { searchPaths, behaviour: "hrx" })).answer.failure?.status.number, 4);
  assert.equal((await ask(files, { searchPaths })).answer.failure?.status.number, 5);
});

test("HRX refuses kernels of 0 bytes under none and does not look at their size", async () => {
  const entries = (size: number): unknown => map(["a.so#0", map(["gfx942", entryOf(0, size)])]);
  const unsized = map(["a.so#0", map(["gfx942", map(["ordinal", 0])])]);
  for (const given of [entries(7), entries(0), entries(2 ** 31), unsized]) {
    assert.equal(await statusOf(noneArchive([KERNEL], { entries: given }), "hrx"), undefined);
    assert.equal(await statusOf(noneArchive([new Uint8Array(0)], { entries: given }), "hrx"), 6);
    assert.equal(await statusOf(noneArchive([new Uint8Array(0)], { entries: given })), undefined);
  }
  const large = [["blobs", [map(["offset", 64], ["size", 2 ** 28 + 1])]]] as const;
  const short = { entries: entries(7), toc: large };
  assert.equal(await statusOf(noneArchive([KERNEL], short), "hrx"), 9, "the blob leaves the file");
  assert.equal(await statusOf(zstdArchive([KERNEL], [frame(KERNEL)], { entries: entries(0) }), "hrx"), 6);
});

test("an abort stops the search", async () => {
  const files = memoryFiles({});
  await assert.rejects(
    resolveKernel(
      {
        binaryPath: "/a",
        metadata: { kernelName: "a", searchPaths: ["/k"] },
        isas: ["gfx942"],
        index: 0,
        behaviour: "current",
        environment: parseLoaderEnvironment({}, "posix"),
        workingFolder: "/",
      },
      files,
      { signal: AbortSignal.abort(new Error("enough")) },
    ),
    (error) => !isKpackError(error) && error instanceof Error && error.message === "enough",
  );
});

test("statuses have the numbers that people search for", () => {
  assert.equal(loaderStatus("KPACK_ERROR_ARCHIVE_NOT_FOUND").number, 13);
  assert.equal(loaderStatus("KPACK_ERROR_INVALID_METADATA").number, 12);
  assert.equal(loaderStatus("HRX_LIMIT").number, undefined);
});

test("ISAs as people type them get notes", () => {
  assert.deepEqual(isaNotes(["gfx942:sramecc+:xnack-", "gfx1100"]), []);
  assert.match(isaNotes(["gfx942"]).join(), /reports sramecc and xnack too/);
  assert.match(isaNotes(["gfx942:xnack-:sramecc+"]).join(), /another order/);
  assert.match(isaNotes(["gfx9999"]).join(), /not known here/);
  assert.match(isaNotes(["RX 7900"]).join(), /does not look like an ISA/);
  assert.deepEqual(agentIsas("gfx942:sramecc+:xnack-"), [
    "gfx942:sramecc+:xnack-",
    "gfx9-4-generic:sramecc+:xnack-",
  ]);
});
