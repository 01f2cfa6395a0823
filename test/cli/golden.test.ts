import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { FIXTURES, runMany } from "../support/run-kpack.ts";
import { parseJson } from "../support/parse-json.ts";

/**
 * The output of every command, kept in files: what people and scripts see changes only on purpose.
 * KPACK_UPDATE_GOLDEN=1 writes them anew; read the difference before it is committed.
 */
const FOLDER = join(FIXTURES, "golden/cli");
const isUpdate = Boolean(process.env["KPACK_UPDATE_GOLDEN"]);
const WIDTH = 100;

const temporary = mkdtempSync(join(tmpdir(), "kpack-golden-"));
after(() => rmSync(temporary, { recursive: true, force: true }));

/** `TMP` in the arguments stands for a folder that is empty at first and shared by the cases, which run in order. */
const CASES: Readonly<Record<string, string>> = {
  "pack-fat-binary": "pack C/libfx_multi3.so -o TMP/multi.kpack",
  "pack-shared": "pack C/libfx_rdc2.so --root C -o TMP/rdc.kpack --verify",
  "pack-split": "pack C/libfx_compressed.so --root C --split-by target -o TMP/split",
  "pack-left-out": "pack B/ok/plain_legacy_kinds.hipfb -o TMP/legacy.kpack --scheme none --no-extra-fields",
  "pack-json": "pack C/libfx_multi3.so --root C -o TMP/multi-root.kpack --json",
  "pack-left-out-json": "pack B/ok/plain_legacy_kinds.hipfb -o TMP/legacy.kpack --json",
  "pack-nothing": "pack C/libfx_single.so --targets gfx90a -o TMP/no.kpack",
  "pack-nothing-json": "pack C/libfx_single.so --targets gfx90a -o TMP/no.kpack --json",
  "pack-bad-json": "pack B/bad/ccob_v4.hipfb -o TMP/no.kpack --json",
  "list-archive": "list TMP/multi-root.kpack",
  "list-archive-json": "list D/ok/zstd_features.kpack --json",
  "list-metadata-json": "list D/ok/none_metadata.kpack --json",
  "list-hashes-json": "list TMP/rdc.kpack --json",
  "list-fat-binary": "list C/libfx_multi3.so",
  "list-fat-binary-json": "list C/libfx_rdc2.so --json",
  "list-bundle": "list B/ok/plain_id_spellings.hipfb",
  "list-duplicate-json": "list B/ok/plain_duplicate_triple.hipfb --json",
  "list-code-object": "list A/hsaco/vadd_gfx942.hsaco",
  "list-nothing": "list D/ok/zstd_features.kpack --targets gfx1",
  "info-archive": "info TMP/multi-root.kpack",
  "info-shared": "info D/odd/shared_ordinal.kpack",
  "info-odd": "info D/odd/trailing_bytes.kpack",
  "info-json": "info TMP/rdc.kpack --json",
  "info-odd-json": "info D/odd/arch_not_listed.kpack --json",
  "extract-one": "extract D/ok/none_base.kpack lib/liba.so#0 gfx906 -o TMP/one.hsaco",
  "extract-one-json": "extract D/ok/none_base.kpack bin/app#0 -o TMP/app.hsaco --json",
  "extract-all": "extract D/ok/zstd_base.kpack -o TMP/all",
  "extract-all-json": "extract D/odd/path_traversal.kpack -o TMP/safe --json",
  "extract-damaged": "extract D/bad/zstd_frame_truncated.kpack -o TMP/damaged",
  "extract-damaged-json": "extract D/bad/zstd_frame_truncated.kpack -o TMP/damaged --json",
  "extract-unknown-key": "extract D/ok/none_base.kpack lib/nothing.so#0 gfx906 -o TMP/no.hsaco",
  "unbundle-fat-binary": "unbundle C/libfx_single.so -o TMP/unbundled",
  "unbundle-json": "unbundle B/ok/plain_id_spellings.hipfb -o TMP/spellings --json",
  "verify-good": "verify D/ok/none_kdb.kpack D/ok/zstd_features.kpack",
  "verify-odd": "verify D/odd/trailing_bytes.kpack D/odd/zstd_no_content_size.kpack",
  "verify-strict": "verify D/odd/gap_before_toc.kpack --strict",
  "verify-bad": "verify D/bad/zstd_frame_truncated.kpack D/bad/magic.kpack",
  "verify-many": "verify D/ok/zstd_many5000.kpack",
  "verify-json": "verify TMP/multi-root.kpack D/bad/zstd_original_size_plus1.kpack D/bad/magic.kpack --json",
  "verify-odd-json": "verify D/odd/path_traversal.kpack --strict --json",
  "convert-archive": "convert D/ok/none_kdb.kpack -o TMP/kdb.kpack --level 19 --verify",
  "convert-json":
    "convert D/odd/trailing_bytes.kpack -o TMP/none.kpack --scheme none --targets gfx1100 --json",
  "error-missing-file": "info nowhere.kpack",
  "error-missing-file-json": "info nowhere.kpack --json",
  "error-no-archive": "info C/libfx_multi3.so",
  "error-no-archive-json": "info C/libfx_multi3.so --json",
  "error-usage": "pack C/libfx_multi3.so -o TMP/x.kpack --scheme none --level 3",
  "error-usage-json": "pack C/libfx_multi3.so -o TMP/x.kpack --scheme none --level 3 --json",
  "error-option": "list --frobnicate",
  "error-option-json": "list --frobnicate --json",
  "error-command": "frobnicate",
  "help-kpack": "--help",
  ...Object.fromEntries(
    ["pack", "list", "info", "extract", "unbundle", "verify", "convert"].map((name) => [
      `help-${name}`,
      `${name} --help`,
    ]),
  ),
};

