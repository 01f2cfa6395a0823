import assert from "node:assert/strict";
import { test } from "node:test";
import { addDoctor } from "../../src/cli/commands/doctor.ts";
import { addExplain } from "../../src/cli/commands/explain.ts";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { readElfFile } from "../../src/elf/elf-file.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import { diagnose } from "../../src/operations/doctor/doctor.node.ts";
import { classifyDatabaseFile } from "../../src/operations/doctor/kernel-databases.ts";
import { judgeProgramHeaders } from "../../src/operations/doctor/program-headers.ts";
import { parseRecord } from "../../src/operations/doctor/python-packages.ts";
import { memorySource } from "../../src/source/memory-source.ts";
import { buildBundle, compressBundle } from "../bundle/bundle-builder.ts";
import { fixtureBytes, fixturesOf } from "../bundle/host-fixtures.ts";
import { randomNumbers } from "../support/kernels.ts";
import { buildHost } from "../support/host-builder.ts";
import { documentsAt, parseDocument } from "../support/json-document.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

const NAME = "lib/libtorch_hip.so";

/** What public reports of 2026 were about: a small variant that hides the base archive. */
async function torchTree(): Promise<TemporaryTree> {
  const tree = new TemporaryTree();
  const host = { kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 60 };
  tree.write(NAME, buildHost(host));
  const add = async (target: string, count: number): Promise<void> => {
    const content = { groupName: "torch", targets: { [target]: keys(NAME, count) } };
    tree.write(`.kpack/torch_${target}.kpack`, await archiveBytes(content));
  };
  await add("gfx90a", 60);
  await add("gfx90a:xnack-", 1);
  await add("gfx1100", 59);
  tree.write("lib/rocblas/library/TensileLibrary_gfx1100.dat", "x");
  tree.write("lib/rocblas/library/Kernels_gfx1100.co", "x");
  return tree;
}

function stable(text: string, tree: TemporaryTree): string {
  return text
    .replaceAll(tree.path, "TREE")
    .replace(/of [\d.]+ kB and|of [\d.]+ kB, and/, "of SIZE, and")
    .replace(/read [\d.]+ kB/, "read SIZE")
    .replaceAll(/^ *[\d.]+ kB {2}/gm, "   SIZE  ")
    .trimEnd();
}

