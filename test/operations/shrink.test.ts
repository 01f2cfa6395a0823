import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { addShrink } from "../../src/cli/commands/shrink.ts";
import { openArchive, openFile } from "../../src/node.ts";
import { shrink } from "../../src/operations/shrink.node.ts";
import { planShrink } from "../../src/operations/shrink-plan.node.ts";
import { kpackError } from "../support/expect-error.ts";
import { sha256 } from "../support/kernels.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, keys, TemporaryTree } from "../support/trees.ts";

/** All files below a folder, with modes, link targets and hashes. */
function contents(folder: string, inside = ""): readonly string[] {
  return readdirSync(join(folder, inside))
    .toSorted()
    .flatMap((name) => {
      const path = inside === "" ? name : `${inside}/${name}`;
      const info = lstatSync(join(folder, path));
      const mode = (info.mode & 0o7777).toString(8);
      if (info.isSymbolicLink()) return [`${path} -> ${readlinkSync(join(folder, path))}`];
      if (info.isDirectory()) return [`${path}/ ${mode}`, ...contents(folder, path)];
      return [`${path} ${mode} ${sha256(readFileSync(join(folder, path))).slice(0, 8)}`];
    });
}

async function installTree(): Promise<TemporaryTree> {
  const tree = new TemporaryTree();
  tree.write("in/lib/rocblas/library/Kernels_gfx942.co", "1".repeat(1000));
  tree.write("in/lib/rocblas/library/Kernels_gfx90a-xnack+.hsaco", "2".repeat(2000));
  tree.write("in/lib/rocblas/library/Kernels_gfx90a-xnack-.hsaco", "3".repeat(2000));
  tree.write("in/lib/rocblas/library/TensileLibrary.dat", "index");
  tree.write("in/lib/hipblaslt/library/gfx1100/Lazy.dat", "4".repeat(500));
  tree.write("in/lib/hipblaslt/library/gfx1100/extra/Kernels.co", "5".repeat(500));
  tree.write("in/lib/hipblaslt/library/gfx9-4-generic/Kernels.co", "6".repeat(300));
  tree.write("in/share/miopen/db/gfx90a68.kdb", "7".repeat(100));
  tree.write("in/share/miopen/db/gfx942130.db.txt", "8".repeat(100));
  tree.write("in/share/gfx1100.txt", "text is copied, whatever its name");
  tree.write("in/bin/tool", "program");
  mkdirSync(tree.at("in/empty"));
  tree.link("in/lib/current.co", "rocblas/library/Kernels_gfx90a-xnack-.hsaco");
  tree.link("in/lib/first.co", "current.co");
  tree.link("in/lib/kept.co", "rocblas/library/Kernels_gfx942.co");
  tree.link("in/lib/gone", "hipblaslt/library/gfx1100");
  tree.link("in/lib/dangling", "nowhere");
  chmodSync(tree.at("in/bin/tool"), 0o750);
  chmodSync(tree.at("in/share/miopen/db"), 0o555);
  const targets = { gfx942: keys("lib/a.so", 3), gfx1100: keys("lib/a.so", 4) };
  tree.write("in/.kpack/blas.kpack", await archiveBytes({ targets }));
  tree.write(
    "in/.kpack/blas_gfx1100.kpack",
    await archiveBytes({ targets: { gfx1100: keys("lib/b.so", 1) } }),
  );
  tree.write("in/.kpack/blas_gfx942.kpack", await archiveBytes({ targets: { gfx942: keys("lib/b.so", 1) } }));
  return tree;
}

/** So that the tree can be removed by others than root too. */
function unlock(tree: TemporaryTree): void {
  for (const path of ["in/share/miopen/db", "out/share/miopen/db"])
    if (existsSync(tree.at(path))) chmodSync(tree.at(path), 0o755);
}

