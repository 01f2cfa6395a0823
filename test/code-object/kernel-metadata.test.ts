import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseKernelDescriptor } from "../../src/code-object/kernel-descriptor.ts";
import { parseMetadata } from "../../src/code-object/kernel-metadata.ts";
import type { MetadataNote } from "../../src/code-object/notes.ts";
import { readCodeObject } from "../../src/code-object/read-code-object.ts";
import { isKpackError } from "../../src/errors/errors.ts";
import type { MessagePackValue } from "../../src/msgpack/message-pack-value.ts";
import { memorySource } from "../../src/node.ts";
import { expectedFiles, fixture, fixtureBytes, fixturesOf, patched } from "../bundle/host-fixtures.ts";
import { randomNumbers } from "../support/kernels.ts";

describe("the compilers' code objects", () => {
  it("have the kernel descriptors that llvm-readelf sees, and metadata for each", async () => {
    for (const [name, expected] of fixturesOf("code_object")) {
      const { functions, findings, metadata, header } = await readCodeObject(fixture(name));
      const descriptors: unknown = Reflect.get(expected, "kernel_descriptors");
      assert.ok(Array.isArray(descriptors));
      assert.deepEqual(new Set(functions.map((kernel) => kernel.name)), new Set(descriptors), name);
      assert.deepEqual(findings, [], name);
      assert.equal(metadata?.targetText, expected.target, name);
      assert.equal(header.target.targetName, metadata?.target, name);
      for (const kernel of functions) assert.equal(kernel.descriptor?.kernargSize, kernel.kernargSize, name);
    }
  });

  it("say what a kernel needs", async () => {
    const { functions, sections, size } = await readCodeObject(fixture("A/hsaco/vadd_gfx942.hsaco"));
    const [kernel] = functions;
    assert.ok(kernel);
    const { args, more, descriptor, ...rest } = kernel;
    assert.deepEqual(rest, {
      name: "vadd",
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
    });
    assert.deepEqual(
      args.map(({ offset, size: bytes, valueKind }) => [offset, bytes, valueKind]),
      [
        [0, 8, "global_buffer"],
        [8, 8, "global_buffer"],
        [16, 8, "global_buffer"],
        [24, 4, "by_value"],
      ],
    );
    assert.deepEqual(
      [...more.keys()],
      [".kernarg_segment_align", ".uniform_work_group_size", ".uses_dynamic_stack"],
    );
    assert.equal(descriptor?.entryAddress, 0x1600n);
    assert.equal(sections.find(({ name }) => name === ".text")?.size, 1152);
    assert.equal(sections.find(({ name }) => name === ".relro_padding")?.fileSize, 0);
    assert.equal(
      size,
      expectedFiles["A/hsaco/vadd_gfx942.hsaco"] && fixtureBytes("A/hsaco/vadd_gfx942.hsaco").length,
    );
  });

  it("can be read without section headers, by way of the dynamic segment", async () => {
    const whole = await readCodeObject(fixture("A/hsaco/reduce_gfx1100.hsaco"));
    const bytes = patched(fixtureBytes("A/hsaco/reduce_gfx1100.hsaco"), [
      [40, 8, 0],
      [60, 2, 0],
      [62, 2, 0],
    ]);
    const stripped = await readCodeObject(memorySource(bytes));
    assert.deepEqual(stripped.sections, []);
    assert.deepEqual(stripped.functions, whole.functions);
  });

  it("without descriptors or metadata are read with a finding", async () => {
    const bytes = fixtureBytes("A/hsaco/vadd_gfx906.hsaco");
    const at = Buffer.from(bytes).indexOf("AMDGPU\0");
    const { functions, findings, metadata } = await readCodeObject(
      memorySource(patched(bytes, [[at, 1, 0x42]])),
    );
    assert.equal(metadata, undefined);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ["MISSING_FIELD"],
    );
    const [kernel] = functions;
    assert.deepEqual([kernel?.name, kernel?.kernargSize, kernel?.vgprs], ["vadd", 28, undefined]);
  });

  it("of another target than their metadata says give a finding", async () => {
    const bytes = patched(fixtureBytes("A/hsaco/vadd_gfx1100.hsaco"), [[48, 1, 0x46]]);
    const { findings } = await readCodeObject(memorySource(bytes));
    assert.deepEqual(
      findings.map(({ code, field }) => [code, field]),
      [["TARGET_MISMATCH", "amdhsa.target"]],
    );
  });
});

describe("a code object of version 2", () => {
  it("has YAML metadata, which says the same", async () => {
    const { functions, metadata, header, findings } = await readCodeObject(
      fixture("code-object/scale_v2_gfx803.o"),
    );
    assert.equal(header.target.codeObjectVersion, 2);
    assert.equal(metadata?.form, "yaml");
    assert.equal(metadata?.target, "gfx803");
    assert.deepEqual(findings, []);
    const [kernel] = functions;
    assert.ok(kernel && functions.length === 1);
    assert.deepEqual(
      [
        kernel.name,
        kernel.symbol,
        kernel.vgprs,
        kernel.sgprs,
        kernel.ldsSize,
        kernel.kernargSize,
        kernel.wavefrontSize,
      ],
      ["scale", "scale.kd", 3, 8, 256, 12, 64],
    );
    assert.deepEqual(
      kernel.args.map(({ name, offset, size, valueKind }) => [name, offset, size, valueKind]),
      [
        ["out", 0, 8, "GlobalBuffer"],
        ["n", 8, 4, "ByValue"],
      ],
    );
    assert.deepEqual([...kernel.more.keys()], ["KernargSegmentAlign"]);
  });
});