test("the report shows what is there, what is wrong, and a verdict per GPU", async () => {
  using tree = await torchTree();
  const isas = "gfx90a:sramecc+:xnack-,gfx1201";
  const { status, text } = await runCommand(addDoctor, "doctor", tree.path, "--isa", isas, "--quiet");
  assert.equal(status, 1);
  assert.equal(
    stable(text, tree),
    `
Looked at 6 files of SIZE, and read SIZE of them: 1 host binary of GPU programs and libraries, 3
archives.

Binaries
WRAPPERS  STATE      ARCHIVES  BINARY
      60  converted         3  lib/libtorch_hip.so

Archives
   SIZE  KERNELS  CHECKED  SCHEME           ARCHIVE
   SIZE       59       59  zstd-per-kernel  .kpack/torch_gfx1100.kpack
   SIZE       60       60  zstd-per-kernel  .kpack/torch_gfx90a.kpack
   SIZE        1        1  zstd-per-kernel  .kpack/torch_gfx90a:xnack-.kpack

Wrappers that get a kernel, by the loader of today and that of ROCm up to 7.14
GPU                     FOUND  UP TO 7.14  OF  BINARY
gfx90a:sramecc+:xnack-     60           1  60  lib/libtorch_hip.so
gfx1201                     0           0  60  lib/libtorch_hip.so

Kernel databases
LIBRARY  TARGET   FILES  CODE  INDEX  FOLDER
rocblas  gfx1100      2     1      1  lib/rocblas/library

error KP312: GPU gets no kernel
  lib/libtorch_hip.so
    for gfx1201: every wrapper gets KPACK_ERROR_ARCHIVE_NOT_FOUND (13): no archive can be opened at
      the 2 paths that it looks at
  What to do: Install the device package of gfx1201, or copy torch_gfx1201.kpack of the same build
  to TREE/.kpack.

warning KP208: variant hides the base archive
  lib/libtorch_hip.so
  .kpack/torch_gfx90a:xnack-.kpack
    for gfx90a:sramecc+:xnack-: 59 wrapper(s) are found in a later archive only, at 1–59
  What to do: Use ROCm later than 7.14, or merge the two archives.

warning KP602: kernel database lacks the GPU
  lib/rocblas/library
    rocblas has files for gfx1100, none for gfx90a:sramecc+:xnack-
  lib/rocblas/library
    rocblas has files for gfx1100, none for gfx1201
  What to do: Install the library's files for this GPU.

gfx90a:sramecc+:xnack-: loads every kernel
  60 of 60 wrappers (100.0%); with ROCm up to 7.14: 1

gfx1201, taken to run gfx12-generic too: gets no kernel
  0 of 60 wrappers (0.0%)
  lacks kernels: lib/libtorch_hip.so

1 error, 3 warnings, 0 notes; "kpack explain CODE" says more`.trimStart(),
  );
  for (const line of stable(text, tree).split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
});

test("--json has a row for each binary and target", async () => {
  using tree = await torchTree();
  const { status, text } = await runCommand(addDoctor, "doctor", tree.path, "--json");
  assert.equal(status, 0, "warnings are no errors");
  const document = parseDocument(text.replaceAll(tree.path, "TREE"));
  assert.deepEqual(Object.keys(document), [
    "schema",
    "paths",
    "isas",
    "deep",
    "files",
    "links",
    "totalSize",
    "bytesRead",
    "binaries",
    "archives",
    "coverage",
    "packages",
    "databases",
    "findings",
    "verdicts",
    "notes",
  ]);
  assert.equal(document["schema"], "kpack/doctor/1");
  const rows = documentsAt(document, "coverage");
  assert.deepEqual(
    rows.find(({ isa }) => isa === "gfx1100"),
    {
      binary: "TREE/lib/libtorch_hip.so",
      isa: "gfx1100",
      isas: ["gfx1100"],
      wrappers: 60,
      missing: [59],
      missingBefore: [59],
      archives: [
        { path: "TREE/.kpack/torch_gfx1100.kpack", wrappers: Array.from({ length: 59 }, (_, at) => at) },
      ],
    },
  );
  const variant = rows.find(({ isa }) => isa === "gfx90a:xnack-") ?? assert.fail();
  assert.deepEqual(
    [variant["missing"], variant["missingBefore"]],
    [[], Array.from({ length: 59 }, (_, at) => at + 1)],
  );
  assert.deepEqual(
    documentsAt(document, "findings").map(({ code }) => code),
    ["KP202", "KP205", "KP208"],
  );
});

test("--report is whole and can be pasted", async () => {
  using tree = new TemporaryTree();
  for (let index = 0; index < 30; index++) tree.write(`${index}.kpack`, "broken");
  const { text } = await runCommand(addDoctor, "doctor", tree.path, "--report");
  assert.match(text, /^```text\nkpack doctor on /);
  assert.equal(text.match(/^ {2}\d+\.kpack$/gm)?.length, 30);
  const short = await runCommand(addDoctor, "doctor", tree.path);
  assert.match(short.text, /… and 10 more \(--json and --report list all\)[^]*… and 25 more of this kind/);
});

test("a single library is judged with the archives beside it", async () => {
  using tree = await torchTree();
  const report = await diagnose([tree.at(NAME)]);
  assert.equal(report.files, 1);
  assert.equal(report.archives.length, 3);
  assert.deepEqual(
    report.findings.map(({ code }) => code),
    ["KP202", "KP205", "KP208"],
  );
});

test("links are followed once", async () => {
  using tree = await torchTree();
  tree.link("lib/libtorch_hip.so.1", "libtorch_hip.so");
  tree.link("linked", "lib");
  tree.link("loop/up", "..");
  tree.link("dangling", "nowhere");
  const report = await diagnose([tree.path, tree.at("linked")]);
  assert.equal(report.binaries.length, 1);
  assert.equal(report.archives.length, 3);
  assert.ok(report.links >= 1);
});

test("wheels are named with what they brought", async () => {
  using tree = new TemporaryTree();
  const site = "venv/lib/python3.13/site-packages";
  const host = { kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 1 };
  tree.write(`${site}/torch/lib/libtorch_hip.so`, buildHost(host));
  tree.write(
    `${site}/torch-2.13.dist-info/RECORD`,
    "torch/lib/libtorch_hip.so,sha256=a,5\ntorch/__init__.py,,0\n",
  );
  tree.write(`${site}/torch-2.13.dist-info/METADATA`, "Name: torch\nVersion: 2.13.0\n");
  const bytes = await archiveBytes({ targets: { gfx1100: keys(NAME, 1) } });
  tree.write(`${site}/torch/.kpack/torch_gfx1100.kpack`, bytes);
  const device = `${site}/amd_torch_device_gfx1100-2.13.dist-info`;
  tree.write(`${device}/RECORD`, `torch/.kpack/torch_gfx1100.kpack,sha256=b,${bytes.length}\n`);
  tree.write(`${device}/METADATA`, "Name: amd-torch-device-gfx1100\nVersion: 2.13.0\n\nName: no header\n");
  tree.write(`${site}/other-1.dist-info/RECORD`, "other.py,,\n");
  const report = await diagnose([tree.at(site)], { isas: ["gfx1100", "gfx1201"] });
  assert.deepEqual(
    report.packages.map(({ name, version, files }) => [name, version, files.length]),
    [
      ["amd-torch-device-gfx1100", "2.13.0", 1],
      ["torch", "2.13.0", 1],
    ],
  );
  assert.deepEqual(
    report.findings.map(({ code }) => code),
    ["KP312"],
  );
  assert.match(report.findings[0]?.remedy ?? "", /pip install "torch\[device-gfx1201\]"/);
  assert.deepEqual(
    report.verdicts.map(({ loads }) => loads),
    ["yes", "no"],
  );
});

test("a library without any archive names the package of the GPU", async () => {
  using tree = new TemporaryTree();
  const path = "site-packages/torch/lib/libtorch_hip.so";
  tree.write(
    path,
    buildHost({ kernelName: NAME, searchPaths: ["../.kpack/torch_@GFXARCH@.kpack"], wrappers: 1 }),
  );
  const { findings } = await diagnose([tree.path], { isas: ["gfx1201"] });
  assert.deepEqual(
    findings.map(({ code }) => code),
    ["KP303"],
  );
  assert.match(findings[0]?.remedy ?? "", /amd-torch-device-gfx1201/);
});

test("payloads of compressed bundles are left alone, unless --deep asks for them", async () => {
  using tree = new TemporaryTree();
  const content = buildBundle([{ id: "hipv4-amdgcn-amd-amdhsa--gfx1100", content: noise(400_000) }]);
  const bundles = compressBundle(content, { version: 2 });
  tree.write("fat.so", buildHost({ wrappers: 1, bundles, withoutMetadata: true }));
  const shallow = await diagnose([tree.path], { isas: ["gfx1100"] });
  assert.equal(shallow.binaries[0]?.targets, undefined);
  assert.ok(shallow.bytesRead < 20_000, `${shallow.bytesRead} bytes`);
  assert.deepEqual(shallow.verdicts[0]?.loads, "unknown");
  const deep = await diagnose([tree.path], { isas: ["gfx1100"], deep: true });
  assert.deepEqual(deep.binaries[0]?.targets, ["gfx1100"]);
  assert.deepEqual(deep.verdicts[0]?.loads, "yes");
});

test("a survey reads little of large archives", async () => {
  using tree = new TemporaryTree();
  const kernels = keys(NAME, 60).map((key, index): [string, Uint8Array] => {
    const bytes = codeObject("gfx1100", key, 100_000);
    bytes.set(noise(100_000 - 64, index), 64);
    return [key, bytes];
  });
  const host = { kernelName: NAME, searchPaths: ["../.kpack/@GFXARCH@.kpack"], wrappers: 60 };
  tree.write(NAME, buildHost(host));
  tree.write(".kpack/gfx1100.kpack", await archiveBytes({ targets: { gfx1100: kernels } }));
  const report = await diagnose([tree.path]);
  assert.deepEqual(report.findings, []);
  assert.ok(report.bytesRead < report.totalSize / 15, `${report.bytesRead} of ${report.totalSize}`);
  assert.equal(report.archives[0]?.kernelsChecked, 60, "every kernel's first bytes were looked at");
});

test("files of kernel databases are known by their names", () => {
  const known: readonly (readonly [string, string | undefined])[] = [
    ["/r/lib/rocblas/library/TensileLibrary_Type_HH_gfx90a.dat", "rocblas index gfx90a"],
    ["/r/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "rocblas code gfx90a:xnack+"],
    ["/r/lib/rocblas/library/TensileLibrary.dat", "rocblas index undefined"],
    ["/r/lib/hipblaslt/library/gfx1201/Kernels.co", "hipblaslt code gfx1201"],
    ["/r/lib/hipsparselt/library/x_gfx942.co", "hipsparselt code gfx942"],
    ["/r/share/miopen/db/gfx90a68.HIP.fdb.txt", "miopen find-database gfx90a"],
    ["/r/share/miopen/db/gfx1030_36.db.txt", "miopen find-database gfx1030"],
    ["/r/share/miopen/db/gfx942130.kdb", "miopen kernel-database gfx942"],
    ["/r/share/miopen/db/gfx942.tn.model", "miopen model gfx942"],
    ["/r/lib/aotriton.images/kernels/gfx11xx/a.hsaco", "aotriton code gfx11"],
    ["/r/kernel.co", "other code undefined"],
    ["/r/lib/rocblas/library/readme.txt", undefined],
    ["/r/readme.dat", undefined],
  ];
  for (const [path, expected] of known) {
    const file = classifyDatabaseFile(path);
    assert.equal(file && `${file.library} ${file.kind} ${file.target}`, expected, path);
  }
});

test("lines of RECORD may be quoted", () => {
  assert.deepEqual(parseRecord('a/b.py,sha256=x,12\r\n"c,""d"".so",,\n../../bin/x,,7\n\nbad', "/s"), [
    { path: "/s/a/b.py", size: 12 },
    { path: '/s/c,"d".so', size: undefined },
    { path: "/bin/x", size: 7 },
  ]);
});

for (const [name, file] of fixturesOf("transformed")) {
  if (file.format !== "elf") continue;
  test(`program headers of ${name}`, async () => {
    const bytes = fixtureBytes(name);
    const faults = judgeProgramHeaders(await readElfFile(memorySource(bytes)), bytes.length);
    assert.deepEqual(faults.damage, []);
    assert.equal(faults.misplaced !== undefined, /fx_app_(?:nopie|pie)$/.test(name));
  });
}

for (const name of ["libfx_multi3.so", "fx_app_nopie", "fx_app_pie", "libfx_relr.so"]) {
  test(`program headers of C/${name} have no fault`, async () => {
    const bytes = fixtureBytes(`C/${name}`);
    const faults = judgeProgramHeaders(await readElfFile(memorySource(bytes)), bytes.length);
    assert.deepEqual(faults, { damage: [], misplaced: undefined, sharedOffsets: [] });
  });
}

test("damaged files become findings, never a crash", async () => {
  using tree = new TemporaryTree();
  const random = randomNumbers(4);
  const archive = await archiveBytes({ targets: { gfx906: keys(NAME, 3), gfx1100: keys(NAME, 3) } });
  const host = buildHost({ kernelName: NAME, searchPaths: [".kpack/@GFXARCH@.kpack"], wrappers: 3 });
  const originals = [
    archive,
    host,
    fixtureBytes("E/lib/libfx_multi3.so"),
    fixtureBytes("E/lib/fxw_single.dll"),
  ];
  for (let round = 0; round < 25; round++) {
    for (const [index, original] of originals.entries()) {
      for (let copy = 0; copy < 4; copy++) {
        const bytes = original.slice();
        for (let change = 0; change <= copy * 2; change++) {
          // The tables stand at the beginning or the end.
          const at = Math.floor(random() * Math.min(bytes.length, 6000));
          bytes[random() < 0.5 ? at : bytes.length - 1 - at] = Math.floor(random() * 256);
        }
        tree.write(`${index}-${copy}${index === 0 ? ".kpack" : ".so"}`, bytes);
      }
    }
    const report = await diagnose([tree.path], { deep: round % 5 === 0 });
    assert.ok(report.findings.length > 0);
  }
});

test("an abort ends the work, and a missing path is no answer", async () => {
  using tree = await torchTree();
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(diagnose([tree.path], { signal }), /enough/);
  await assert.rejects(diagnose([tree.at("none")]), (error) => isKpackError(error, "READ_FAILED"));
  assert.equal((await runCommand(addDoctor, "doctor", tree.at("none"))).status, 2);
});

test("codes are explained one by one or listed", async () => {
  const one = await runCommand(addExplain, "explain", "kp303");
  assert.equal(one.status, 0);
  assert.equal(
    one.text,
    `
KP303: no archive is where the binary looks (error)

The loader fails with KPACK_ERROR_ARCHIVE_NOT_FOUND (13) on every GPU.

Usual cause: The library was copied without its .kpack folder, or the device package is missing.

What to do: Copy the folder to where the evidence says, or install the device package of the GPU.
`.trimStart(),
  );
  const all = await runCommand(addExplain, "explain");
  assert.match(all.text, /^KP101 {2}note {6}binary holds its kernels itself$/m);
  for (const line of all.text.split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
  const json = parseDocument((await runCommand(addExplain, "explain", "KP101", "--json")).text);
  assert.equal(json["schema"], "kpack/explain/1");
  assert.equal((await runCommand(addExplain, "explain", "KP999")).status, 1);
});

function noise(size: number, seed = 1): Uint8Array {
  const random = randomNumbers(seed);
  return Uint8Array.from({ length: size }, () => Math.floor(random() * 256));
}
