import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readCodeObject } from "../../src/code-object/read-code-object.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readDeviceCode } from "../../src/host/device-code.ts";
import { memorySource, openFile } from "../../src/node.ts";

/**
 * Compares with `llvm-readobj --notes`. KPACK_DEBIAN_LIBS is the folder of Debian's librocrand.so.1.1, unpacked by
 * .ci/run; librocsparse.so.0.1 beside it is compared only when KPACK_DEBIAN_LARGE is set, since it takes minutes.
 */
const folder = process.env["KPACK_DEBIAN_LIBS"];
const pattern = process.env["KPACK_DEBIAN_LARGE"] ? /^lib\w+\.so\.\d+\.\d+$/ : /^librocrand\.so\.\d+\.\d+$/;
const readobj = ["llvm-readobj", "llvm-readobj-14"].find(
  (tool) => spawnSync(tool, ["--version"]).status === 0,
);

const KEYS = [
  ".name",
  ".vgpr_count",
  ".sgpr_count",
  ".agpr_count",
  ".vgpr_spill_count",
  ".sgpr_spill_count",
  ".group_segment_fixed_size",
  ".private_segment_fixed_size",
  ".kernarg_segment_size",
  ".wavefront_size",
  ".max_flat_workgroup_size",
];

/** The kernels in the YAML that llvm-readobj prints: those of arguments stand further in. */
function kernelsOf(text: string): readonly Readonly<Record<string, string>>[] {
  const kernels: Record<string, string>[] = [];
  for (const line of text.split("\n")) {
    const [, start, key = "", value = ""] = /^( {2}- | {4})(\.\w+): +(.*)$/.exec(line) ?? [];
    if (/^ {2}- \./.test(line)) kernels.push({});
    const kernel = kernels.at(-1);
    if (start !== undefined && kernel && KEYS.includes(key)) kernel[key] = value.replace(/^'(.*)'$/, "$1");
  }
  return kernels;
}

const reason =
  folder === undefined
    ? "KPACK_DEBIAN_LIBS is not set"
    : readobj === undefined
      ? "there is no llvm-readobj"
      : false;

test("kernels of Debian's libraries need what llvm-readobj --notes says", { skip: reason }, async () => {
  let objects = 0;
  let compared = 0;
  for (const file of readdirSync(folder ?? "").filter((name) => pattern.test(name))) {
    await using source = await openFile(join(folder ?? "", file));
    for (const item of (await readDeviceCode(source, { codecs: nodeCodecs })).items) {
      const bytes = await item.kernel.read();
      const { functions, findings, metadata } = await readCodeObject(memorySource(bytes));
      const { stdout } = spawnSync(readobj ?? "", ["--notes", "-"], {
        input: bytes,
        encoding: "utf8",
        maxBuffer: 1 << 28,
      });
      const expected = kernelsOf(stdout);
      const found = functions.map((kernel) => {
        const values = [
          kernel.name,
          kernel.vgprs,
          kernel.sgprs,
          kernel.agprs,
          kernel.vgprSpills,
          kernel.sgprSpills,
          kernel.ldsSize,
          kernel.scratchSize,
          kernel.kernargSize,
          kernel.wavefrontSize,
          kernel.maxFlatWorkgroupSize,
        ];
        const known = KEYS.map((key, index): readonly [string, string | number | undefined] => [
          key,
          values[index],
        ]);
        return Object.fromEntries(
          known.filter(([, value]) => value !== undefined).map(([key, value]) => [key, String(value)]),
        );
      });
      const wanted = expected.map((kernel) =>
        Object.fromEntries(KEYS.filter((key) => key in kernel).map((key) => [key, kernel[key]])),
      );
      const place = `${file} bundle ${item.bundleIndex} ${item.id}`;
      // Compared as text, one kernel at a time: a difference between long lists fills screens.
      assert.equal(found.length, wanted.length, place);
      found.forEach((kernel, index) => assert.deepEqual(kernel, wanted[index], place));
      assert.deepEqual(findings, [], place);
      assert.ok(
        stdout.includes(
          `amdhsa.target:   ${metadata?.targetText?.includes(":") ? `'${metadata.targetText}'` : metadata?.targetText}`,
        ),
        place,
      );
      objects += 1;
      compared += found.length;
    }
  }
  process.stdout.write(`# compared ${compared} kernels of ${objects} code objects\n`);
  assert.ok(objects >= 7 && compared > 500);
});
