import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Archive } from "../../src/archive/archive.ts";
import { EntryList } from "../../src/archive/archive-entry.ts";
import { openArchive } from "../../src/archive/open-archive.node.ts";
import { type ArchiveSearch, searchArchives } from "../../src/loader/archive-search.ts";
import { parseLoaderEnvironment } from "../../src/loader/environment.ts";
import { formatIndexes } from "../../src/loader/miss-reason.ts";
import { findKernel } from "../../src/loader/resolve.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { entryOf, noneArchive } from "../support/archive-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject } from "../support/trees.ts";

/** Many kernels that are looked up in the archives of one search. */

const KERNEL = codeObject("gfx942");

async function searchIn(files: Readonly<Record<string, Uint8Array>>): Promise<ArchiveSearch> {
  const request = {
    binaryPath: "/r/lib/a.so",
    metadata: { kernelName: "a.so", searchPaths: Object.keys(files) },
    isas: ["gfx942"],
    behaviour: "current",
    environment: parseLoaderEnvironment({}, "posix"),
    workingFolder: "/w",
  } as const;
  return await searchArchives(request, {
    kind: async () => "file",
    realPath: async (path) => path,
    openArchive: async (path) => await openArchive(memorySource(files[path] ?? new Uint8Array(0), path)),
  });
}

test("a miss says what the archive has instead", async () => {
  const targets = { gfx942: ["a.so#1", "a.so#2", "b.so", "d.so#00"], gfx90a: ["c.so#0"] };
  const files = { "/k/gfx942.kpack": await archiveBytes({ targets }) };
  const reason = async (kernelName: string): Promise<string | undefined> =>
    (await findKernel(await searchIn(files), { kernelName, index: 0 })).failure?.reason;
  assert.equal(await reason("a.so"), "of a.so for gfx942 it has #1–#2 only");
  assert.equal(await reason("b.so"), "it has the key b.so without an index, as older tools wrote it");
  assert.equal(await reason("c.so"), "it has the key for gfx90a, not for gfx942");
  assert.equal(await reason("d.so"), "of d.so for gfx942 it has #0 only");
  assert.equal(await reason("e.so"), "it has no kernel of e.so for gfx942");
});

test("many kernels are looked up with one walk over an archive's keys, and one reading of each", async () => {
  const entries = map(
    ...["a.so#0", "a.so#1", "b.so#0"].map((key): [string, unknown] => [
      key,
      map(["gfx942", entryOf(0, KERNEL.length)]),
    ]),
  );
  const file = noneArchive([KERNEL], { entries });
  const search = await searchIn({ "/k/1.kpack": file, "/k/2.kpack": file });
  const walk = EntryList.prototype[Symbol.iterator];
  let walks = 0;
  EntryList.prototype[Symbol.iterator] = function (this: EntryList) {
    walks += 1;
    return walk.call(this);
  };
  const reads = mock.method(Archive.prototype, "readKernel");
  try {
    const answers = [];
    for (let index = 0; index < 100; index++) {
      answers.push(await findKernel(search, { kernelName: "a.so", index }));
    }
    assert.deepEqual(
      answers.slice(0, 3).map(({ kernel, failure }) => kernel?.size ?? failure?.reason),
      [KERNEL.length, KERNEL.length, "of a.so for gfx942 it has #0–#1 only"],
    );
    assert.equal(walks, 2);
    assert.equal(reads.mock.callCount(), 1);
  } finally {
    EntryList.prototype[Symbol.iterator] = walk;
    reads.mock.restore();
  }
});

test("runs of indexes are short", () => {
  assert.equal(formatIndexes([0, 1, 2, 5, 7, 8]), "#0–#2, #5, #7–#8");
  assert.equal(formatIndexes([0, 2, 4, 6, 8, 10, 12]), "#0, #2, #4, #6, #8, #10 and more");
});