describe("golden output", () => {
  mkdirSync(FOLDER, { recursive: true });
  const results = runMany(
    Object.values(CASES).map((line) => line.split(" ").map((part) => part.replace("TMP", temporary))),
  );
  for (const [index, [name, line]] of Object.entries(CASES).entries()) {
    it(`${name}: kpack ${line}`, () => {
      const { status, stdout, stderr } = results[index] ?? assert.fail();
      const clean = (text: string): string => text.replaceAll(temporary, "TMP");
      if (line.endsWith("--json")) {
        const value = parseJson<{ readonly schema?: unknown }>(stdout);
        assert.match(String(value.schema), /^kpack\/[a-z]+\/\d+$/);
      }
      const found = `$ kpack ${line}\n${clean(stdout)}${stderr === "" ? "" : `--- stderr\n${clean(stderr)}`}--- exit status ${status}\n`;
      const path = join(FOLDER, `${name}.txt`);
      if (isUpdate) writeFileSync(path, found);
      assert.equal(found, readFileSync(path, "utf8"), "KPACK_UPDATE_GOLDEN=1 writes the files anew");
    });
  }

  it("has no files that no case makes", () => {
    const names = readdirSync(FOLDER).filter((name) =>
      Object.keys(CASES).some((one) => name === `${one}.txt`),
    );
    assert.equal(names.length, Object.keys(CASES).length);
  });

  it("help and what is typed by us fits 100 columns, and each command's help has examples", () => {
    for (const name of readdirSync(FOLDER).filter((one) => one.startsWith("help-"))) {
      const text = readFileSync(join(FOLDER, name), "utf8");
      for (const line of text.split("\n")) assert.ok(line.length <= WIDTH, `${name}: ${line}`);
      if (name !== "help-kpack.txt") assert.match(text, /\nExamples:\n {2}kpack \w+ /, name);
      assert.match(text, /--- exit status 0\n$/);
    }
  });

  it("every command's page has its help, within 100 columns and with examples", () => {
    for (const name of readdirSync("docs/commands")) {
      const page = readFileSync(join("docs/commands", name), "utf8");
      const help = /<!-- help -->\n```text\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
      assert.ok(help.startsWith(`Usage: kpack ${name.replace(".md", "")} `), name);
      for (const line of help.split("\n")) assert.ok(line.length <= WIDTH, `${name}: ${line}`);
      assert.match(help, /\nExamples:\n {2}kpack \w+ /, name);
    }
  });

  it("is coloured nowhere", () => {
    for (const name of readdirSync(FOLDER))
      assert.ok(!readFileSync(join(FOLDER, name), "utf8").includes("\u001b"), name);
  });
});
