import assert from "node:assert/strict";
import { copyFileSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  memorySink,
  nodeCodecs,
  none,
  openArchive,
  openFile,
  zstdCrossKernel,
  zstdPerKernel,
} from "../../src/node.ts";
import { convertArchive } from "../../src/operations/convert.node.ts";
import { matchesAnySelection } from "../../src/target/target-id.ts";
import { fixtureBytes, fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { openBytes } from "../support/kernels.ts";
import { digestsOf } from "../support/pack-inputs.ts";
import { kpack } from "../support/run-kpack.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const SCHEMES = {
  none,
  "zstd-per-kernel": zstdPerKernel({ codecs: nodeCodecs }),
  "zstd-cross-kernel": zstdCrossKernel({ codecs: nodeCodecs }),
};
const SOURCE = "D/ok/none_kdb.kpack";

async function schemeNameOf(path: string): Promise<string> {
  await using archive = await openArchive(await openFile(path));
  return archive.schemeName;
}

describe("convert without a scheme", () => {
  it("keeps the archive's own", async () => {
    for (const [name, scheme] of Object.entries(SCHEMES)) {
      await using source = await openBytes(fixtureBytes(SOURCE));
      const first = memorySink();
      await convertArchive(source, first, { scheme });
      await using archive = await openBytes(first.bytes());
      const second = memorySink();
      await convertArchive(archive, second, { verify: true });
      assert.equal((await openBytes(second.bytes())).schemeName, name);
      assert.deepEqual(second.bytes(), first.bytes(), name);
    }
  });

  it("on the command line: keeps it unless an option asks for another", async (context) => {
    const folder = tempFolder(context);
    const [source, output] = [join(folder, "in.kpack"), join(folder, "out.kpack")];
    const cases: readonly (readonly [keyof typeof SCHEMES, string, keyof typeof SCHEMES])[] = [
      ["none", "", "none"],
      ["zstd-per-kernel", "", "zstd-per-kernel"],
      ["zstd-cross-kernel", "", "zstd-cross-kernel"],
      ["zstd-cross-kernel", "--targets gfx1100", "zstd-cross-kernel"],
      ["none", "--level 1", "zstd-per-kernel"],
      ["zstd-cross-kernel", "--level 1", "zstd-per-kernel"],
      ["none", "--effort fast", "zstd-cross-kernel"],
      ["zstd-per-kernel", "--planner siblings", "zstd-cross-kernel"],
      ["zstd-cross-kernel", "--scheme zstd-per-kernel", "zstd-per-kernel"],
    ];
    for (const [from, options, to] of cases) {
      const made = await kpack(["convert", SOURCE, "-o", source, "--scheme", from]);
      assert.equal(made.status, 0, made.stderr);
      const words = options.split(" ").filter((word) => word !== "");
      const { status, stderr } = await kpack(["convert", source, "-o", output, ...words]);
      assert.equal(status, 0, stderr);
      assert.equal(await schemeNameOf(output), to, `${from} ${options}`);
    }
    for (const options of [
      "--scheme none --level 3",
      "--level 3 --effort fast",
      "--scheme zstd-per-kernel --effort max",
    ])
      assert.equal(
        (await kpack(["convert", SOURCE, "-o", output, ...options.split(" ")])).status,
        2,
        options,
      );
  });
});

describe("convert onto itself", () => {
  it("gives what converting elsewhere gives", async (context) => {
    for (const [name, link] of [
      ["D/ok/none_kdb.kpack", false],
      ["D/ok/zstd_kdb.kpack", true],
    ] as const) {
      const folder = tempFolder(context);
      const path = join(folder, "a.kpack");
      copyFileSync(fixturePath(name), path);
      const input = link ? join(folder, "link.kpack") : path;
      if (link) symlinkSync("a.kpack", input);
      const wanted = await digestsOf(path);
      const elsewhere = join(folder, "b.kpack");
      const options = ["--scheme", "zstd-cross-kernel", "--verify"];
      assert.equal((await kpack(["convert", input, "-o", elsewhere, ...options])).status, 0);
      const { status, stderr } = await kpack(["convert", input, "-o", path, ...options]);
      assert.equal(status, 0, stderr);
      assert.deepEqual(readFileSync(path), readFileSync(elsewhere));
      assert.deepEqual(await digestsOf(path), wanted);
      assert.deepEqual(filesBelow(folder), ["a.kpack", "b.kpack", ...(link ? ["link.kpack"] : [])]);
    }
  });

  it("leaves it as it was when the work fails", async (context) => {
    const folder = tempFolder(context);
    const path = join(folder, "a.kpack");
    const damaged = fixturePath("D/bad/zstd_frame_truncated.kpack");
    copyFileSync(damaged, path);
    assert.equal((await kpack(["convert", path, "-o", path])).status, 1);
    assert.deepEqual(readFileSync(path), readFileSync(damaged));
    assert.deepEqual(filesBelow(folder), ["a.kpack"]);
  });
});

describe("convert's progress", () => {
  it("ends at the total, also where entries share a kernel", async () => {
    await using archive = await openBytes(fixtureBytes("D/odd/shared_ordinal.kpack"));
    const last = { done: 0, total: -1 };
    await convertArchive(archive, memorySink(), {
      verify: true,
      onProgress: ({ done, total = -1 }) => Object.assign(last, { done, total }),
    });
    assert.equal(last.done, last.total);
  });
});

describe("targets that the archive lacks", () => {
  it("are an error that names the library's field, and the option in its hint", async () => {
    await using archive = await openBytes(fixtureBytes(SOURCE));
    const error = await kpackError(
      async () => await convertArchive(archive, memorySink(), { targets: ["gfx1"] }),
      "NOTHING_FOUND",
    );
    assert.equal(error.field, "targets");
    assert.match(String(error.hint), /--targets/);
  });

  it("are told by any of several selections, and by none when all are wanted", () => {
    assert.ok(matchesAnySelection("gfx90a:xnack-", undefined));
    assert.ok(matchesAnySelection("gfx90a:xnack-", ["gfx942", "gfx90a"]));
    assert.ok(!matchesAnySelection("gfx90a:xnack-", ["gfx942", "gfx90a:xnack+"]));
    assert.ok(!matchesAnySelection("gfx90a:xnack-", []));
  });
});
