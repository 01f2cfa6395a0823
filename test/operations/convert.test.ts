import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  type CompressionScheme,
  createFile,
  isKpackError,
  memorySink,
  nodeCodecs,
  none,
  openArchive,
  openFile,
  zstdPerKernel,
} from "../../src/node.ts";
import { convertArchive, type ConvertOptions } from "../../src/operations/convert.node.ts";
import { toJson } from "../../src/msgpack/message-pack-decode.ts";
import { expectedArchive, expectedArchives, fixtureBytes, fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { openBytes, sha256 } from "../support/kernels.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });

async function convert(bytes: Uint8Array, options: ConvertOptions): Promise<Uint8Array> {
  await using archive = await openBytes(bytes);
  const sink = memorySink("out.kpack");
  await convertArchive(archive, sink, options);
  return sink.bytes();
}

async function digests(bytes: Uint8Array): Promise<Readonly<Record<string, string>>> {
  const archive = await openBytes(bytes);
  const found: Record<string, string> = {};
  for await (const { entry, bytes: kernel } of archive.readKernels({ checkHash: true }))
    found[entry.id] = sha256(kernel);
  return found;
}

describe("convert", () => {
  it("keeps every kernel of every good archive, in both schemes and back", async () => {
    for (const [name, { expect, kernels }] of expectedArchives) {
      if (expect !== "ok" || !kernels) continue;
      const wanted = Object.fromEntries(
        kernels.map(({ binary, arch, sha256: digest }) => [`${binary} ${arch}`, digest]),
      );
      for (const [first, second] of [
        [none, zstd],
        [zstd, none],
      ] as const) {
        const once = await convert(fixtureBytes(name), { scheme: first, verify: true });
        const twice = await convert(once, { scheme: second, verify: true });
        for (const bytes of [once, twice]) assert.deepEqual(await digests(bytes), wanted, name);
        // There and back is the same as straight there.
        assert.deepEqual(await convert(fixtureBytes(name), { scheme: second }), twice, name);
      }
    }
  });

  it("keeps what it does not know, with its types, and the TOC's order", async () => {
    const before = await openBytes(fixtureBytes("D/odd/unknown_keys.kpack"));
    const after = await openBytes(await convert(fixtureBytes("D/odd/unknown_keys.kpack"), { scheme: none }));
    for (const name of ["future", "zz"]) assert.deepEqual(after.field(name), before.field(name));
    assert.deepEqual(
      [...after.entries].map((entry) => [entry.id, entry.encodedFields().length]),
      [...before.entries].map((entry) => [entry.id, entry.encodedFields().length]),
    );
    const fields = (archive: typeof before): unknown =>
      [...archive.entries].map((entry) => [...entry.fields()].map(([name, value]) => [name, toJson(value)]));
    assert.deepEqual(fields(after), fields(before));
    assert.ok(!after.toc.presentKeys.has("zstd_offset"));
    const metadata = await openBytes(
      await convert(fixtureBytes("D/ok/zstd_metadata.kpack"), { scheme: none }),
    );
    assert.deepEqual(fields(metadata), fields(await openBytes(fixtureBytes("D/ok/zstd_metadata.kpack"))));
  });

  it("chooses targets, and says so in gfx_arches", async () => {
    const bytes = fixtureBytes("D/ok/zstd_features.kpack");
    const all = await digests(bytes);
    const targets = [...new Set(Object.keys(all).map((id) => id.split(" ").at(-1) ?? ""))];
    for (const selection of [...targets, "gfx90a"]) {
      const matches = (target: string): boolean =>
        target === selection || (!selection.includes(":") && target.startsWith(`${selection}:`));
      const result = await convert(bytes, { scheme: zstd, targets: [selection] });
      const wanted = Object.fromEntries(
        Object.entries(all).filter(([id]) => matches(id.split(" ").at(-1) ?? "")),
      );
      assert.deepEqual(await digests(result), wanted, selection);
      assert.deepEqual([...(await openBytes(result)).targets].toSorted(), targets.filter(matches).toSorted());
    }
    const error = await kpackError(
      async () => await convert(bytes, { scheme: zstd, targets: ["gfx1"] }),
      "NOTHING_FOUND",
    );
    assert.match(String(error.found), /gfx90a/);
  });

  it("changes group and family, level, sharing and extra fields when asked", async () => {
    const bytes = fixtureBytes("D/ok/zstd_identical_kernels.kpack");
    const small = await openBytes(await convert(bytes, { scheme: none, groupName: "g2", family: "f2" }));
    assert.deepEqual([small.groupName, small.family], ["g2", "f2"]);
    const apart = await openBytes(
      await convert(bytes, { scheme: none, shareIdentical: false, extraFields: false }),
    );
    assert.deepEqual([...apart.toc.presentKeys].slice(6), ["blobs"]);
    assert.ok((await small.decompressor.kernelCount()) < (await apart.decompressor.kernelCount()));
    const levels: number[] = [];
    for (const level of [1, 19]) {
      const scheme = zstdPerKernel({ codecs: nodeCodecs, level });
      levels.push((await convert(fixtureBytes("D/ok/none_kdb.kpack"), { scheme })).length);
    }
    assert.ok((levels[1] ?? 0) < (levels[0] ?? 0));
  });

  it("gives the same bytes however many jobs there are", async () => {
    const bytes = fixtureBytes("D/ok/zstd_kdb.kpack");
    const first = await convert(bytes, { scheme: zstd, jobs: 1 });
    for (const jobs of [2, 7, 64]) assert.deepEqual(await convert(bytes, { scheme: zstd, jobs }), first);
  });

  it("fills in what an old archive lacks", async () => {
    const bytes = await convert(fixtureBytes("D/odd/no_original_size.kpack"), { scheme: zstd });
    const archive = await openBytes(bytes);
    assert.deepEqual(archive.findings, []);
    for (const entry of archive.entries)
      assert.equal(entry.originalSize, (await archive.readKernel(entry)).length);
    const trailing = await openBytes(
      await convert(fixtureBytes("D/odd/trailing_bytes.kpack"), { scheme: none }),
    );
    assert.deepEqual(trailing.findings, []);
  });

  it("stops at a damaged kernel and leaves nothing behind", async (context) => {
    const folder = tempFolder(context);
    const output = join(folder, "out.kpack");
    let refused = 0;
    for (const [name, { error }] of expectedArchives) {
      if (error?.strictness !== "must") continue;
      const attempt = async (): Promise<void> => {
        await using archive = await openArchive(await openFile(fixturePath(name)));
        await using sink = await createFile(output);
        await convertArchive(archive, sink, { scheme: zstd });
        await sink.commit();
      };
      await assert.rejects(attempt, (fault) => isKpackError(fault) && fault.name !== "AccessError", name);
      assert.deepEqual(filesBelow(folder), [], name);
      refused += 1;
    }
    assert.ok(refused > 40);
    // Bytes that only a hash can tell from the right ones, and a size that is not the TOC's.
    const packed = await convert(fixtureBytes("D/ok/none_base.kpack"), { scheme: none });
    packed[70] = (packed[70] ?? 0) ^ 1;
    await kpackError(async () => await convert(packed, { scheme: none }), "CHECKSUM_MISMATCH");
    const wrong = fixtureBytes("D/bad/original_size_wrong_none.kpack");
    await kpackError(
      async () => await convert(wrong, { scheme: none }),
      "SIZE_MISMATCH",
      /^original_size of /,
    );
  });

  it("compares what it wrote when it is asked to", async () => {
    const lying: CompressionScheme<Uint8Array> = {
      ...none,
      createCompressor: (how) => {
        const inner = none.createCompressor(how);
        return {
          prepareKernel: async ({ bytes }) => bytes.map((byte, at) => (at === 3 ? byte ^ 1 : byte)),
          finalize: async (inputs, area, options) => await inner.finalize(inputs, area, options),
        };
      },
    };
    for (const extraFields of [true, false]) {
      const options = { scheme: lying, extraFields, verify: true };
      await kpackError(
        async () => await convert(fixtureBytes("D/ok/zstd_base.kpack"), options),
        "CHECKSUM_MISMATCH",
      );
    }
  });

  it("writes ROCm's own archive byte for byte, extra fields and sharing off", async () => {
    for (const name of ["none_base", "none_small", "none_kdb", "none_metadata", "none_unicode"]) {
      const bytes = fixtureBytes(`D/ok/${name}.kpack`);
      assert.deepEqual(
        await convert(bytes, { scheme: none, extraFields: false, shareIdentical: false }),
        bytes,
        name,
      );
    }
    assert.equal(
      expectedArchive("D/ok/none_base.kpack").sha256,
      sha256(new Uint8Array(readFileSync(fixturePath("D/ok/none_base.kpack")))),
    );
  });

  it("stops when it is aborted", async () => {
    const abort = new AbortController();
    const options = {
      scheme: zstd,
      signal: abort.signal,
      onProgress: () => abort.abort(new Error("enough")),
    };
    await assert.rejects(convert(fixtureBytes("D/ok/zstd_kdb.kpack"), options), /enough/);
  });
});
