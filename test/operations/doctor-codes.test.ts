import assert from "node:assert/strict";
import {
  chmodSync,
  copyFileSync,
  closeSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { test } from "node:test";
import { diagnose, type DiagnoseOptions } from "../../src/operations/doctor/doctor.node.ts";
import { FINDING_KINDS, findKind } from "../../src/operations/doctor/finding-codes.ts";
import { renderFindingsPage } from "../../src/operations/doctor/findings-page.ts";
import { none } from "../../src/node.ts";
import { buildBundle } from "../bundle/bundle-builder.ts";
import { fixtureBytes } from "../bundle/host-fixtures.ts";
import { entryOf, noneArchive } from "../support/archive-builder.ts";
import { buildHost, type HostToBuild, type Segment } from "../support/host-builder.ts";
import { map } from "../support/raw-msgpack.ts";
import { archiveBytes, codeObject, keys, TemporaryTree } from "../support/trees.ts";

/** A tree for each code, and which codes doctor finds in it: those and no others. */

const NAME = "lib/liba.so";
const HOST: HostToBuild = { kernelName: NAME, searchPaths: ["../.kpack/g_@GFXARCH@.kpack"], wrappers: 2 };
const LOAD = 1;

type Build = (tree: TemporaryTree) => Promise<void> | void;

interface Case {
  readonly codes: readonly string[];
  readonly build: Build;
  readonly options?: DiagnoseOptions;
  /** Of the first file of the first finding with the first code. */
  readonly file: RegExp;
  readonly evidence: RegExp;
}

/** A library and its archives, all right; then what the case changes. */
async function clean(tree: TemporaryTree, host: Partial<HostToBuild> = {}, name = NAME): Promise<void> {
  tree.write(name, buildHost({ ...HOST, ...host }));
  for (const target of ["gfx906", "gfx1100"]) {
    tree.write(`.kpack/g_${target}.kpack`, await archiveBytes({ targets: { [target]: keys(NAME, 2) } }));
  }
}

function withSegments(change: (segments: readonly Segment[]) => readonly Segment[], type?: number): Build {
  return (tree) => clean(tree, { segments: change, ...(type !== undefined && { type }) });
}

/** By target, the names of compiled kernels, under the indexes 0, 1 … */
async function withRealKernels(
  tree: TemporaryTree,
  kernels: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  tree.write(NAME, buildHost(HOST));
  for (const [target, names] of Object.entries(kernels)) {
    const content = names.map((name, index): [string, Uint8Array] => [
      `${NAME}#${index}`,
      fixtureBytes(`A/hsaco/${name}_${target}.hsaco`),
    ]);
    tree.write(`.kpack/g_${target}.kpack`, await archiveBytes({ targets: { [target]: content } }));
  }
}

const FAT = buildHost({
  wrappers: 1,
  bundles: buildBundle([{ id: "hipv4-amdgcn-amd-amdhsa--gfx906", content: codeObject("gfx906") }]),
  withoutMetadata: true,
});

const DIST = "site-packages/amd_torch-1.dist-info";

async function wheel(tree: TemporaryTree, record: string): Promise<void> {
  tree.write("site-packages/torch/lib/liba.so", buildHost(HOST));
  for (const target of ["gfx906"]) {
    tree.write(
      `site-packages/torch/.kpack/g_${target}.kpack`,
      await archiveBytes({ targets: { [target]: keys(NAME, 2) } }),
    );
  }
  tree.write(`${DIST}/METADATA`, "Metadata-Version: 2.4\nName: amd-torch\nVersion: 2.13\n");
  tree.write(`${DIST}/RECORD`, record);
}

const CASES: Readonly<Record<string, Case>> = {
  KP101: {
    codes: ["KP101"],
    build: (tree) => void tree.write(NAME, FAT),
    file: /liba/,
    evidence: /1 wrapper.*gfx906/,
  },
  "KP101, compressed": {
    codes: ["KP101"],
    build: (tree) => void tree.write(NAME, fixtureBytes("C/libfx_single.so")),
    file: /liba/,
    evidence: /1 wrapper/,
  },
  KP102: {
    codes: ["KP102"],
    build: (tree) => void tree.write(NAME, buildHost({ ...HOST, magic: ["HIPK", "HIPF"] })),
    file: /liba/,
    evidence: /HALF_CONVERTED/,
  },
  KP103: {
    codes: ["KP103"],
    build: (tree) => void tree.write(NAME, buildHost({ wrappers: 1, searchPaths: ["x"] })),
    file: /liba/,
    evidence: /kernel_name/,
  },
  KP104: {
    codes: ["KP104", "KP303", "KP402"],
    build: (tree) => void tree.write("lib/fx_app_nopie", fixtureBytes("E/lib/fx_app_nopie")),
    file: /fx_app_nopie/,
    evidence: /wrapper\[0\]/,
  },
  KP105: {
    codes: ["KP105"],
    build: (tree) => void tree.write(NAME, buildHost(HOST).subarray(0, 5000)),
    file: /liba/,
    evidence: /OUT_OF_BOUNDS|TRUNCATED/,
  },
  KP201: {
    codes: ["KP201", "KP205"],
    build: (tree) => clean(tree, { wrappers: 3 }).then(() => undefined),
    file: /liba/,
    evidence: /no target has #2/,
  },
  KP202: {
    codes: ["KP202"],
    build: async (tree) => {
      await clean(tree);
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: keys(NAME, 1, 1) } }));
    },
    file: /liba/,
    evidence: /gfx906: 1 of 2 wrappers get KPACK_ERROR_KERNEL_NOT_FOUND \(5\), at 0$/,
  },
  KP203: {
    codes: ["KP203"],
    build: (tree) => clean(tree, { wrappers: 1 }),
    file: /liba/,
    evidence: /#1, and the library has 1 wrapper/,
  },
  KP204: {
    codes: ["KP204"],
    build: (tree) => clean(tree, { wrappers: [1, 0] }),
    file: /liba/,
    evidence: /wrapper 0 asks for #1/,
  },
  "KP204, twice": {
    codes: ["KP203", "KP204"],
    build: (tree) => clean(tree, { wrappers: [0, 0] }),
    file: /liba/,
    evidence: /asks for|gfx/,
  },
  KP205: {
    codes: ["KP202", "KP205"],
    build: async (tree) => {
      await clean(tree);
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: keys(NAME, 1) } }));
    },
    file: /liba/,
    evidence: /gfx906/,
  },
  KP206: {
    codes: ["KP206"],
    build: async (tree) => {
      tree.write(NAME, buildHost({ ...HOST, wrappers: 1 }));
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: [NAME] } }));
    },
    file: /liba/,
    evidence: /without #N/,
  },
  KP207: {
    codes: ["KP207"],
    build: async (tree) => {
      tree.write(NAME, buildHost(HOST));
      tree.write(
        ".kpack/g_gfx906.kpack",
        await archiveBytes({ targets: { gfx906: keys("lib/libb.so", 2) } }),
      );
    },
    file: /liba/,
    evidence: /no archive has a key lib\/liba\.so#N/,
  },
  KP208: {
    codes: ["KP208"],
    build: async (tree) => {
      await clean(tree);
      tree.write(".kpack/g_gfx90a.kpack", await archiveBytes({ targets: { gfx90a: keys(NAME, 2) } }));
      const variant = { targets: { "gfx90a:xnack-": keys(NAME, 1) } };
      tree.write(".kpack/g_gfx90a:xnack-.kpack", await archiveBytes(variant));
    },
    file: /liba/,
    evidence: /gfx90a:xnack-: 1 wrapper\(s\) are found in a later archive only, at 1$/,
  },
  KP209: {
    codes: ["KP202", "KP209"],
    build: (tree) => withRealKernels(tree, { gfx1100: ["vadd", "reduce"], gfx906: ["reduce"] }),
    file: /liba/,
    evidence: /#0 is \S*reduce\S* for gfx906, and \S*vadd\S* for gfx1100, which has the former at #1/,
  },
  "KP202, counted by position": {
    codes: ["KP202"],
    build: (tree) => withRealKernels(tree, { gfx1100: ["vadd", "reduce"], gfx906: ["vadd"] }),
    file: /liba/,
    evidence: /gfx906: 1 of 2 wrappers get .*, at 1$/,
  },
  KP301: {
    codes: ["KP301"],
    build: async (tree) => {
      await clean(tree);
      tree.write(".kpack/g_gfx90a.kpack", "version https://git-lfs.github.com/spec/v1");
    },
    file: /g_gfx90a/,
    evidence: /BAD_MAGIC/,
  },
  "KP301, nobody's scheme": {
    codes: ["KP301", "KP312"],
    build: async (tree) => {
      await clean(tree);
      const entries = map(
        [`${NAME}#0`, map(["gfx90a", entryOf(0, 64)])],
        [`${NAME}#1`, map(["gfx90a", entryOf(0, 64)])],
      );
      const toc: readonly [string, unknown][] = [
        ["gfx_arches", ["gfx90a"]],
        ["compression_scheme", "solid"],
      ];
      const bytes = noneArchive([codeObject("gfx90a", 0, 64)], { entries, toc });
      tree.write(".kpack/g_gfx90a.kpack", bytes);
    },
    file: /g_gfx90a/,
    evidence: /does not know the scheme solid/,
  },
  KP302: {
    codes: ["KP302"],
    build: async (tree) => {
      await clean(tree);
      const bytes = readFileSync(tree.at(".kpack/g_gfx906.kpack"));
      writeFileSync(tree.at(".kpack/g_gfx906.kpack"), Buffer.concat([bytes, Buffer.alloc(1)]));
    },
    file: /g_gfx906/,
    evidence: /Python tools refuses it: bytes follow the TOC/,
  },
  KP303: {
    codes: ["KP303"],
    build: (tree) => void tree.write(NAME, buildHost(HOST)),
    file: /liba/,
    evidence: /asks for the kernels of lib\/liba\.so/,
  },
  KP304: {
    codes: ["KP304"],
    build: async (tree) => {
      await clean(tree);
      tree.write("other/h_gfx906.kpack", await archiveBytes({ targets: { gfx906: ["b#0"] } }));
    },
    file: /h_gfx906/,
    evidence: /1 converted/,
  },
  KP305: {
    codes: ["KP305"],
    build: async (tree) => {
      await clean(tree);
      const content = { targets: { gfx906: keys(NAME, 2), gfx1200: ["c#0"] }, listed: ["gfx906"] };
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes(content));
    },
    file: /g_gfx906/,
    evidence: /gfx1200/,
  },
  KP306: {
    codes: ["KP306"],
    build: async (tree) => {
      await clean(tree);
      const content = { targets: { gfx906: keys(NAME, 2) }, listed: ["gfx906", "gfx1201"] };
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes(content));
    },
    file: /g_gfx906/,
    evidence: /gfx1201/,
  },
  KP307: {
    codes: ["KP307"],
    build: async (tree) => {
      await clean(tree);
      const kernels = keys(NAME, 2).map((key): [string, Uint8Array] => [
        key,
        codeObject("gfx1101", key, 9000),
      ]);
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: kernels } }));
    },
    file: /g_gfx906/,
    evidence: /built for gfx1101/,
  },
  "KP307, uncompressed": {
    codes: ["KP307"],
    build: async (tree) => {
      await clean(tree);
      const kernels = keys(NAME, 2).map((key): [string, Uint8Array] => [key, noise("gfx1101")]);
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: kernels }, scheme: none }));
    },
    file: /g_gfx906/,
    evidence: /built for gfx1101/,
  },
  KP308: {
    codes: ["KP308"],
    build: async (tree) => {
      const path = "lib/fxw_mingw.dll";
      tree.write(path, fixtureBytes("E/lib/fxw_mingw.dll"));
      const variant = { targets: { "gfx90a:xnack-": keys(path, 2) } };
      tree.write(".kpack/fx_gfx90a:xnack-.kpack", await archiveBytes(variant));
    },
    file: /fx_gfx90a:xnack-/,
    evidence: /Windows/,
  },
  KP309: {
    codes: ["KP309"],
    build: async (tree) => {
      await clean(tree);
      const kernels = keys(NAME, 2).map((key): [string, Uint8Array] => [
        key,
        codeObject("gfx906", key, 20_000),
      ]);
      tree.write(".kpack/g_gfx906.kpack", await archiveBytes({ targets: { gfx906: kernels }, scheme: none }));
    },
    file: /g_gfx906/,
    evidence: /% smaller/,
  },
  KP310: {
    codes: ["KP310"],
    build: async (tree) => {
      for (const [folder, count] of [
        ["a", 2],
        ["b", 3],
      ] as const) {
        tree.write(`${folder}/lib/liba.so`, buildHost({ ...HOST, wrappers: count }));
        const content = { targets: { gfx906: keys(NAME, count) } };
        tree.write(`${folder}/.kpack/g_gfx906.kpack`, await archiveBytes(content));
      }
    },
    file: /a\/\.kpack\/g_gfx906/,
    evidence: /2 kernel/,
  },
  KP311: {
    codes: ["KP302", "KP311"],
    build: async (tree) => {
      await clean(tree);
      truncateSync(tree.at(".kpack/g_gfx906.kpack"), 0);
      // The table of contents at the end of a sparse file: the bytes between belong to nothing.
      const kernel = noise("gfx906");
      const entries = map(
        ...keys(NAME, 2).map((key): [string, unknown] => [key, map(["gfx906", entryOf(0, kernel.length)])]),
      );
      const offset = 2 ** 31;
      const bytes = noneArchive([kernel], {
        entries,
        toc: [["gfx_arches", ["gfx906"]]],
        file: { tocOffset: offset },
      });
      const handle = openSync(tree.at(".kpack/g_gfx906.kpack"), "w");
      const tocStart = 64 + kernel.length;
      writeSync(handle, bytes.subarray(0, tocStart));
      writeSync(handle, bytes.subarray(tocStart), 0, undefined, offset);
      writeSync(handle, new Uint8Array(1), 0, 1, offset + bytes.length - tocStart);
      closeSync(handle);
    },
    file: /g_gfx906/,
    evidence: /./,
  },
  KP312: {
    codes: ["KP312"],
    build: (tree) => clean(tree),
    options: { isas: ["gfx1201"] },
    file: /liba/,
    evidence: /gfx1201: every wrapper gets KPACK_ERROR_ARCHIVE_NOT_FOUND \(13\)/,
  },
  KP313: {
    codes: ["KP202", "KP313"],
    build: async (tree) => {
      await clean(tree);
      const path = tree.at(".kpack/g_gfx906.kpack");
      const bytes = readFileSync(path);
      bytes[500] = (bytes[500] ?? 0) ^ 0xff;
      writeFileSync(path, bytes);
    },
    options: { deep: true },
    file: /g_gfx906/,
    evidence: /damaged|checksum/,
  },
  KP314: {
    codes: ["KP314"],
    build: async (tree) => {
      await clean(tree);
      copyFileSync(tree.at(".kpack/g_gfx906.kpack"), tree.at(".kpack/g_gfx942.kpack"));
    },
    file: /g_gfx942/,
    evidence: /its name is for gfx942, and it holds gfx906 only/,
  },
  KP315: {
    codes: ["KP315"],
    build: async (tree) => {
      await clean(tree);
      tree.link(".kpack/g_gfx942.kpack", "nowhere");
    },
    file: /g_gfx942/,
    evidence: /a symbolic link to nowhere is there/,
  },
  "KP315 of a link to itself": {
    codes: ["KP315"],
    build: async (tree) => {
      await clean(tree);
      tree.link(".kpack/g_gfx942.kpack", "g_gfx942.kpack");
    },
    file: /g_gfx942/,
    evidence: /a symbolic link to g_gfx942\.kpack is there/,
  },
  KP401: {
    codes: ["KP401"],
    build: withSegments(([first, ...rest]) =>
      first ? [{ ...first, fileSize: 4096, memorySize: 4096 }, ...rest] : rest,
    ),
    file: /liba/,
    evidence: /no segment brings \.rocm_kpack_ref to its address/,
  },
  KP402: {
    codes: ["KP402"],
    build: withSegments(([first, ...rest]) => {
      if (!first) return rest;
      // The first 4096 bytes, with the table, at an address of their own behind everything.
      const body = { ...first, offset: 4096, address: first.address + 4096, fileSize: first.fileSize - 4096 };
      const table = { ...first, address: first.address + 0x100000, fileSize: 4096, memorySize: 4096 };
      return [{ ...body, memorySize: body.fileSize }, ...rest, table];
    }, 2),
    file: /liba/,
    evidence: /old kernels say/,
  },
  KP403: {
    codes: ["KP403"],
    build: withSegments((segments) => {
      const [first] = segments;
      const empty = {
        type: LOAD,
        offset: 0,
        address: 0x100000,
        fileSize: 0,
        memorySize: 4096,
        alignment: 4096,
      };
      return first ? [empty, ...segments] : segments;
    }),
    file: /liba/,
    evidence: /zero-filled/,
  },
  KP501: {
    codes: ["KP501"],
    build: (tree) =>
      wheel(tree, "torch/.kpack/g_gfx906.kpack,sha256=x,\ntorch/.kpack/g_gfx1201.kpack,sha256=y,12\n"),
    file: /g_gfx1201/,
    evidence: /amd-torch 2\.13 lists it/,
  },
  KP502: {
    codes: ["KP502"],
    build: (tree) => wheel(tree, '"torch/.kpack/g_gfx906.kpack",sha256=x,12\r\n'),
    file: /g_gfx906/,
    evidence: /lists 12 bytes/,
  },
  KP503: {
    codes: ["KP503"],
    build: async (tree) => {
      await wheel(tree, "torch/.kpack/g_gfx906.kpack,,\n");
      tree.write("site-packages/other-2.dist-info/RECORD", "torch/.kpack/g_gfx906.kpack,,\n");
      tree.write("site-packages/other-2.dist-info/METADATA", "Name: other\nVersion: 2\n");
    },
    file: /g_gfx906/,
    evidence: /amd-torch 2\.13|other 2/,
  },
  KP601: {
    codes: ["KP601"],
    build: (tree) => {
      tree.write("lib/rocblas/library/TensileLibrary_gfx906.dat", "x");
      tree.write("lib/rocblas/library/TensileLibrary_gfx906.co", "x");
      tree.write("lib/rocblas/library/Kernels_gfx90a-xnack+.hsaco", "x");
    },
    file: /rocblas\/library/,
    evidence: /rocblas for gfx90a:xnack\+: 1 code object.*lacks the index/,
  },
  KP602: {
    codes: ["KP602"],
    build: (tree) => void tree.write("share/miopen/db/gfx90a68.kdb", "x"),
    options: { isas: ["gfx1100"] },
    file: /miopen/,
    evidence: /miopen has files for gfx90a, none for gfx1100/,
  },
  KP701: {
    codes: ["KP701"],
    build: (tree) => chmodSync(tree.write(NAME, buildHost(HOST)), 0),
    file: /liba/,
    evidence: /EACCES/,
  },
};

