import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Finding, OnFinding } from "../../src/errors/finding.ts";
import { type KernelToWrite, none, openArchive, openFile } from "../../src/node.ts";
import { extractedPath, extractKernels } from "../../src/operations/extract.node.ts";
import { type ExpectedKernel, expectedArchives, fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { kernelToWrite, openBytes, sampleKernel, sha256, writeToMemory } from "../support/kernels.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const A = sampleKernel(1, 500);
const B = sampleKernel(2, 500);

async function extractInto(folder: string, kernels: readonly KernelToWrite[]): Promise<readonly string[]> {
  const { bytes } = await writeToMemory(kernels, { scheme: none });
  const archive = await openBytes(bytes);
  const files = await extractKernels(archive, folder, {
    entries: [...archive.entries],
    onFinding: ({ message }) => assert.fail(message),
  });
  return files.map(({ path }) => path);
}

describe("extract", () => {
  it("gives back the bytes of every good archive", async (context) => {
    const folder = tempFolder(context);
    for (const [name, { expect, kernels }] of expectedArchives) {
      if (expect !== "ok" || !kernels) continue;
      await using archive = await openArchive(await openFile(fixturePath(name)));
      const files = await extractKernels(archive, join(folder, name), {
        entries: [...archive.entries],
        onFinding: ({ message }) => assert.fail(message),
      });
      assert.equal(files.length, kernels.length);
      for (const { binaryKey, target, path, size } of files) {
        const right: ExpectedKernel | undefined = kernels.find(
          ({ binary, arch }) => binary === binaryKey && arch === target,
        );
        const bytes = readFileSync(path);
        assert.deepEqual([sha256(bytes), size], [right?.sha256, right?.size], name);
      }
      assert.equal(filesBelow(join(folder, name)).length, kernels.length, name);
    }
  });

  it("never leaves its folder, whatever keys and targets are", async (context) => {
    const folder = tempFolder(context);
    const out = join(folder, "deep/er/out");
    const names = [
      "../evil",
      "../../../../evil",
      "lib/../../evil",
      "/tmp/kpack-evil",
      "//server/share",
      "\\\\server\\share\\x",
      "..\\evil2",
      "C:/evil",
      "C:evil",
      "nul",
      "lib/CON.so",
      "com1",
      "a\0b",
      "..",
      ".",
      "",
      "a//b",
      "trailing. ",
      "x".repeat(300),
      "é".repeat(200),
      "~/.bashrc",
    ];
    const kernels = names.flatMap((binaryKey, index) => [
      kernelToWrite(sampleKernel(index, 64), { binaryKey, target: "gfx942" }),
      kernelToWrite(sampleKernel(100 + index, 64), { binaryKey: "k", target: binaryKey }),
    ]);
    const paths = await extractInto(out, kernels);
    assert.equal(new Set(paths).size, kernels.length);
    assert.equal(filesBelow(out).length, kernels.length);
    assert.equal(filesBelow(folder).length, kernels.length, "a file outside");
  });

  it("writes two keys that differ only in what is escaped to two files", async (context) => {
    const folder = tempFolder(context);
    const keys = ["a:b", "a%3Ab", "a%253Ab", "..", "%2E%2E", "x".repeat(299), "x".repeat(300)];
    const kernels = keys.map((binaryKey, index) =>
      kernelToWrite(sampleKernel(index, 64), { binaryKey, target: "t" }),
    );
    const paths = await extractInto(folder, kernels);
    for (const [index, path] of paths.entries())
      assert.deepEqual(new Uint8Array(readFileSync(path)), sampleKernel(index, 64));
    assert.equal(new Set(paths).size, keys.length);
    const targets = ["gfx90a:xnack-", "gfx90a_xnack-", "gfx90a%3Axnack-"];
    assert.equal(new Set(targets.map((target) => extractedPath("k", target))).size, 3);
    assert.equal(extractedPath("lib/a.so#0", "gfx90a:xnack-"), "gfx90a_xnack-/lib/a.so#0.hsaco");
  });

  it("does not follow links that lead out of the folder, and makes nothing behind them", async (context) => {
    const folder = tempFolder(context);
    mkdirSync(join(folder, "outside"));
    mkdirSync(join(folder, "out/gfx942"), { recursive: true });
    symlinkSync(join(folder, "outside"), join(folder, "out/gfx1100"));
    symlinkSync("../../outside", join(folder, "out/gfx942/lib"));
    for (const entry of [
      { binaryKey: "a", target: "gfx1100" },
      { binaryKey: "new/folder/a", target: "gfx1100" },
      { binaryKey: "lib/new/a", target: "gfx942" },
    ]) {
      await kpackError(
        async () => await extractInto(join(folder, "out"), [kernelToWrite(A, entry)]),
        "WRITE_FAILED",
      );
    }
    assert.deepEqual(filesBelow(join(folder, "outside")), []);
    assert.deepEqual(readdirSync(join(folder, "outside")), []);
    // A link that stays inside is used, and the folder itself may be reached through one.
    mkdirSync(join(folder, "out/real"));
    symlinkSync("real", join(folder, "out/gfx906"));
    symlinkSync("out", join(folder, "link"));
    await extractInto(join(folder, "link"), [kernelToWrite(A, { binaryKey: "a", target: "gfx906" })]);
    assert.ok(filesBelow(join(folder, "out")).includes("real/a.hsaco"));
  });

  it("replaces a link under a kernel's own name instead of writing through it", async (context) => {
    const folder = tempFolder(context);
    writeFileSync(join(folder, "precious"), "precious");
    mkdirSync(join(folder, "out/gfx942"), { recursive: true });
    symlinkSync("../../precious", join(folder, "out/gfx942/a.hsaco"));
    const [path = ""] = await extractInto(join(folder, "out"), [
      kernelToWrite(A, { binaryKey: "a", target: "gfx942" }),
    ]);
    assert.equal(readFileSync(join(folder, "precious"), "utf8"), "precious");
    assert.deepEqual(new Uint8Array(readFileSync(path)), A);
  });

  it("passes over a kernel that is damaged, says so, and gives the others", async (context) => {
    const folder = tempFolder(context);
    const { bytes } = await writeToMemory(
      [kernelToWrite(A, { binaryKey: "a", target: "t" }), kernelToWrite(B, { binaryKey: "b", target: "t" })],
      { scheme: none },
    );
    bytes[64] = (bytes[64] ?? 0) ^ 1; // only the hash can tell
    const archive = await openBytes(bytes);
    const findings: Finding[] = [];
    const files = await extractKernels(archive, folder, {
      entries: [...archive.entries],
      onFinding: (finding) => void findings.push(finding),
    });
    assert.deepEqual(
      files.map(({ binaryKey }) => binaryKey),
      ["b"],
    );
    assert.deepEqual(
      findings.map(({ code, severity, field }) => [code, severity, field]),
      [["CHECKSUM_MISMATCH", "error", "a t"]],
    );
    assert.deepEqual(filesBelow(folder), ["t/b.hsaco"]);
  });

  it("decodes a kernel once for all entries that it is stored for", async (context) => {
    const folder = tempFolder(context);
    const { bytes } = await writeToMemory(
      ["a", "b", "c"].map((binaryKey) =>
        kernelToWrite(binaryKey === "b" ? B : A, { binaryKey, target: "t" }),
      ),
      { scheme: none },
    );
    const archive = await openBytes(bytes);
    const entries = [...archive.entries];
    const decoded = context.mock.method(archive.decompressor, "decompressKernel");
    const onFinding = context.mock.fn<OnFinding>();
    const files = await extractKernels(archive, folder, { entries, onFinding });
    assert.equal(decoded.mock.callCount(), 2);
    assert.deepEqual(
      files.map(({ binaryKey, path }) => [binaryKey, sha256(readFileSync(path))]),
      [
        ["a", sha256(A)],
        ["b", sha256(B)],
        ["c", sha256(A)],
      ],
    );
    bytes[64] = (bytes[64] ?? 0) ^ 1;
    const damaged = await openBytes(bytes);
    await extractKernels(damaged, folder, { entries: [...damaged.entries], onFinding });
    assert.deepEqual(
      onFinding.mock.calls.map(({ arguments: [{ code, field }] }) => [code, field]),
      [
        ["CHECKSUM_MISMATCH", "a t"],
        ["CHECKSUM_MISMATCH", "c t"],
      ],
    );
  });

  it("stops when it is aborted and leaves no temporary file", async (context) => {
    const folder = tempFolder(context);
    const kernels = Array.from({ length: 50 }, (_, index) =>
      kernelToWrite(sampleKernel(index, 100), { binaryKey: `k${index}`, target: "t" }),
    );
    const { bytes } = await writeToMemory(kernels, { scheme: none });
    const archive = await openBytes(bytes);
    const abort = new AbortController();
    await assert.rejects(
      extractKernels(archive, folder, {
        entries: [...archive.entries],
        jobs: 4,
        onFinding: ({ message }) => assert.fail(message),
        onProgress: ({ done }) => {
          if (done === 10) abort.abort(new Error("enough"));
        },
        signal: abort.signal,
      }),
      /enough/,
    );
    assert.deepEqual(
      filesBelow(folder).filter((name) => !/^t\/k\d+\.hsaco$/.test(name)),
      [],
    );
  });
});
