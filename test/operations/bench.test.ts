import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { addBench } from "../../src/cli/commands/bench.ts";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { nodeCodecs, type Progress, zstdCrossKernel, zstdPerKernel } from "../../src/node.ts";
import { bench, type BenchOptions, type BenchReport } from "../../src/operations/bench.node.ts";
import { layOut, targetFamily } from "../../src/operations/bench-layouts.ts";
import {
  BENCH_SETTINGS,
  benchSettingName,
  isSlow,
  parseBenchSettings,
} from "../../src/operations/bench-settings.node.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { packed } from "../support/pack-inputs.ts";
import { parseJson } from "../support/parse-json.ts";
import { runCommand } from "../support/run-command.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { archiveBytes, codeObject } from "../support/trees.ts";

const LIBRARY = fixturePath("C/libfx_multi3.so");
const QUICK = BENCH_SETTINGS.filter((setting) => !isSlow(setting));

async function compared(options: Partial<BenchOptions>): Promise<BenchReport> {
  return await bench({
    inputs: [LIBRARY],
    settings: QUICK,
    rounds: 1,
    jobs: 2,
    onFinding: () => undefined,
    ...options,
  });
}

describe("bench", () => {
  it("measures every setting, the baseline first, and leaves no files", async (context) => {
    const temporaryFolder = tempFolder(context);
    const report = await compared({ temporaryFolder });
    assert.deepEqual(readdirSync(temporaryFolder), []);
    assert.deepEqual(
      report.runs.map(({ name }) => name),
      ["zstd-per-kernel:3", "zstd-per-kernel:9", "zstd-cross-kernel:fast", "zstd-cross-kernel:default"],
    );
    assert.deepEqual([report.entries, report.kernels, report.originalSize], [9, 9, 35_904]);
    const [baseline] = report.runs;
    assert.equal(baseline?.ratio, 1);
    for (const run of report.runs) {
      assert.equal(run.ratio, run.size / baseline.size);
      for (const { milliseconds, baselineMilliseconds } of [run.kernel, run.first, run.all]) {
        assert.ok(milliseconds > 0 && baselineMilliseconds > 0);
        if (run === baseline) assert.equal(milliseconds, baselineMilliseconds);
      }
      assert.ok(run.packSeconds > 0 && run.throughput > 0 && run.kernelsTimed > 0);
    }
  });

  it("says the sizes that packing gives, from the library and from an archive of it", async (context) => {
    const folder = tempFolder(context);
    const packedSize = async (name: string, scheme: ReturnType<typeof zstdPerKernel>): Promise<number> => {
      // The group's name stands in the archive.
      const options = { inputs: [LIBRARY], output: join(folder, name), scheme, groupName: "bench" };
      return (await packed(options)).archives[0]?.archiveSize ?? 0;
    };
    const sizes = [
      await packedSize("a.kpack", zstdPerKernel({ codecs: nodeCodecs })),
      await packedSize("b.kpack", zstdPerKernel({ codecs: nodeCodecs, level: 9 })),
    ];
    await packed({
      inputs: [LIBRARY],
      output: join(folder, "c.kpack"),
      scheme: zstdCrossKernel({ codecs: nodeCodecs }),
    });
    for (const input of [LIBRARY, join(folder, "a.kpack"), join(folder, "c.kpack")]) {
      const { runs } = await compared({
        inputs: [input],
        settings: parseBenchSettings("zstd-per-kernel:9"),
        layoutSetting: "none",
      });
      assert.deepEqual(
        runs.map(({ size }) => size),
        sizes,
        input,
      );
    }
  });

  it("lays archives out by target, by family and all in one", async () => {
    const { layouts, runs, layoutSetting } = await compared({});
    assert.equal(layoutSetting, "zstd-cross-kernel:default");
    assert.deepEqual(
      layouts.map(({ layout, archives }) => [layout, archives.map(({ name }) => name)]),
      [
        ["target", ["gfx1100", "gfx906", "gfx942"]],
        ["family", ["gfx110X", "gfx90X", "gfx94X"]],
        ["all", ["all"]],
      ],
    );
    for (const { size, archives } of layouts)
      assert.equal(
        size,
        archives.reduce((sum, archive) => sum + archive.size, 0),
      );
    assert.equal(layouts[2]?.size, runs.find(({ name }) => name === layoutSetting)?.size);
    assert.ok((layouts[2]?.size ?? 0) < (layouts[0]?.size ?? 0), "the kernels of the fixture are alike");
  });

  it("takes folders, several inputs, and only the wanted targets", async (context) => {
    const folder = tempFolder(context);
    await packed({ inputs: [LIBRARY], output: join(folder, "a.kpack") });
    const both = await compared({
      inputs: [join(folder, "a.kpack"), fixturePath("A/hsaco")],
      settings: [],
      layoutSetting: "none",
      targets: ["gfx942"],
    });
    assert.deepEqual(both.targets, ["gfx942"]);
    assert.deepEqual(
      both.runs.map(({ name }) => name),
      ["zstd-per-kernel:3"],
    );
    assert.ok(both.entries > 3);
  });

  it("refuses what has no kernels or damaged ones, and leaves no files then either", async (context) => {
    const temporaryFolder = tempFolder(context);
    const archive = fixturePath("D/ok/none_base.kpack");
    await kpackError(
      async () => await compared({ inputs: [archive], targets: ["gfx1"], temporaryFolder }),
      "NOTHING_FOUND",
    );
    await kpackError(async () => await compared({ targets: ["gfx1"], temporaryFolder }), "NOTHING_FOUND");
    const damaged = fixturePath("D/bad/zstd_frame_truncated.kpack");
    await assert.rejects(async () => await compared({ inputs: [damaged], temporaryFolder }));
    await kpackError(async () => await compared({ inputs: ["nowhere"], temporaryFolder }), "READ_FAILED");
    const text = join(tempFolder(context), "text");
    writeFileSync(text, "no kernels here");
    await kpackError(async () => await compared({ inputs: [text], temporaryFolder }), "NO_DEVICE_CODE");
    assert.deepEqual(readdirSync(temporaryFolder), []);
  });

  it("stops when it is told to, wherever it is, and leaves no files", async (context) => {
    const temporaryFolder = tempFolder(context);
    for (const calls of [1, 10, 40]) {
      const controller = new AbortController();
      let count = 0;
      const running = compared({
        temporaryFolder,
        signal: controller.signal,
        onProgress: () => {
          count += 1;
          if (count === calls) controller.abort(new Error("enough"));
        },
      });
      await assert.rejects(running, /enough/);
    }
    assert.deepEqual(readdirSync(temporaryFolder), []);
  });

  it("reports progress that only grows, up to its total at most", async () => {
    const seen: Progress[] = [];
    await compared({ onProgress: (progress) => void seen.push(progress) });
    let last = 0;
    for (const { done, total = 0, unit } of seen) {
      assert.ok(done >= last && done <= total, `${last} ${done} ${total}`);
      assert.equal(unit, "bytes");
      last = done;
    }
    assert.ok(seen.length > 20);
  });
});

