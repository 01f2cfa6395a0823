import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  type CompressionScheme,
  nodeCodecs,
  none,
  openArchive,
  openFile,
  zstdPerKernel,
} from "../../src/node.ts";
import { verifyArchive } from "../../src/operations/verify.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kernelsToWrite, kernelToWrite, sampleKernel, sha256, writeToMemory } from "../support/kernels.ts";
import { digestsOf, packed } from "../support/pack-inputs.ts";
import { parseJson } from "../support/parse-json.ts";
import { tempFolder } from "../support/temp-folder.ts";

const PYTHON = "/usr/bin/python3";
const SCRIPT = join(import.meta.dirname, "read_kpack.py");

interface PythonAnswer {
  readonly group: string;
  readonly family: string;
  readonly stored: number;
  readonly kernels: Readonly<Record<string, string>>;
}

function python(...args: readonly string[]): PythonAnswer {
  const { status, stdout, stderr } = spawnSync(PYTHON, [SCRIPT, ...args], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return parseJson<PythonAnswer>(stdout);
}

const isMissing = spawnSync(PYTHON, ["-c", "import msgpack, zstandard"]).status !== 0;
assert.ok(!isMissing || !process.env["CI"], "in CI the packages are installed");
const skip = isMissing && "Debian's python3-zstandard and python3-msgpack are not installed";

describe("archives of ours, read by Python", { skip }, () => {
  const schemes: readonly (readonly [string, CompressionScheme])[] = [
    ["none", none],
    ["zstd-per-kernel", zstdPerKernel({ codecs: nodeCodecs })],
    ["zstd-per-kernel, level 22", zstdPerKernel({ codecs: nodeCodecs, level: 22 })],
  ];
  for (const [title, scheme] of schemes) {
    for (const extraFields of [true, false]) {
      for (const shareIdentical of [true, false]) {
        it(`${title}, extra fields ${extraFields}, sharing ${shareIdentical}`, async (context) => {
          const kernels = Array.from({ length: 30 }, (_, index) =>
            sampleKernel(index % 20, 50 + 400 * (index % 20)),
          );
          const unicode = kernelToWrite(kernels[3] ?? new Uint8Array(), {
            binaryKey: "lib/пример-例え-🚀.so.1#7",
            target: "gfx942",
          });
          const more = { scheme, extraFields, shareIdentical };
          const { bytes, summary } = await writeToMemory([...kernelsToWrite(kernels), unicode], more);
          const path = join(tempFolder(context), "a.kpack");
          writeFileSync(path, bytes);
          const answer = python("read", path);
          assert.deepEqual(answer.kernels, await digestsOf(path));
          assert.equal(Object.values(answer.kernels).at(-1), sha256(kernels[3] ?? new Uint8Array()));
          assert.deepEqual([answer.stored, summary.kernels], shareIdentical ? [20, 20] : [31, 31]);
          assert.deepEqual([answer.group, answer.family], ["g", "gfx9X"]);
        });
      }
    }
  }

  it("packed from fat binaries", async (context) => {
    const folder = tempFolder(context);
    for (const name of ["C/libfx_rdc2.so", "C/libfx_compressed.so", "C/fxw_multi.exe"]) {
      const output = join(folder, "a.kpack");
      await packed({ inputs: [fixturePath(name)], output });
      assert.deepEqual(python("read", output).kernels, await digestsOf(output), name);
    }
  });
});

describe("archives of Python's, read by us", { skip }, () => {
  for (const scheme of ["none", "zstd-per-kernel"]) {
    it(scheme, async (context) => {
      const path = join(tempFolder(context), "python.kpack");
      const answer = python("write", path, scheme);
      assert.deepEqual(await digestsOf(path), answer.kernels);
      await using archive = await openArchive(await openFile(path));
      assert.deepEqual(archive.findings, []);
      assert.equal(archive.groupName, "from python");
      const report = await verifyArchive(archive);
      assert.deepEqual(
        report.readers.map(({ accepts }) => accepts),
        [true, true, true, true],
      );
    });
  }
});
