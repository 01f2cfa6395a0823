import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sha256 } from "../support/kernels.ts";
import { digestsOf } from "../support/pack-inputs.ts";
import { document, kpack } from "../support/run-kpack.ts";
import { tempFolder } from "../support/temp-folder.ts";

const folderOfLibraries = process.env["KPACK_DEBIAN_LIBS"];
const skip =
  folderOfLibraries === undefined && "KPACK_DEBIAN_LIBS names no folder with Debian's librocrand.so.1.1";
const library = join(folderOfLibraries ?? "", "librocrand.so.1.1");

/** The library's one bundle, taken apart by nothing but its own table: target and bytes of each device entry. */
function sliceOf(bytes: Buffer): ReadonlyMap<string, Uint8Array> {
  const start = bytes.indexOf("__CLANG_OFFLOAD_BUNDLE__");
  const slices = new Map<string, Uint8Array>();
  let at = start + 32;
  for (let count = Number(bytes.readBigUInt64LE(start + 24)); count > 0; count--) {
    const [offset = 0, size = 0, length = 0] = [0, 8, 16].map((field) =>
      Number(bytes.readBigUInt64LE(at + field)),
    );
    const id = bytes.toString("latin1", at + 24, at + 24 + length);
    if (size > 0 && id.startsWith("hip"))
      slices.set(
        id.slice(id.indexOf("gfx")),
        new Uint8Array(bytes.subarray(start + offset, start + offset + size)),
      );
    at += 24 + length;
  }
  return slices;
}

describe("Debian's librocrand", { skip }, () => {
  it("is packed, listed, verified, and every kernel comes back as it is in the library", async (context) => {
    const folder = tempFolder(context);
    const slices = sliceOf(readFileSync(library));
    assert.equal(slices.size, 7);
    const archive = join(folder, "rocrand.kpack");
    const run = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
      const ran = await kpack([...args, "--json"], { cwd: folder });
      assert.equal(ran.status, 0, ran.stderr);
      return document(ran);
    };
    await run("pack", library, "-o", archive, "--verify");
    const { entries } = await run("list", archive);
    assert.ok(Array.isArray(entries));
    assert.equal(entries.length, 7);
    const { archives } = await run("verify", archive, "--strict");
    assert.ok(Array.isArray(archives) && archives.length === 1);
    const wanted = Object.fromEntries(
      [...slices].map(([target, bytes]) => [`librocrand.so.1.1#0 ${target}`, sha256(bytes)]),
    );
    assert.deepEqual(await digestsOf(archive), wanted);
    const { files } = await run("extract", archive, "-o", "kernels");
    assert.ok(Array.isArray(files));
    for (const { target, path } of files as readonly { readonly target: string; readonly path: string }[])
      assert.ok(
        Buffer.from(slices.get(target) ?? assert.fail(target)).equals(readFileSync(join(folder, path))),
      );

    await run("pack", library, "-o", ".kpack", "--split-by", "target", "--level", "1");
    const names = readdirSync(join(folder, ".kpack"));
    assert.deepEqual(
      names.toSorted(),
      [...slices.keys()].map((target) => `rocrand_${target}.kpack`).toSorted(),
    );
    const split: Record<string, string> = {};
    for (const name of names) Object.assign(split, await digestsOf(join(folder, ".kpack", name)));
    assert.deepEqual(split, wanted);
  });
});