describe("settings of bench", () => {
  it("are named as they are parsed", () => {
    for (const setting of BENCH_SETTINGS)
      assert.deepEqual(parseBenchSettings(benchSettingName(setting)), [setting]);
    assert.equal(parseBenchSettings("zstd-per-kernel").length, 3);
    assert.equal(parseBenchSettings("zstd-cross-kernel").length, 3);
    for (const name of [
      "none",
      "",
      "zstd-per-kernel:",
      "zstd-per-kernel:0",
      "zstd-per-kernel:23",
      "zstd-cross-kernel:9",
    ])
      assert.throws(() => parseBenchSettings(name), RangeError, name);
  });

  it("group targets into families", () => {
    const families = {
      gfx906: "gfx90X",
      "gfx90a:xnack-": "gfx90X",
      "gfx90a:sramecc+:xnack+": "gfx90X",
      gfx942: "gfx94X",
      gfx1030: "gfx103X",
      "gfx10-3-generic": "gfx103X",
      "gfx9-4-generic": "gfx94X",
      "gfx11-generic": "gfx11X",
      spirv64: "spirv64",
    };
    for (const [target, family] of Object.entries(families)) assert.equal(targetFamily(target), family);
    const kernels = Object.keys(families).map((target) => ({ target }));
    assert.deepEqual(
      [...layOut(kernels, "family").values()].map(({ length }) => length),
      [3, 2, 2, 1, 1],
    );
  });
});