describe("metadata", () => {
  type Root = MetadataNote["root"];
  const note = (root: Root): MetadataNote => ({ form: "messagepack", root, targetText: undefined });
  const map = (...entries: readonly (readonly [MessagePackValue, MessagePackValue])[]): Root =>
    new Map(entries);

  it("keeps keys that are not known", () => {
    const kernel = map(
      [".name", "k"],
      [".future_count", 7],
      [".args", [map([".size", 4], [".new_key", "x"])]],
      [1, true],
    );
    const { kernels, more, version } = parseMetadata(
      note(map(["amdhsa.kernels", [kernel]], ["amdhsa.printf", ["a"]], ["amdhsa.version", [1, 3]])),
      "x",
    );
    assert.equal(version, "1.3");
    assert.deepEqual([...more], [["amdhsa.printf", ["a"]]]);
    assert.deepEqual(
      [...(kernels[0]?.more ?? [])],
      [
        [".future_count", 7],
        ["1", true],
      ],
    );
    assert.deepEqual([...(kernels[0]?.args[0]?.more ?? [])], [[".new_key", "x"]]);
    assert.equal(kernels[0]?.symbol, "k.kd");
  });

  const wrong: readonly (readonly [Root, string, string])[] = [
    [map(["amdhsa.kernels", 3]), "WRONG_TYPE", "metadata amdhsa.kernels"],
    [map(["amdhsa.kernels", [3]]), "WRONG_TYPE", "kernel 0"],
    [map(["amdhsa.kernels", [map()]]), "MISSING_KEY", "kernel 0 .name"],
    [map(["amdhsa.kernels", [map([".name", 3])]]), "WRONG_TYPE", "kernel 0 .name"],
    [
      map(["amdhsa.kernels", [map([".name", "k"], [".vgpr_count", "8"])]]),
      "WRONG_TYPE",
      "kernel 0 .vgpr_count",
    ],
    [map(["amdhsa.kernels", [map([".name", "k"], [".args", [1]])]]), "WRONG_TYPE", "kernel 0 .args[0]"],
    [map(["amdhsa.target", 1]), "WRONG_TYPE", "metadata amdhsa.target"],
  ];
  for (const [root, code, field] of wrong) {
    it(`with ${field} wrong is an error that names it`, () => {
      assert.throws(
        () => parseMetadata(note(root), "x"),
        (error) => isKpackError(error) && error.code === code && error.field === field && error.file === "x",
      );
    });
  }
});

it("a kernel descriptor has its fields where the hardware reads them", () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, index) => index);
  const descriptor = parseKernelDescriptor(bytes, { base: 100, address: 0x1000n });
  assert.deepEqual(descriptor, {
    fileOffset: 100,
    ldsSize: 0x03020100,
    scratchSize: 0x07060504,
    kernargSize: 0x0b0a0908,
    entryAddress: 0x1000n + 0x1716151413121110n,
    rsrc3: 0x2f2e2d2c,
    rsrc1: 0x33323130,
    rsrc2: 0x37363534,
    codeProperties: 0x3938,
    kernargPreload: 0x3b3a,
  });
  assert.throws(
    () => parseKernelDescriptor(bytes.subarray(0, 63), { base: 0, address: 0n }),
    /TRUNCATED|ends inside/,
  );
});

describe("damaged code objects", () => {
  const names = [
    "A/hsaco/reduce_gfx942.hsaco",
    "A/hsaco/vadd_gfx1100.hsaco",
    "code-object/scale_v2_gfx803.o",
  ];
  for (const name of names) {
    it(`${name}: whatever bytes are changed, the answer is a code object or an error of ours`, async () => {
      const good = fixtureBytes(name);
      const random = randomNumbers(name.length);
      const below = (limit: number): number => Math.floor(random() * limit);
      let errors = 0;
      for (let run = 0; run < 1500; run++) {
        // Headers, notes and tables stand at the front and the end.
        const bytes = below(10) === 0 ? good.slice(0, below(good.length)) : good.slice();
        for (let change = 1 + below(4); change > 0 && bytes.length > 0; change--) {
          const at =
            below(3) === 0
              ? bytes.length - 1 - below(Math.min(bytes.length, 1000))
              : below(Math.min(bytes.length, 1600));
          bytes[at] = [0, 0xff, 0x80, below(256)][below(4)] ?? 0;
        }
        try {
          await readCodeObject(memorySource(bytes));
        } catch (error) {
          if (!isKpackError(error)) throw error;
          errors += 1;
        }
      }
      assert.ok(errors > 100);
    });
  }
});
