import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type CompressionScheme, isKpackError, none, openArchive, openFile } from "../../src/node.ts";
import { buildBundle, compressBundle, concat, padded } from "../bundle/bundle-builder.ts";
import { expectedFiles, fixturesOf, patched } from "../bundle/host-fixtures.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { sha256 } from "../support/kernels.ts";
import { digestsOf, entriesOf, fixture, packed, writeTree } from "../support/pack-inputs.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

/** What an input should give, by the fixtures' right answers: hash by key and target, without identical duplicates. */
function expectedDigests(name: string, key: string): Readonly<Record<string, string>> {
  const digests: Record<string, string> = {};
  const { bundles = [], wrappers = [] } = expectedFiles[name] ?? assert.fail(name);
  for (const [index, bundle] of bundles.entries()) {
    const indexes =
      wrappers.length > 0
        ? wrappers.flatMap((wrapper, at) => (wrapper.bundle === index ? [at] : []))
        : [index];
    for (const { triple, arch, size, sha256: digest } of bundle.entries) {
      if (!triple.startsWith("hip") || size === 0 || arch === null || triple.includes("spirv")) continue;
      for (const at of indexes) digests[`${key}#${at} ${arch}`] = digest;
    }
  }
  return digests;
}

const isPackable = (name: string): boolean => Object.keys(expectedDigests(name, "k")).length > 0;
const hip = (target: string): string => `hipv4-amdgcn-amd-amdhsa--${target}`;

