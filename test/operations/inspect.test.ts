import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { addInspect } from "../../src/cli/commands/inspect.ts";
import { renderCodeObject } from "../../src/cli/render/inspection.ts";
import { codeObjectToJson } from "../../src/cli/render/inspection-json.ts";
import { TEXT_WIDTH } from "../../src/cli/render/wrap.ts";
import { inspectFile } from "../../src/operations/inspect.node.ts";
import { none } from "../../src/node.ts";
import { fixtureBytes, fixturesOf } from "../bundle/host-fixtures.ts";
import { buildBundle, compressBundle } from "../bundle/bundle-builder.ts";
import { kpackError } from "../support/expect-error.ts";
import { openBytes } from "../support/kernels.ts";
import { parseJson } from "../support/parse-json.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, TemporaryTree, ZSTD } from "../support/trees.ts";

const FIXTURES = new URL("../fixtures/", import.meta.url).pathname;
const at = (name: string): string => join(FIXTURES, name);

describe("inspecting a code object", () => {
  it("shows what it is, its sections and its kernels", async () => {
    const { status, text } = await runCommand(addInspect, "inspect", at("A/hsaco/vadd_gfx90a-xnack+.hsaco"));
    assert.equal(status, 0);
    assert.equal(
      text.trimEnd(),
      `
target    gfx90a:xnack+
features  xnack on, sramecc any
e_flags   0x73f (processor 0x3f)
version   code object V5
metadata  version 1.2, MessagePack, amdgcn-amd-amdhsa--gfx90a:xnack+
size      4.2 kB

SECTION         SIZE  IN FILE  ADDRESS
.note            648      648    0x238
.dynsym           96       96    0x4c0
.gnu.hash         40       40    0x520
.hash             40       40    0x548
.dynstr           26       26    0x570
.rodata           64       64    0x5c0
.text           1216     1216   0x1600
.dynamic         112      112   0x2ac0
.relro_padding  1232        0   0x2b30
.bss               1        0   0x3b30
.comment          67       67      0x0
.symtab          120      120      0x0
.shstrtab        117      117      0x0
.strtab           35       35      0x0

VGPRS  SGPRS  AGPRS  SPILLS  LDS  SCRATCH  KERNARG  WAVE  GROUP  KERNEL
    8     12      0       0    0        0       28    64   1024  vadd
`.trim(),
    );
  });

  it("shows all of a kernel that is named", async () => {
    const { status, text } = await runCommand(
      addInspect,
      "inspect",
      at("A/hsaco/vadd_gfx1100.hsaco"),
      "--kernel",
      "vadd",
    );
    assert.equal(status, 0);
    assert.equal(
      text.trimEnd(),
      `
vadd
symbol                     vadd.kd
VGPRs                      6
SGPRs                      18
LDS                        0 bytes
scratch                    0 bytes
kernarg                    28 bytes
wavefront                  32
workgroup                  at most 1024 work-items
code                       at address 0x1600
registers                  rsrc1 0x60af0080, rsrc2 0x0000009e, rsrc3 0x00000000
.kernarg_segment_align     8
.uniform_work_group_size   1
.uses_dynamic_stack        false
.workgroup_processor_mode  1
OFFSET  SIZE  KIND           ARGUMENT
     0     8  global_buffer  .address_space global
     8     8  global_buffer  .address_space global
    16     8  global_buffer  .address_space global
    24     4  by_value
`.trim(),
    );
  });

  it("gives one JSON document", async () => {
    const { status, text } = await runCommand(
      addInspect,
      "inspect",
      at("A/hsaco/vadd_gfx942.hsaco"),
      "--json",
    );
    assert.equal(status, 0);
    const document: unknown = JSON.parse(text);
    assert.partialDeepStrictEqual(document, {
      schema: "kpack/inspect/1",
      file: at("A/hsaco/vadd_gfx942.hsaco"),
      kind: "code-object",
      findings: [],
      codeObjects: [
        {
          target: "gfx942",
          payload: "code-object",
          size: 4104,
          codeObject: {
            version: 5,
            eFlags: "0x54c",
            target: "gfx942",
            processor: "gfx942",
            processorNumber: 76,
            xnack: "any",
            sramecc: "any",
            genericVersion: 0,
            metadata: { form: "messagepack", version: "1.2", target: "amdgcn-amd-amdhsa--gfx942" },
            sections: [{ name: ".note", type: 7, address: 568, offset: 568, size: 640, fileSize: 640 }],
            kernels: [
              {
                name: "vadd",
                demangledName: "vadd",
                symbol: "vadd.kd",
                vgprs: 8,
                sgprs: 14,
                agprs: 0,
                vgprSpills: 0,
                sgprSpills: 0,
                ldsSize: 0,
                scratchSize: 0,
                kernargSize: 28,
                wavefrontSize: 64,
                maxFlatWorkgroupSize: 1024,
                args: [
                  { size: 8, offset: 0, valueKind: "global_buffer", more: { ".address_space": "global" } },
                ],
                descriptor: { kernargSize: 28, entryAddress: "0x1600" },
                more: {
                  ".kernarg_segment_align": 8,
                  ".uniform_work_group_size": 1,
                  ".uses_dynamic_stack": false,
                },
              },
            ],
          },
        },
      ],
    });
  });

  it("fits the width for every fixture, and names are cut only without --wide", async () => {
    for (const [name] of [
      ...fixturesOf("code_object"),
      ["C/libfx_multi3.so"],
      ["A/genco/reduce_gfx906_gfx942_gfx1100.co"],
    ]) {
      const { status, text } = await runCommand(addInspect, "inspect", at(name ?? ""), "-q");
      assert.equal(status, 0, name);
      for (const line of text.split("\n")) assert.ok(line.length <= TEXT_WIDTH, line);
    }
  });
});

