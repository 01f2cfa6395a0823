import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { demangle } from "../../src/code-object/demangle.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import { readCodeObject } from "../../src/code-object/read-code-object.ts";
import { readDeviceCode } from "../../src/host/device-code.ts";
import { memorySource, openFile } from "../../src/node.ts";

const GOLDEN = new URL("../fixtures/code-object/demangled.tsv", import.meta.url);
const pairs: readonly (readonly string[])[] = readFileSync(GOLDEN, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => line.split("\t"));

test("names of kernels of rocSPARSE and rocRAND, and others, are what c++filt makes of them", () => {
  assert.ok(pairs.length > 200);
  for (const [mangled = "", expected] of pairs) assert.equal(demangle(mangled), expected);
});

test("what is not understood comes back unchanged", () => {
  const names = [
    ["_Z", "_Z1", "_ZN", "_ZNE", "_Z3fo", "_Z1fS_v", "_Z1fT_", "_Z1fILi3", "_ZN1AC1", "_Z1fIiEDTcl1gfp_EET_"],
    ["_ZTV1A", "_ZGV1x", "_Z1fDpi", "_Z1f?", "_Z1fIXsr1AE1BEvv", "_Z999999999f", "plain", "", "_", "_Z1fv "],
  ].flat();
  for (const name of names) assert.equal(demangle(name), name);
});

test("no name, however hostile, makes it throw or grow without bounds", () => {
  // Each level names the one before twice.
  let doubled = "_Z1f1A";
  for (let level = 0; level < 60; level++) doubled += `1BI${"S_".repeat(2)}E`;
  const deep = ["P".repeat(100_000), "N".repeat(1000), "I".repeat(1000), "F".repeat(1000), "Z1f".repeat(300)];
  const hostile = [doubled, ...deep.map((text) => `_Z1f${text}`), `_Z1f${"PS_".repeat(5000)}`];
  for (const name of hostile) assert.ok(demangle(name).length <= 1 << 18);
  const code = fc.constantFrom(
    ...("_ZNSTIJLEPRKFDpvidjUlM0123456789nE1A3fooStXadCcl".match(/\d\w|\w/g) ?? []),
  );
  fc.assert(
    fc.property(fc.array(code, { maxLength: 60 }), (parts) => {
      assert.equal(typeof demangle(`_Z${parts.join("")}`), "string");
    }),
    { numRuns: 5000 },
  );
});

test("a damaged name is another name or comes back unchanged", () => {
  fc.assert(
    fc.property(fc.constantFrom(...pairs), fc.nat(), fc.nat(), ([mangled = ""], at, to) => {
      const [start, end] = [at % mangled.length, to % mangled.length];
      demangle(mangled.slice(0, start) + mangled.slice(end));
    }),
    { numRuns: 3000 },
  );
});

const folder = process.env["KPACK_DEBIAN_LIBS"];
const filter = ["c++filt"].find((tool) => spawnSync(tool, ["--version"]).status === 0);

test("all names of Debian's libraries are what c++filt makes of them", {
  skip:
    folder === undefined
      ? "KPACK_DEBIAN_LIBS is not set"
      : filter === undefined
        ? "there is no c++filt"
        : false,
}, async () => {
  const names = new Set<string>();
  for (const file of readdirSync(folder ?? "").filter((name) => /^librocrand\.so\.\d+\.\d+$/.test(name))) {
    await using source = await openFile(join(folder ?? "", file));
    for (const item of (await readDeviceCode(source, { codecs: nodeCodecs })).items) {
      const { functions } = await readCodeObject(memorySource(await item.kernel.read()));
      for (const { name } of functions) names.add(name);
    }
  }
  assert.ok(names.size > 50);
  const list = [...names];
  const { stdout } = spawnSync(filter ?? "", [], { input: list.join("\n"), encoding: "utf8" });
  assert.deepEqual(list.map(demangle), stdout.trimEnd().split("\n"));
});