describe("pack", () => {
  const inputs = [
    ...fixturesOf("host_binary"),
    ...fixturesOf("bundle").filter(([, { expect }]) => expect === "ok"),
  ].map(([name]) => name);

  for (const name of inputs.filter((one) => isPackable(one) && !/id_spellings|duplicate_triple/.test(one))) {
    it(`takes every code object of ${name}`, async (context) => {
      const output = join(tempFolder(context), "out.kpack");
      const { archives } = await packed({
        inputs: [fixturePath(name)],
        output,
        root: fixturePath(""),
        verify: true,
      });
      const found = await digestsOf(output);
      const wanted = expectedDigests(name, name);
      // One target of a file may stand in its name, which is then not in its keys.
      const simple = Object.fromEntries(
        Object.entries(found).map(([id, digest]) => [id.replace(/^.*(?=#)/, name), digest]),
      );
      assert.deepEqual(simple, wanted);
      assert.equal(archives[0]?.entries, Object.keys(wanted).length);
    });
  }

  it("knows every spelling of an entry id, and leaves what is no HIP code object", async (context) => {
    const output = join(tempFolder(context), "out.kpack");
    const input = fixturePath("B/ok/plain_id_spellings.hipfb");
    const { plan } = await packed({ inputs: [input], output, root: fixturePath("B/ok") });
    const key = "plain_id_spellings.hipfb#0";
    assert.deepEqual(
      (await entriesOf(output)).map((entry) => entry.replace(/ \d+$/, "")),
      [
        "gfx906",
        "gfx942",
        "gfx9-4-generic",
        "gfx90a:sramecc+:xnack-",
        "gfx1100",
        "gfx1250:gfx1250-b0-specific+",
        "gfx1250-strict",
        "gfx950",
      ].map((target) => `${key} ${target}`),
    );
    assert.deepEqual(
      plan.left.map(({ target, payload }) => [target, payload]),
      [["amdgcnspirv", "spirv"]],
    );
  });

  it("gives two keys and one ordinal where wrappers share a bundle (-fgpu-rdc)", async (context) => {
    const output = join(tempFolder(context), "out.kpack");
    await packed({ inputs: [fixturePath("C/libfx_rdc2.so")], output, root: fixturePath("C") });
    assert.deepEqual(await entriesOf(output), [
      "libfx_rdc2.so#0 gfx1100 0",
      "libfx_rdc2.so#0 gfx942 1",
      "libfx_rdc2.so#1 gfx1100 0",
      "libfx_rdc2.so#1 gfx942 1",
    ]);
  });

  it("counts by wrapper, not by bundle: permuted wrappers permute the keys", async (context) => {
    const folder = tempFolder(context);
    const bytes = await fixture("C/fx_app_nopie");
    // In a non-PIE the pointers stand in the file: swap those of the two wrappers.
    const [first, second] = expectedFiles["C/fx_app_nopie"]?.wrappers ?? [];
    assert.ok(first && second);
    const swapped = patched(bytes, [
      [first.file_offset + 8, 8, second.pointer_in_file],
      [second.file_offset + 8, 8, first.pointer_in_file],
    ]);
    writeTree(folder, { "right/app": bytes, "swapped/app": swapped });
    for (const name of ["right", "swapped"])
      await packed({ inputs: [join(folder, name, "app")], output: join(folder, `${name}.kpack`) });
    const right = await digestsOf(join(folder, "right.kpack"));
    const other = await digestsOf(join(folder, "swapped.kpack"));
    assert.notEqual(right["app#0 gfx942"], right["app#1 gfx942"]);
    assert.equal(other["app#0 gfx942"], right["app#1 gfx942"]);
    assert.equal(other["app#1 gfx942"], right["app#0 gfx942"]);
  });

  it("takes the same id twice once where the bytes are the same, and refuses it where they differ", async (context) => {
    const folder = tempFolder(context);
    const [a, b] = [await fixture("A/hsaco/vadd_gfx906.hsaco"), await fixture("A/hsaco/reduce_gfx906.hsaco")];
    const twice = (second: Uint8Array): Uint8Array =>
      buildBundle([
        { id: hip("gfx906"), content: a },
        { id: hip("gfx906"), content: second },
      ]);
    writeTree(folder, { "same.hipfb": twice(a), "different.hipfb": twice(b) });
    const output = join(folder, "out.kpack");
    const { findings } = await packed({ inputs: [join(folder, "same.hipfb")], output });
    assert.deepEqual(await entriesOf(output), ["same.hipfb#0 gfx906 0"]);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ["DUPLICATE_ENTRY_ID"],
    );
    await kpackError(
      async () =>
        await packed({ inputs: [join(folder, "different.hipfb")], output: join(folder, "no.kpack") }),
      "CONFLICTING_KERNELS",
      /gfx906/,
    );
    assert.deepEqual(filesBelow(folder), ["different.hipfb", "out.kpack", "same.hipfb"]);
  });

  it("reads compressed bundles of every version, with padding and others behind them", async (context) => {
    const folder = tempFolder(context);
    const code = await fixture("A/hsaco/vadd_gfx906.hsaco");
    const other = await fixture("A/hsaco/vadd_gfx1100.hsaco");
    const bundle = (target: string, content: Uint8Array): Uint8Array =>
      buildBundle([{ id: hip(target), content }]);
    const content = concat(
      padded(compressBundle(bundle("gfx906", code), { version: 1, method: "zlib" })),
      padded(compressBundle(bundle("gfx906", code), { version: 2, method: "zstd" })),
      compressBundle(bundle("gfx1100", other), { version: 3, method: "zlib" }),
      bundle("gfx1100", other),
    );
    writeTree(folder, { "all.hipfb": content });
    const output = join(folder, "all.kpack");
    await packed({ inputs: [join(folder, "all.hipfb")], output, verify: true });
    assert.deepEqual(await entriesOf(output), [
      "all.hipfb#0 gfx906 0",
      "all.hipfb#1 gfx906 0",
      "all.hipfb#2 gfx1100 1",
      "all.hipfb#3 gfx1100 1",
    ]);
    assert.equal((await digestsOf(output))["all.hipfb#3 gfx1100"], sha256(other));
  });
});

describe("which kernels are packed", () => {
  const pieces = async (): Promise<Uint8Array> =>
    buildBundle([
      { id: "host-x86_64-unknown-linux-gnu-" },
      { id: hip("gfx90a:xnack+"), content: await fixture("A/hsaco/vadd_gfx90a-xnack+.hsaco") },
      { id: hip("gfx90a:xnack-"), content: await fixture("A/hsaco/vadd_gfx90a-xnack-.hsaco") },
      { id: hip("gfx942"), content: await fixture("A/hsaco/vadd_gfx942.hsaco") },
      { id: "openmp-amdgcn-amd-amdhsa--gfx942", content: await fixture("A/hsaco/reduce_gfx942.hsaco") },
      { id: "hip-spirv64-amd-amdhsa--amdgcnspirv", content: Uint8Array.of(3, 2, 35, 7, 0, 0, 1, 0) },
      { id: hip("gfx1100"), content: Uint8Array.of(0x42, 0x43, 0xc0, 0xde, 1) },
      { id: hip("gfx1101"), content: new Uint8Array() },
    ]);
  const cases: readonly (readonly [string, readonly string[] | undefined, readonly string[]])[] = [
    ["all HIP code objects when nothing is named", undefined, ["gfx90a:xnack+", "gfx90a:xnack-", "gfx942"]],
    ["every flag variant of a processor", ["gfx90a"], ["gfx90a:xnack+", "gfx90a:xnack-"]],
    ["one variant alone", ["gfx90a:xnack-"], ["gfx90a:xnack-"]],
    ["SPIR-V when it is named", ["amdgcnspirv", "gfx942"], ["gfx942", "amdgcnspirv"]],
    ["bitcode when its target is named", ["gfx1100"], ["gfx1100"]],
    ["OpenMP by its whole id only", ["openmp-amdgcn-amd-amdhsa--gfx942"], ["gfx942"]],
  ];
  for (const [title, targets, wanted] of cases) {
    it(title, async (context) => {
      const folder = tempFolder(context);
      writeTree(folder, { "in.hipfb": await pieces() });
      const output = join(folder, "out.kpack");
      const { plan } = await packed({ inputs: [join(folder, "in.hipfb")], output, targets });
      await using archive = await openArchive(await openFile(output));
      assert.deepEqual(
        [...archive.entries].map(({ target }) => target),
        wanted,
      );
      assert.deepEqual(archive.targets, wanted);
      assert.equal(plan.kernels.length + plan.left.length, 6);
      assert.deepEqual(plan.availableTargets, ["gfx90a:xnack+", "gfx90a:xnack-", "gfx942"]);
    });
  }

  it("none: what was asked for and what there is are both said, and nothing is written", async (context) => {
    const folder = tempFolder(context);
    writeTree(folder, { "in.hipfb": await pieces() });
    const options = {
      inputs: [join(folder, "in.hipfb")],
      output: join(folder, "out.kpack"),
      targets: ["gfx90a:sramecc+", "gfx906"],
    };
    const error = await kpackError(async () => await packed(options), "NOTHING_FOUND");
    assert.match(String(error.expected), /gfx906/);
    assert.match(String(error.found), /gfx90a:xnack\+.*gfx942/);
    assert.deepEqual(filesBelow(folder), ["in.hipfb"]);
  });
});

describe("folders", () => {
  it("are walked once: loops, dangling links and files of other kinds do no harm", {
    timeout: 10_000,
  }, async (context) => {
    const folder = tempFolder(context);
    writeTree(folder, {
      "tree/gfx906/a.hsaco": await fixture("A/hsaco/vadd_gfx906.hsaco"),
      "tree/gfx1100/a.hsaco": await fixture("A/hsaco/vadd_gfx1100.hsaco"),
      "tree/sub/lib.so": await fixture("C/libfx_single.so"),
      "tree/notes.txt": "text",
      "tree/broken.co": "no code object",
      "tree/old.kpack": await fixture("D/ok/none_small.kpack"),
      "tree/empty.hsaco": "",
    });
    const tree = join(folder, "tree");
    symlinkSync("..", join(tree, "sub/loop"));
    symlinkSync(tree, join(tree, "self"));
    symlinkSync("nowhere", join(tree, "dangling.hsaco"));
    symlinkSync("me.hsaco", join(tree, "me.hsaco"));
    symlinkSync("sub/lib.so", join(tree, "link.so"));
    const { findings } = await packed({ inputs: [tree], output: join(folder, "out.kpack") });
    assert.deepEqual(
      (await entriesOf(join(folder, "out.kpack"))).map((one) => one.replace(/ \d+$/, "")),
      [
        "a.hsaco#0 gfx1100",
        "a.hsaco#0 gfx906",
        "link.so#0 gfx1100",
        "link.so#0 gfx942",
        "sub/lib.so#0 gfx1100",
        "sub/lib.so#0 gfx942",
      ],
    );
    assert.deepEqual(
      findings.map(({ code, file }) => [code, file?.slice(tree.length + 1)]),
      [
        ["SKIPPED_FILE", "broken.co"],
        ["SKIPPED_FILE", "empty.hsaco"],
      ],
    );
  });

  it("keys count from --root, the current folder, or the input's own", async (context) => {
    const folder = tempFolder(context);
    writeTree(folder, { "a/b/k.hsaco": await fixture("A/hsaco/vadd_gfx906.hsaco") });
    const keyOf = async (input: string, root?: string): Promise<string> => {
      const output = join(folder, "out.kpack");
      await packed({ inputs: [input], output, root });
      return (await entriesOf(output))[0] ?? "";
    };
    const file = join(folder, "a/b/k.hsaco");
    assert.equal(await keyOf(file), "k.hsaco#0 gfx906 0");
    assert.equal(await keyOf(join(folder, "a")), "b/k.hsaco#0 gfx906 0");
    assert.equal(await keyOf(file, folder), "a/b/k.hsaco#0 gfx906 0");
    assert.equal(
      await keyOf("test/fixtures/A/hsaco/vadd_gfx906.hsaco"),
      "test/fixtures/A/hsaco/vadd.hsaco#0 gfx906 0",
    );
    const error = await kpackError(
      async () => await keyOf(file, join(folder, "elsewhere")),
      "READ_FAILED",
      /^root$/,
    );
    assert.equal(error.name, "AccessError");
  });

  it("two files that come to the same key and target are refused, and nothing is written", async (context) => {
    const folder = tempFolder(context);
    writeTree(folder, {
      "in/x_gfx906.co": await fixture("A/hsaco/vadd_gfx906.hsaco"),
      "in/gfx906/x.co": await fixture("A/hsaco/reduce_gfx906.hsaco"),
      "in/y_gfx1100.co": await fixture("A/hsaco/vadd_gfx1100.hsaco"),
    });
    for (const splitBy of [undefined, "target"] as const) {
      const options = { inputs: [join(folder, "in")], output: join(folder, "out"), splitBy };
      await kpackError(async () => await packed(options), "CONFLICTING_KERNELS", /^x\.co#0 gfx906$/);
      assert.deepEqual(filesBelow(folder), ["in/gfx906/x.co", "in/x_gfx906.co", "in/y_gfx1100.co"]);
    }
  });

  it("a file name with a backslash is a key with a slash, also when it is verified", async (context) => {
    const folder = tempFolder(context);
    writeTree(folder, { "a\\b.hsaco": await fixture("A/hsaco/vadd_gfx906.hsaco") });
    await packed({ inputs: [folder], output: join(folder, "out.kpack"), verify: true });
    assert.deepEqual(await entriesOf(join(folder, "out.kpack")), ["a/b.hsaco#0 gfx906 0"]);
  });
});

describe("split by target", () => {
  it("makes one archive for each, with names and families of its own", async (context) => {
    const folder = tempFolder(context);
    const { archives } = await packed({
      inputs: [fixturePath("C/libfx_compressed.so")],
      output: join(folder, ".kpack"),
      splitBy: "target",
      groupName: "fx",
      verify: true,
    });
    const targets = ["gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-"];
    assert.deepEqual(
      filesBelow(folder),
      targets.map((target) => `.kpack/fx_${target}.kpack`),
    );
    assert.deepEqual(archives.map(({ family }) => family).toSorted(), targets);
    const split: Record<string, string> = {};
    for (const { path } of archives) Object.assign(split, await digestsOf(path));
    await packed({ inputs: [fixturePath("C/libfx_compressed.so")], output: join(folder, "one.kpack") });
    assert.deepEqual(split, await digestsOf(join(folder, "one.kpack")));
  });

  it("names no file outside its folder, whatever a target calls itself", async (context) => {
    const folder = tempFolder(context);
    const content = await fixture("A/hsaco/vadd_gfx906.hsaco");
    writeTree(folder, { "in.hipfb": buildBundle([{ id: hip("gfx906/../../../evil"), content }]) });
    await packed({ inputs: [join(folder, "in.hipfb")], output: join(folder, "a/b/out"), splitBy: "target" });
    assert.deepEqual(filesBelow(folder), ["a/b/out/in_gfx906%2F..%2F..%2F..%2Fevil.kpack", "in.hipfb"]);
  });
});

describe("binaries without kernels of their own", () => {
  it("converted ones are passed over, half-converted ones refused", async (context) => {
    const folder = tempFolder(context);
    const output = join(folder, "out.kpack");
    const findings: string[] = [];
    const { pack } = await import("../../src/operations/pack.node.ts");
    await kpackError(
      async () =>
        await pack({
          inputs: [fixturePath("E/lib/libfx_multi3.so")],
          output,
          onFinding: ({ code, message }) => void findings.push(`${code} ${message}`),
        }),
      "NOTHING_FOUND",
    );
    assert.deepEqual(findings, [
      'ALREADY_CONVERTED the binary is converted already: its kernels are in archives; "kpack resolve" finds them for a GPU',
    ]);
    const converted = await fixture("E/lib/libfx_multi3.so");
    const at = Buffer.from(converted).indexOf("HIPK");
    const half = patched(converted, [[at, 4, 0x48495046]]);
    writeTree(folder, { "half.so": half });
    await kpackError(
      async () => await packed({ inputs: [join(folder, "half.so")], output }),
      "HALF_CONVERTED",
      /wrapper/,
    );
    // Beside others in a folder the converted one does no harm.
    writeTree(folder, {
      "in/a.so": await fixture("C/libfx_single.so"),
      "in/b.so": converted,
      "in/c.so": await fixture("C/libfx_hostonly.so"),
    });
    await packed({ inputs: [join(folder, "in")], output });
    assert.equal((await entriesOf(output)).length, 2);
  });
});

describe("what goes wrong leaves nothing behind", () => {
  const input = fixturePath("C/libfx_multi3.so");

  it("an abort at any point", async (context) => {
    const folder = tempFolder(context);
    for (const splitBy of [undefined, "target"] as const) {
      for (let after = 0; after < 9; after++) {
        const abort = new AbortController();
        let left = after;
        const options = {
          inputs: [input],
          output: join(folder, "out"),
          splitBy,
          verify: true,
          signal: abort.signal,
          onProgress: () => {
            left -= 1;
            if (left < 0) abort.abort(new Error("enough"));
          },
        };
        await assert.rejects(packed(options), /enough/);
        assert.deepEqual(filesBelow(folder), []);
      }
    }
  });

  it("a scheme that fails, and one that writes other bytes than it was given, which --verify notices", async (context) => {
    const folder = tempFolder(context);
    const compressor = (change: (bytes: Uint8Array) => Uint8Array): CompressionScheme<Uint8Array> => ({
      ...none,
      createCompressor: (how) => {
        const inner = none.createCompressor(how);
        return {
          prepareKernel: async (kernel) => change(kernel.bytes.slice()),
          finalize: async (inputs, area, options) => await inner.finalize(inputs, area, options),
        };
      },
    });
    const failing = compressor(() => {
      throw new RangeError("the scheme failed");
    });
    const lying = compressor((bytes) => {
      bytes[100] = (bytes[100] ?? 0) ^ 1;
      return bytes;
    });
    const output = join(folder, "out");
    for (const splitBy of [undefined, "target"] as const) {
      await assert.rejects(
        packed({ inputs: [input], output, splitBy, scheme: failing }),
        /the scheme failed/,
      );
      for (const extraFields of [true, false]) {
        const options = { inputs: [input], output, splitBy, scheme: lying, extraFields };
        await kpackError(
          async () => await packed({ ...options, verify: true }),
          "CHECKSUM_MISMATCH",
          /libfx_multi3\.so#0/,
        );
        assert.deepEqual(filesBelow(folder), []);
      }
    }
    await packed({ inputs: [input], output: join(folder, "lie.kpack"), scheme: lying });
    assert.deepEqual(filesBelow(folder), ["lie.kpack"]);
  });

  it("a damaged input", async (context) => {
    const folder = tempFolder(context);
    for (const [name] of fixturesOf("bundle").filter(([, { expect }]) => expect === "error")) {
      await assert.rejects(
        packed({ inputs: [fixturePath(name)], output: join(folder, "out.kpack") }),
        (error) => isKpackError(error) && error.name !== "AccessError",
        name,
      );
    }
    assert.deepEqual(filesBelow(folder), []);
  });

  it("an output that cannot be written", async (context) => {
    const folder = tempFolder(context);
    mkdirSync(join(folder, "out"));
    writeTree(folder, { file: "x" });
    for (const output of [join(folder, "out"), join(folder, "file/out.kpack")])
      await kpackError(async () => await packed({ inputs: [input], output }), "WRITE_FAILED");
    assert.deepEqual(filesBelow(folder), ["file"]);
  });
});
