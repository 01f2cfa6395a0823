import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { nodeCodecs, zstdCrossKernel } from "../../src/node.ts";
import { PLANNER_NAMES } from "../../src/scheme/cross-kernel/planner.ts";
import {
  codePiece,
  randomKernel,
  sharedPieceKernels,
  siblingKernels,
  smallSimilarKernels,
} from "../support/kernel-families.ts";
import { kernelsToWrite, writeToMemory } from "../support/kernels.ts";
import {
  chainedContents,
  exoticGraphs,
  graphArchive,
  kernelsOfGraph,
  rawFrame,
  type RawGraph,
  varints,
} from "../support/raw-graph.ts";
import { concat } from "../support/raw-msgpack.ts";

/** The reader in C: written from docs/format.md alone, on Debian's libzstd. It shares no line with the library. */
const READER = join(import.meta.dirname, "cross_kernel_reader.c");
const SOURCES = [READER, join(import.meta.dirname, "toc_fields.c")];

const compiler = ["cc", "gcc"].find((name) => spawnSync(name, ["--version"]).status === 0);
const hasZstd =
  compiler !== undefined &&
  spawnSync(compiler, ["-E", "-", "-o", "/dev/null"], { input: "#include <zstd.h>\n" }).status === 0;
assert.ok((compiler && hasZstd) || !process.env["CI"], "in CI there are gcc and libzstd-dev");
const skip = compiler ? !hasZstd && "zstd.h (libzstd-dev) is not installed" : "there is no C compiler";

/** A finding of theirs is status 99; room for 4 GiB is refused rather than made. */
const SANITIZERS = "exitcode=99:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=64";

interface Run {
  readonly status: number | undefined;
  readonly kernels: readonly Uint8Array[];
  readonly stderr: string;
}