describe("shrinking a tree", () => {
  it("says what goes and stays, and writes a copy with modes and links", async () => {
    using tree = await installTree();
    const before = contents(tree.at("in"));
    const { status, text } = await runCommand(
      addShrink,
      "shrink",
      tree.at("in"),
      "--keep",
      "gfx942",
      "-o",
      tree.at("out"),
      "-q",
    );
    assert.equal(status, 0);
    assert.match(text, /^TARGET +FILES +KERNELS +SIZE$/m);
    assert.match(text, /^gfx1100 +goes +2 +5 +\d/m);
    assert.match(text, /^gfx9-4-generic +stays +1 +- +300 bytes$/m);
    assert.match(text, /^gfx90a:xnack\+ +goes +1 +- +2\.0 kB$/m);
    assert.match(text, /^all others +stays +3 +-/m);
    assert.match(text, /blas\.kpack \([\d.]+ kB\): without gfx1100$/m);
    assert.match(text, /blas_gfx1100\.kpack \([\d.]+ kB\): goes$/m);
    assert.match(text, /blas_gfx942\.kpack \([\d.]+ kB\): stays as it is$/m);
    for (const line of text.split("\n")) if (!line.includes(tree.path)) assert.ok(line.length <= 100, line);
    assert.deepEqual(contents(tree.at("in")), before);
    const kept = before.filter((line) =>
      /^(?!.*(?:gfx90a|gfx1100(?!\.txt)|current|first|gone)).*$/.test(line),
    );
    const after = contents(tree.at("out"));
    assert.deepEqual(
      after.filter((line) => !line.startsWith(".kpack/blas.kpack ")),
      kept.filter((line) => !line.startsWith(".kpack/blas.kpack ")),
    );
    await using archive = await openArchive(await openFile(tree.at("out/.kpack/blas.kpack")));
    assert.deepEqual(
      [archive.targets, archive.entries.length, archive.schemeName],
      [["gfx942"], 3, "zstd-per-kernel"],
    );
    assert.deepEqual(readdirSync(tree.path).toSorted(), ["in", "out"]);
    unlock(tree);
  });

  it("with --dry-run writes nothing", async () => {
    using tree = await installTree();
    const { status, text } = await runCommand(
      addShrink,
      "shrink",
      tree.at("in"),
      "--keep",
      "gfx90a",
      "--dry-run",
      "--json",
    );
    assert.equal(status, 0);
    const document: unknown = JSON.parse(text);
    assert.partialDeepStrictEqual(document, {
      schema: "kpack/shrink/1",
      dryRun: true,
      keep: ["gfx90a"],
      targets: [
        { target: "gfx1100", stays: false, files: 2, kernels: 5 },
        { target: "gfx90a", stays: true, files: 1, kernels: 0, size: 100 },
        { target: "gfx90a:xnack+", stays: true },
        { target: "gfx90a:xnack-", stays: true },
        { target: null, stays: true },
      ],
      items: [
        { kind: "folder", action: "copy", mode: "0755" },
        { kind: "archive", action: "drop", droppedTargets: ["gfx1100"] },
        { kind: "link", action: "copy", linkTarget: "current.co" },
      ],
    });
    assert.deepEqual(readdirSync(tree.path), ["in"]);
    unlock(tree);
  });

  it("puts several inputs side by side", async () => {
    using tree = await installTree();
    const inputs = [tree.at("in/.kpack"), tree.at("in/lib/rocblas")];
    await shrink({ inputs, keep: ["gfx942"], output: tree.at("out") });
    assert.deepEqual(readdirSync(tree.at("out")).toSorted(), [".kpack", "rocblas"]);
    assert.deepEqual(readdirSync(tree.at("out/rocblas/library")).toSorted(), [
      "Kernels_gfx942.co",
      "TensileLibrary.dat",
    ]);
    await assert.rejects(
      shrink({ inputs: [tree.at("in"), tree.at("in")], keep: ["gfx942"], output: tree.at("more") }),
      { code: "WRITE_FAILED" },
    );
    assert.equal(existsSync(tree.at("more")), false);
    unlock(tree);
  });
});

