/**
 * Measures `kpack doctor` on a made-up install tree: 10,000 files, among them 200 archives of 1 to 50 MB (2 GB in
 * all), 20 fat libraries of 50 MB and 20 converted ones. Prints time, peak memory and the share of bytes read.
 *
 *     node bench/doctor-tree.ts [FOLDER]
 *
 * With a folder that exists the tree in it is used again; else it is made there, or in a temporary folder.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { diagnose } from "../src/operations/doctor/doctor.node.ts";
import { processorNumber } from "../src/target/processors.ts";
import { buildBundle } from "../test/bundle/bundle-builder.ts";
import { buildArchive, entryOf, tocOf, zstdArea } from "../test/support/archive-builder.ts";
import { buildHost } from "../test/support/host-builder.ts";
import { concat, map } from "../test/support/raw-msgpack.ts";
import { codeObject } from "../test/support/trees.ts";

const GROUPS = 20;
const TARGETS = "gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201".split(" ");
const FILES = 10_000;
const KERNEL_SIZE = 300_000;
const FRAMES_PER_TARGET = 12;
const MB = 1_000_000;

const [folder, mode] = process.argv.slice(2);
if (mode === "measure" && folder !== undefined) await measure(folder);
else run(folder ?? join(mkdtempSync(join(tmpdir(), "kpack-doctor-")), "tree"), folder === undefined);

function run(tree: string, isTemporary: boolean): void {
  if (!existsSync(tree)) makeTree(tree);
  for (let round = 0; round < 3; round++) {
    spawnSync(process.execPath, [import.meta.filename, tree, "measure"], { stdio: "inherit" });
  }
  if (isTemporary) rmSync(join(tree, ".."), { recursive: true });
}

async function measure(tree: string): Promise<void> {
  const start = performance.now();
  const report = await diagnose([tree]);
  const seconds = (performance.now() - start) / 1000;
  const { files, archives, binaries, totalSize, bytesRead, findings } = report;
  const share = ((100 * bytesRead) / totalSize).toFixed(2);
  const { user, system } = process.cpuUsage();
  const memory = process.resourceUsage().maxRSS / 1024;
  console.log(
    `${files} files, ${binaries.length} binaries, ${archives.length} archives, ${(totalSize / MB).toFixed(0)} MB: ` +
      `${seconds.toFixed(2)} s (the process used ${((user + system) / 1e6).toFixed(2)} s of processors, with Node's start), ` +
      `${memory.toFixed(0)} MiB at most, ${(bytesRead / MB).toFixed(1)} MB read (${share}%), ` +
      `${archives.reduce((sum, { kernelsChecked }) => sum + kernelsChecked, 0)} of ` +
      `${archives.reduce((sum, { kernels }) => sum + kernels, 0)} kernels checked, ${findings.length} findings`,
  );
}

function makeTree(tree: string): void {
  for (const name of ["lib", "fat", ".kpack", "share"]) mkdirSync(join(tree, name), { recursive: true });
  const frames = new Map(TARGETS.map((target) => [target, framesFor(target)]));
  for (let group = 0; group < GROUPS; group++) {
    const key = `lib/libg${group}.so`;
    // From 1 to 50 MB, and 10 MB on average.
    const size = Math.round(MB * (1 + 49 * (group / (GROUPS - 1)) ** 4));
    const count = Math.ceil(size / (frames.get("gfx906")?.[0]?.length ?? 1));
    TARGETS.forEach((target, position) => {
      const isPlain = group < 2 && position === 0;
      writeFileSync(
        join(tree, `.kpack/g${group}_${target}.kpack`),
        archive(key, target, frames.get(target) ?? [], count, isPlain),
      );
    });
    const host = { kernelName: key, searchPaths: [`../.kpack/g${group}_@GFXARCH@.kpack`], wrappers: count };
    writeFileSync(join(tree, key), buildHost(host));
  }
  for (let index = 0; index < GROUPS; index++)
    writeFileSync(join(tree, `fat/libfat${index}.so`), fatLibrary());
  const others = FILES - 200 - 2 * GROUPS;
  for (let index = 0; index < others; index++) {
    const name = join(tree, "share", String(index % 100));
    if (index < 100) mkdirSync(name);
    writeFileSync(join(name, `${index}.py`), `# module ${index}\n`.repeat(20 + (index % 200)));
  }
}

function kernel(target: string, seed: number): Uint8Array {
  const bytes = codeObject(target, seed, KERNEL_SIZE);
  new DataView(bytes.buffer).setUint32(48, processorNumber(target) ?? 0, true);
  return bytes;
}

function framesFor(target: string): readonly Uint8Array[] {
  return Array.from(
    { length: FRAMES_PER_TARGET },
    (_, seed) => new Uint8Array(zstdCompressSync(kernel(target, seed))),
  );
}

function archive(
  key: string,
  target: string,
  pool: readonly Uint8Array[],
  count: number,
  isPlain: boolean,
): Uint8Array {
  const indexes = Array.from({ length: count }, (_, index) => index);
  const entries = map(
    ...indexes.map((index): [string, unknown] => [
      `${key}#${index}`,
      map([target, entryOf(index, KERNEL_SIZE)]),
    ]),
  );
  const arches: [string, unknown] = ["gfx_arches", [target]];
  if (isPlain) {
    const blobs = indexes.map((index) => map(["offset", 64 + index * KERNEL_SIZE], ["size", KERNEL_SIZE]));
    const area = concat(...indexes.map((index) => kernel(target, index)));
    return buildArchive({ area, toc: tocOf(entries, "none", [["blobs", blobs]], [arches]) });
  }
  const area = zstdArea(indexes.map((index) => pool[index % pool.length] ?? new Uint8Array(0)));
  return buildArchive({
    area,
    toc: tocOf(
      entries,
      "zstd-per-kernel",
      [
        ["zstd_offset", 64],
        ["zstd_size", area.length],
      ],
      [arches],
    ),
  });
}

/** 50 MB in 16 bundles of ten targets. */
function fatLibrary(): Uint8Array {
  const bundle = buildBundle(
    TARGETS.map((target, seed) => ({
      id: `hipv4-amdgcn-amd-amdhsa--${target}`,
      content: kernel(target, seed),
    })),
  );
  const step = Math.ceil(bundle.length / 4096) * 4096;
  const bundles = new Uint8Array(step * 16);
  const bundleOffsets = Array.from({ length: 16 }, (_, index) => index * step);
  for (const offset of bundleOffsets) bundles.set(bundle, offset);
  return buildHost({ wrappers: 16, bundles, bundleOffsets, withoutMetadata: true });
}