describe("the reader in C", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "kpack-test-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const plain = join(folder, "reader");
  const checked = join(folder, "reader-sanitized");

  function build(output: string, ...flags: readonly string[]): string {
    const args = ["-Wall", "-Wextra", "-Werror", ...flags, ...SOURCES, "-o", output, "-lzstd"];
    const { status, stderr } = spawnSync(compiler ?? "cc", args, { encoding: "utf8" });
    return status === 0 ? "" : stderr || "it failed";
  }

  /** Reads many archives from one shell, since starting a process from here takes longer than reading does. */
  function runAll(program: string, archives: Readonly<Record<string, Uint8Array>>): ReadonlyMap<string, Run> {
    const names = Object.keys(archives);
    const path = (index: number): string => join(folder, `${index}.kpack`);
    for (const [index, name] of names.entries())
      writeFileSync(path(index), archives[name] ?? new Uint8Array());
    const script = `i=0; while [ $i -lt ${names.length} ]; do
      "$1" "$2/$i.kpack" > "$2/$i.out" 2> "$2/$i.err"; echo $?; i=$((i + 1)); done`;
    const { stdout } = spawnSync("sh", ["-c", script, "sh", program, folder], {
      encoding: "utf8",
      env: { ...process.env, ASAN_OPTIONS: SANITIZERS, UBSAN_OPTIONS: SANITIZERS },
    });
    const statuses = stdout.trim().split("\n").map(Number);
    return new Map(
      names.map((name, index) => {
        const [out, err] = ["out", "err"].map((type) => readFileSync(join(folder, `${index}.${type}`)));
        const status = statuses[index];
        return [name, { status, kernels: status === 0 && out ? kernelsOf(out) : [], stderr: String(err) }];
      }),
    );
  }

  function kernelsOf(out: Buffer): readonly Uint8Array[] {
    const kernels: Uint8Array[] = [];
    for (let at = 0; at < out.length; ) {
      const end = out.indexOf(10, at);
      const [ordinal, size] = out.toString("latin1", at, end).split(" ").map(Number);
      assert.equal(ordinal, kernels.length);
      at = end + 1 + (size ?? 0);
      kernels.push(new Uint8Array(out.subarray(end + 1, at)));
    }
    return kernels;
  }

  /** The reader, and the one with sanitizers where there are some. */
  const programs = (): readonly string[] => (existsSync(checked) ? [plain, checked] : [plain]);

  type Written = Readonly<Record<string, readonly [bytes: Uint8Array, wanted: readonly Uint8Array[]]>>;

  function compare(archives: Written, readers = programs()): void {
    const bytes = Object.fromEntries(Object.entries(archives).map(([name, [archive]]) => [name, archive]));
    for (const program of readers) {
      for (const [name, { status, kernels, stderr }] of runAll(program, bytes)) {
        const [, wanted] = archives[name] ?? [];
        assert.equal(status, 0, `${name}: ${stderr}`);
        assert.equal(kernels.length, wanted?.length, name);
        for (const [ordinal, kernel] of (wanted ?? []).entries())
          assert.ok(Buffer.from(kernels[ordinal] as Uint8Array).equals(kernel), `${name}, kernel ${ordinal}`);
      }
    }
  }

  it("has at most 150 lines and compiles without a warning", (context) => {
    assert.ok(readFileSync(READER, "utf8").trimEnd().split("\n").length <= 150);
    assert.equal(build(plain, "-O2"), "");
    const missing = build(checked, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all");
    if (missing) context.diagnostic("without sanitizers: this compiler has none");
  });

  const corpora: Readonly<Record<string, readonly Uint8Array[]>> = {
    "shared pieces": sharedPieceKernels(1, 12, { pool: 20, pieces: 10 }),
    siblings: siblingKernels(2, { count: 3, targets: 4, size: 40_000, distance: 2000 }),
    "small ones": smallSimilarKernels(3, 50, 3000),
    mixture: [
      new Uint8Array(),
      ...sharedPieceKernels(4, 8, { pool: 10, pieces: 4 }),
      randomKernel(1, 20_000),
      codePiece(1, 1),
      codePiece(2, 200_000),
    ],
    none: [],
  };
  for (const planner of PLANNER_NAMES) {
    it(`reads what the planner ${planner} makes`, async () => {
      const archives: Record<string, readonly [Uint8Array, readonly Uint8Array[]]> = {};
      for (const effort of ["fast", "default"] as const) {
        for (const [name, kernels] of Object.entries(corpora)) {
          const scheme = zstdCrossKernel({ codecs: nodeCodecs, planner, effort });
          const { bytes } = await writeToMemory(kernelsToWrite(kernels), { scheme, shareIdentical: false });
          archives[`${name}, ${effort}`] = [bytes, kernels];
        }
      }
      compare(archives, [plain]);
    });
  }

  it("reads what none of them makes, but the format allows", () => {
    compare(
      Object.fromEntries(
        Object.entries(exoticGraphs()).map(([name, graph]) => [
          name,
          [graphArchive(graph), kernelsOfGraph(graph)],
        ]),
      ),
    );
  });

  it("refuses what is wrong, and never crashes", () => {
    const [a, b, c] = chainedContents(3, 2000) as [Uint8Array, Uint8Array, Uint8Array];
    const size = a.length;
    const sound: RawGraph = {
      frames: [{ content: a, dictionaries: [1] }, { content: b }, { content: c }],
      kernels: [[[0, 0, size]], [[2, 0, size]]],
      depth: 2,
    };
    const frame = (index: number, change: Partial<RawGraph["frames"][number]>): RawGraph => ({
      ...sound,
      frames: sound.frames.map((one, at) => ({ ...one, ...(at === index && change) })),
    });
    const damaged = rawFrame(b);
    damaged.set([(damaged.at(-1) ?? 0) ^ 1], damaged.length - 1);
    const trained = concat(Uint8Array.of(0x37, 0xa4, 0x30, 0xec), b.subarray(4));
    const chain = Array.from({ length: 9 }, (_, index) => ({
      content: a,
      dictionaries: index < 8 ? [index + 1] : [],
    }));
    const lying = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 0x2b, 0, 0, 0x41);
    const hostile: Readonly<Record<string, RawGraph>> = {
      "its own dictionary": frame(0, { table: [1, 0] }),
      "a cycle": frame(1, { table: [1, 0] }),
      "a missing dictionary": frame(0, { table: [9, 0] }),
      "another dictionary": frame(0, { table: [3, 0] }),
      "no dictionary": frame(0, { table: [0, 0] }),
      "a wrong checksum": frame(1, { stored: damaged }),
      "a trained dictionary": {
        ...sound,
        frames: [
          { content: a, dictionaries: [1], stored: rawFrame(a) },
          { content: trained },
          { content: c },
        ],
      },
      "a content size too large": frame(0, { contentSize: size + 1 }),
      "a content size too small": { ...frame(0, { contentSize: size - 1 }), kernels: [[[0, 0, 1]]] },
      "a content size of 4 GiB": frame(0, { contentSize: 2 ** 32 - 1 }),
      "a frame that claims 4 GiB": frame(0, { contentSize: 2 ** 32 - 1, stored: lying }),
      "a frame past the end": frame(2, { storedSize: 2 ** 31 }),
      "a frame into the TOC": frame(2, { storedSize: rawFrame(c).length + 1 }),
      "an offset in the header": { ...sound, offset: 0 },
      "an offset past the end": { ...sound, offset: 2 ** 40 },
      "an offset that wraps": { ...sound, offset: 2n ** 64n - 8n },
      "an offset as text": { ...sound, offset: "64" },
      "a slice past the end": { ...sound, kernels: [[[0, 1, size]]] },
      "a slice that wraps": { ...sound, kernels: [[[0, 2 ** 32 - 1, 2]]] },
      "a slice of a missing frame": { ...sound, kernels: [[[3, 0, 1]]] },
      "a chain of nine": { frames: chain, kernels: [[[0, 0, 1]]] },
      "more frames than stated": { ...sound, depth: 1 },
      "nine frames stated": { ...sound, depth: 9 },
      "a cut table": { ...sound, framesTable: varints(9, 9, 0) },
      "a table cut in a number": { ...sound, kernelsTable: Uint8Array.of(1, 0, 0x80) },
      "a number of 33 bits": { ...sound, kernelsTable: Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x10) },
      "a number without end": { ...sound, framesTable: new Uint8Array(20).fill(0x80) },
      "no frames": { ...sound, toc: [["cross_frames", undefined]] },
      "no kernels": { ...sound, toc: [["cross_kernels", undefined]] },
      "no offset": { ...sound, toc: [["cross_offset", undefined]] },
      "no depth": { ...sound, toc: [["cross_depth", undefined]] },
      "tables as text": { ...sound, framesTable: "abcd" },
      "tables as a number": { ...sound, kernelsTable: 3 },
      "another scheme": { ...sound, toc: [["compression_scheme", "none"]] },
      "a TOC past the end": { ...sound, file: { tocOffset: 2 ** 33 } },
      "a TOC in the header": { ...sound, file: { tocOffset: 3 } },
      "another magic": { ...sound, file: { magic: "KPAX" } },
      "another version": { ...sound, file: { version: 2 } },
    };
    const archives = Object.fromEntries(
      Object.entries(hostile).map(([name, graph]) => [name, graphArchive(graph)]),
    );
    const bytes = graphArchive(sound);
    for (const length of [0, 3, 15, 16, 64, 100, bytes.length - 300, bytes.length - 20, bytes.length - 1])
      archives[`cut at ${length}`] = bytes.slice(0, length);
    for (const program of programs()) {
      assert.equal(runAll(program, { sound: bytes }).get("sound")?.status, 0);
      for (const [name, { status, stderr }] of runAll(program, archives)) {
        assert.ok(status === 1 || status === 2, `${name}: status ${status}, ${stderr}`);
        assert.doesNotMatch(stderr, /ERROR: AddressSanitizer|runtime error/, name);
      }
    }
  });
});