describe("shrinking an archive", () => {
  it("drops targets, and keeps those that the GPU can use", async () => {
    using tree = new TemporaryTree();
    const targets = { "gfx90a:xnack-": keys("a", 1), "gfx90a:xnack+": keys("a", 2), gfx906: keys("a", 3) };
    const input = tree.write("a.kpack", await archiveBytes({ targets }));
    await shrink({ inputs: [input], keep: ["gfx90a:xnack-"], output: tree.at("b.kpack") });
    await using archive = await openArchive(await openFile(tree.at("b.kpack")));
    assert.deepEqual(archive.targets, ["gfx90a:xnack-"]);
    await shrink({ inputs: [input], keep: ["gfx90a"], output: tree.at("c.kpack") });
    await using both = await openArchive(await openFile(tree.at("c.kpack")));
    assert.deepEqual([both.targets, both.entries.length], [["gfx90a:xnack-", "gfx90a:xnack+"], 3]);
  });

  it("keeps exactly what its plan says", async () => {
    using tree = new TemporaryTree();
    const all = ["gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942"];
    const targets = Object.fromEntries(all.map((target, index) => [target, keys("a", index + 1)]));
    // The first has no kernels: it is listed only, as before.
    const listed = ["gfx90a:sramecc+", ...all];
    const input = tree.write("a.kpack", await archiveBytes({ targets, listed }));
    const { status, text } = await runCommand(
      addShrink,
      "shrink",
      input,
      "--keep",
      "gfx90a:xnack-",
      "-o",
      tree.at("b.kpack"),
      "--json",
    );
    assert.equal(status, 0);
    const document: unknown = JSON.parse(text);
    assert.partialDeepStrictEqual(document, {
      targets: [
        { target: "gfx90a", stays: true },
        { target: "gfx90a:xnack+", stays: false },
        { target: "gfx90a:xnack-", stays: true },
        { target: "gfx942", stays: false },
      ],
      items: [
        {
          action: "rewrite",
          targets: ["gfx90a:sramecc+", "gfx90a", "gfx90a:xnack-"],
          droppedTargets: ["gfx90a:xnack+", "gfx942"],
        },
      ],
    });
    await using archive = await openArchive(await openFile(tree.at("b.kpack")));
    assert.deepEqual(archive.targets, ["gfx90a:sramecc+", "gfx90a", "gfx90a:xnack-"]);
    assert.deepEqual(
      Map.groupBy(archive.entries, ({ target }) => target)
        .entries()
        .map(([target, entries]) => [target, entries.length])
        .toArray(),
      [
        ["gfx90a", 1],
        ["gfx90a:xnack-", 3],
      ],
    );
  });

  it("recompresses when it is asked to", async () => {
    using tree = new TemporaryTree();
    const input = tree.write("a.kpack", await archiveBytes({ targets: { gfx942: keys("a", 3) } }));
    const same = await runCommand(
      addShrink,
      "shrink",
      input,
      "--keep",
      "gfx942",
      "-o",
      tree.at("same.kpack"),
      "-q",
    );
    assert.equal(same.status, 0);
    assert.deepEqual(readFileSync(tree.at("same.kpack")), readFileSync(input));
    const plain = await runCommand(
      addShrink,
      "shrink",
      input,
      "--keep",
      "gfx942",
      "-o",
      tree.at("none.kpack"),
      "-q",
      "--scheme",
      "none",
    );
    assert.equal(plain.status, 0);
    await using archive = await openArchive(await openFile(tree.at("none.kpack")));
    assert.equal(archive.schemeName, "none");
    const level = await runCommand(
      addShrink,
      "shrink",
      input,
      "--keep",
      "gfx942",
      "-o",
      tree.at("level.kpack"),
      "-q",
      "--level",
      "19",
    );
    assert.equal(level.status, 0);
    assert.ok(statSync(tree.at("level.kpack")).size <= statSync(input).size + 100);
  });
});

describe("what shrink refuses", () => {
  it("leaves nothing behind", async () => {
    using tree = await installTree();
    const run = async (...args: readonly string[]): Promise<number> =>
      (await runCommand(addShrink, "shrink", tree.at("in"), ...args, "-q")).status;
    const before = contents(tree.at("in"));
    assert.equal(await run("--keep", "gfx1201", "-o", tree.at("out")), 1);
    assert.equal(await run("--keep", "gfx942", "-o", tree.at("in/out")), 2);
    assert.equal(await run("--keep", "gfx942", "-o", tree.at("in")), 2);
    assert.equal(await run("--keep", "gfx942"), 2);
    assert.equal(await run("-o", tree.at("out")), 2);
    tree.link("elsewhere", "in");
    assert.equal(await run("--keep", "gfx942", "-o", tree.at("elsewhere/out")), 2);
    tree.write("taken/file", "x");
    assert.equal(await run("--keep", "gfx942", "-o", tree.at("taken")), 2);
    const error = await kpackError(
      () => planShrink({ inputs: [tree.at("in")], keep: ["gfx1201"] }),
      "NOTHING_FOUND",
      /^--keep$/,
    );
    assert.match(String(error.found), /gfx1100, gfx9-4-generic, gfx90a/);
    assert.deepEqual(contents(tree.at("in")), before);
    assert.deepEqual(readdirSync(tree.path).toSorted(), ["elsewhere", "in", "taken"]);
    unlock(tree);
  });

  it("a broken archive stops the work before anything is written", async () => {
    using tree = await installTree();
    tree.write("in/.kpack/broken.kpack", "KPAK");
    await kpackError(
      () => shrink({ inputs: [tree.at("in")], keep: ["gfx942"], output: tree.at("out") }),
      "TRUNCATED",
    );
    assert.deepEqual(readdirSync(tree.path), ["in"]);
    unlock(tree);
  });

  it("and an empty folder is taken as the output", async () => {
    using tree = await installTree();
    mkdirSync(tree.at("out"));
    await shrink({ inputs: [tree.at("in")], keep: ["gfx942"], output: tree.at("out") });
    assert.ok(existsSync(tree.at("out/bin/tool")));
    unlock(tree);
  });

  it("an abort takes away what was begun", async () => {
    using tree = await installTree();
    const controller = new AbortController();
    const stop = shrink({
      inputs: [tree.at("in")],
      keep: ["gfx942"],
      output: tree.at("out"),
      onProgress: () => controller.abort(new Error("enough")),
      signal: controller.signal,
    });
    await assert.rejects(stop, /enough/);
    assert.deepEqual(readdirSync(tree.path), ["in"]);
    unlock(tree);
  });
});