describe("kpack bench", () => {
  const args = ["bench", LIBRARY, "--quiet", "--jobs", "2"] as const;

  it("prints tables that fit", async () => {
    const { status, text } = await runCommand(addBench, ...args, "--quick");
    assert.equal(status, 0);
    for (const part of ["SCHEME", "zstd-cross-kernel:default", "one per family", "gfx90X"])
      assert.ok(text.includes(part), part);
    for (const line of text.split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
    assert.ok(!text.includes("zstd-per-kernel:19"));
  });

  it("prints one JSON document", async () => {
    const { status, text } = await runCommand(
      addBench,
      ...args,
      "--schemes",
      "zstd-per-kernel:5",
      "--layout-scheme",
      "none",
      "--json",
    );
    assert.equal(status, 0);
    const report = parseJson<BenchReport & { readonly schema: string }>(text);
    assert.equal(report.schema, "kpack/bench/1");
    assert.deepEqual(
      report.runs.map(({ name }) => name),
      ["zstd-per-kernel:3", "zstd-per-kernel:5"],
    );
    assert.deepEqual(report.layouts, []);
  });

  it("has exit status 1 for no kernels, 2 for wrong usage and missing files", async () => {
    assert.equal((await runCommand(addBench, ...args, "--targets", "gfx1")).status, 1);
    assert.equal((await runCommand(addBench, "bench", "nowhere")).status, 2);
    assert.equal((await runCommand(addBench, ...args, "--schemes", "lzma")).status, 2);
    assert.equal((await runCommand(addBench, ...args, "--layout-scheme", "zstd-per-kernel")).status, 2);
    const slow = await runCommand(addBench, ...args, "--quick", "--schemes", "zstd-cross-kernel:max");
    assert.equal(slow.status, 2);
  });
});

describe("kernels that inputs have in common", () => {
  it("are taken once when they are the same, and refused when they differ", async (context) => {
    const folder = tempFolder(context);
    const write = async (name: string, seeds: readonly number[]): Promise<string> => {
      const kernels = seeds.map((seed, index): readonly [string, Uint8Array] => [
        `lib/a.so#${index}`,
        codeObject("gfx942", seed),
      ]);
      writeFileSync(join(folder, name), await archiveBytes({ targets: { gfx942: kernels } }));
      return join(folder, name);
    };
    const first = await write("first.kpack", [1, 2]);
    const more = await write("more.kpack", [1, 2, 3]);
    const other = await write("other.kpack", [1, 9]);
    const how = {
      settings: [BENCH_SETTINGS[0]].filter((one) => one !== undefined),
      layoutSetting: "none",
    } as const;
    const report = await compared({ ...how, inputs: [first, first, more] });
    assert.deepEqual([report.entries, report.kernels, report.originalSize], [3, 3, 6000]);
    const error = await kpackError(
      () => compared({ ...how, inputs: [first, other] }),
      "CONFLICTING_KERNELS",
      /^lib\/a\.so#1 gfx942$/,
    );
    assert.doesNotMatch(error.hint ?? "", /--root/);
  });
});