/** A code object that does not compress. */
function noise(target: string): Uint8Array {
  const bytes = codeObject(target, 1, 4000);
  let state = 1;
  for (let at = 64; at < bytes.length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

for (const [name, { codes, build, options, file, evidence }] of Object.entries(CASES)) {
  test(`${name} is found`, async () => {
    using tree = new TemporaryTree();
    await build(tree);
    const { findings } = await (name === "KP701"
      ? asNobody(tree.path, options)
      : diagnose([tree.path], options));
    const described = JSON.stringify(findings, undefined, 1);
    assert.deepEqual([...new Set(findings.map(({ code }) => code))].toSorted(), codes, described);
    const wanted = name.slice(0, 5);
    const finding = findings.find(({ code }) => code === wanted) ?? assert.fail(described);
    assert.match(finding.files[0] ?? "", file);
    assert.match(finding.evidence.join("\n"), evidence);
    assert.equal(finding.severity, findKind(wanted)?.severity);
    assert.notEqual(finding.remedy, "");
  });
}

/** Root may read everything, so as root the diagnosis is made as somebody else. */
async function asNobody(path: string, options: DiagnoseOptions | undefined): ReturnType<typeof diagnose> {
  if (process.getuid?.() !== 0) return await diagnose([path], options);
  chmodSync(path, 0o755);
  process.seteuid?.(65534);
  try {
    return await diagnose([path], options);
  } finally {
    process.seteuid?.(0);
  }
}

test("each code has a tree", () => {
  const tried = new Set(Object.keys(CASES).map((name) => name.slice(0, 5)));
  assert.deepEqual(
    FINDING_KINDS.map(({ code }) => code).filter((code) => !tried.has(code)),
    [],
  );
});

test("a tree in order has no finding", async () => {
  using tree = new TemporaryTree();
  await clean(tree);
  tree.link("lib/liba.so.1", "liba.so");
  tree.link("again", "lib");
  tree.write("readme.txt", "text");
  for (const options of [{}, { deep: true }, { isas: ["gfx906:sramecc+:xnack-", "gfx1100"] }]) {
    const report = await diagnose([tree.path], options);
    assert.deepEqual(report.findings, []);
    assert.equal(report.binaries.length, 1);
    assert.equal(report.archives.length, 2);
    assert.deepEqual(
      report.verdicts.map(({ loads }) => loads),
      (options.isas ?? []).map(() => "yes"),
    );
  }
});

test("docs/findings.md is the page of the table (UPDATE_DOCS=1 writes it)", () => {
  const path = new URL("../../docs/findings.md", import.meta.url);
  const page = renderFindingsPage();
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(path, page);
  assert.equal(readFileSync(path, "utf8"), page);
});