describe("inspecting files with several code objects", () => {
  it("lists the kernels of a fat binary, by targets, index and name", async () => {
    const whole = await inspectFile(at("C/libfx_multi3.so"));
    assert.deepEqual([whole.kind, whole.codeObjects.length, whole.findings.length], ["fat-binary", 9, 0]);
    const { text } = await runCommand(
      addInspect,
      "inspect",
      at("C/libfx_multi3.so"),
      "#1",
      "-q",
      "--targets",
      "gfx906,gfx1100",
    );
    assert.equal(
      text.trimEnd(),
      `
gfx1100  bundle 1 #1  code object V5, 1 kernel, 4.1 kB
VGPRS  SGPRS  SPILLS  LDS  SCRATCH  KERNARG  WAVE  GROUP  KERNEL
    5     18       0    0        0       20    32   1024  vc_kernel(float*, float const*, int)

gfx906  bundle 1 #1  code object V5, 1 kernel, 3.4 kB
VGPRS  SGPRS  SPILLS  LDS  SCRATCH  KERNARG  WAVE  GROUP  KERNEL
    6     12       0    0        0       20    64   1024  vc_kernel(float*, float const*, int)
`.trim(),
    );
    const filtered = await inspectFile(at("C/libfx_multi3.so"), { kernel: "vc_kernel(" });
    assert.deepEqual(
      filtered.codeObjects.map(({ bundle }) => bundle),
      [1, 1, 1],
    );
    await kpackError(
      () => inspectFile(at("C/libfx_multi3.so"), { kernel: "nothing" }),
      "NOTHING_FOUND",
      /^--kernel$/,
    );
    await kpackError(() => inspectFile(at("C/libfx_multi3.so"), { key: "#9" }), "KERNEL_NOT_FOUND", /^#9$/);
    await kpackError(() => inspectFile(at("C/libfx_multi3.so"), { targets: ["gfx600"] }), "NOTHING_FOUND");
    await kpackError(() => inspectFile(at("C/libfx_hostonly.so")), "NOTHING_FOUND");
  });

  it("reads compressed bundles and archives of every scheme alike", async () => {
    using tree = new TemporaryTree();
    const compressed = await inspectFile(at("A/genco/saxpy_gfx90a_compressed.co"));
    assert.equal(compressed.codeObjects[0]?.functions[0]?.name, "saxpy");
    for (const scheme of [none, ZSTD]) {
      const targets = {
        gfx942: [["lib/a.so#0", fixtureBytes("A/hsaco/vadd_gfx942.hsaco")] as const],
        gfx1100: [["lib/a.so#0", fixtureBytes("A/hsaco/vadd_gfx1100.hsaco")] as const],
      };
      const path = tree.write(`${scheme.name}.kpack`, await archiveBytes({ scheme, targets }));
      const { kind, codeObjects, findings } = await inspectFile(path);
      assert.equal(kind, "archive");
      assert.deepEqual(
        codeObjects.map(({ binaryKey, target, functions }) => [
          binaryKey,
          target,
          functions[0]?.vgprs,
          functions[0]?.args,
        ]),
        [
          ["lib/a.so#0", "gfx942", 8, []],
          ["lib/a.so#0", "gfx1100", 6, []],
        ],
      );
      assert.deepEqual(findings, []);
      const one = await inspectFile(path, { key: "lib/a.so#0", target: "gfx942" });
      assert.equal(one.codeObjects[0]?.functions[0]?.args.length, 4);
    }
  });

  it("shows each of two code objects under one id", async () => {
    using tree = new TemporaryTree();
    const id = "hipv4-amdgcn-amd-amdhsa--gfx1100";
    const names = ["vadd_gfx1100", "reduce_gfx1100"];
    const bundle = buildBundle(
      names.map((name) => ({ id, content: fixtureBytes(`A/hsaco/${name}.hsaco`) })),
      { alignment: 4096 },
    );
    for (const bytes of [bundle, compressBundle(bundle, { version: 2 })]) {
      const { codeObjects } = await inspectFile(tree.write("twice.hipfb", bytes));
      assert.deepEqual(
        codeObjects.map(({ size, functions }) => [size, functions.map(({ name }) => name)]),
        await Promise.all(
          names.map(async (name) => {
            const alone = await inspectFile(at(`A/hsaco/${name}.hsaco`));
            return [alone.codeObjects[0]?.size, alone.codeObjects[0]?.functions.map((one) => one.name)];
          }),
        ),
      );
    }
  });

  it("goes on behind a damaged one, and ends with 1", async () => {
    using tree = new TemporaryTree();
    const good = fixtureBytes("A/hsaco/vadd_gfx942.hsaco");
    const targets = {
      gfx942: [
        ["a#0", good.slice(0, 700)] as const,
        ["a#1", good] as const,
        ["a#2", new Uint8Array([3, 2, 0x23, 7])] as const,
      ],
    };
    const path = tree.write("a.kpack", await archiveBytes({ targets }));
    const { codeObjects, findings } = await inspectFile(path);
    assert.deepEqual(
      codeObjects.map(({ payload, functions }) => [payload, functions.length]),
      [
        ["code-object", 0],
        ["code-object", 1],
        ["spirv", 0],
      ],
    );
    assert.deepEqual(
      findings.map(({ severity, code }) => [severity, code]),
      [
        ["error", "OUT_OF_BOUNDS"],
        ["warning", "NOT_A_CODE_OBJECT"],
      ],
    );
    const { status, text } = await runCommand(addInspect, "inspect", path, "-q", "--json");
    assert.equal(status, 1);
    assert.match(text, /"payload": "spirv"/);
  });
});

describe("inspecting a kernel that cannot be read", () => {
  it("shows it as damaged, with the size that the archive states, or none", async () => {
    using tree = new TemporaryTree();
    const targets = { gfx942: ["a#0", "a#1"] };
    const bytes = await archiveBytes({ targets });
    const entries = [...(await openBytes(bytes)).entries];
    const [extent] = await (await openBytes(bytes)).decompressor.storedExtents(0);
    assert.ok(extent);
    bytes.fill(0xee, extent.offset, extent.offset + extent.size);
    const path = tree.write("a.kpack", bytes);
    const { codeObjects, findings } = await inspectFile(path);
    assert.deepEqual(
      codeObjects.map(({ binaryKey, payload, size }) => [binaryKey, payload, size]),
      [
        ["a#0", undefined, entries[0]?.originalSize],
        ["a#1", "code-object", entries[1]?.originalSize],
      ],
    );
    assert.equal(findings[0]?.code, "DECOMPRESSION_FAILED");
    const { status, text } = await runCommand(addInspect, "inspect", path, "-q");
    assert.equal(status, 1);
    assert.match(text, /^gfx942 {2}a#0 {2}damaged, 2\.0 kB$/m);
    const json = await runCommand(addInspect, "inspect", path, "a#0", "gfx942", "--json");
    const [first] = parseJson<{ readonly codeObjects: readonly object[] }>(json.text).codeObjects;
    assert.deepEqual(first, { binaryKey: "a#0", target: "gfx942", size: 2000 });
  });

  it("has no size where none is known", () => {
    const how = { width: TEXT_WIDTH };
    const place = { binaryKey: "a#0", bundle: undefined, indexes: [], target: "gfx942" };
    const unread = { ...place, payload: undefined, size: undefined, codeObject: undefined, functions: [] };
    assert.equal(renderCodeObject(unread, how), "gfx942  a#0  damaged");
    assert.equal(JSON.stringify(codeObjectToJson(unread)), '{"binaryKey":"a#0","target":"gfx942"}');
  });
});
