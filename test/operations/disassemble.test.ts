import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { addInspect } from "../../src/cli/commands/inspect.ts";
import { disassemble, findDisassemblers } from "../../src/operations/disassemble.node.ts";
import { fixtureBytes } from "../bundle/host-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { documentsAt, parseDocument } from "../support/json-document.ts";
import { runCommand } from "../support/run-command.ts";
import { archiveBytes, TemporaryTree, ZSTD } from "../support/trees.ts";

const FIXTURES = new URL("../fixtures/", import.meta.url).pathname;
const at = (name: string): string => join(FIXTURES, name);

describe("disassembling", () => {
  const fake = (folder: string, name: string, version: string, script: string): void => {
    mkdirSync(folder, { recursive: true });
    const path = join(folder, name);
    writeFileSync(
      path,
      `#!/bin/sh\nif [ "$1" = --version ]; then echo "LLVM version ${version}"; exit 0; fi\n${script}\n`,
    );
    chmodSync(path, 0o755);
  };
  const instructions = `printf '\\n%s:\\tfile format elf64-amdgpu\\n\\n0000 <k>:\\n\\ts_endpgm    // 000000001600: BF810000\\n' "$3"`;

  it("takes the newest tool that knows the target", async () => {
    using tree = new TemporaryTree();
    const old = join(tree.path, "old");
    const folders = [join(tree.path, "none"), old, join(tree.path, "new")];
    fake(
      old,
      "llvm-objdump-9",
      "9.0.1",
      'echo "error: can\'t find target: unable to get target" >&2; exit 1',
    );
    fake(old, "llvm-objdump-14", "14.0.6", instructions);
    fake(old, "llvm-objdump-16", "16.0.0", "kill -SEGV $$");
    fake(
      join(tree.path, "new"),
      "llvm-objdump",
      "22.1.0",
      `echo "'gfx9999' is not a recognized processor" >&2; ${instructions}`,
    );
    assert.deepEqual(
      (await findDisassemblers({ folders })).map(({ version }) => version),
      ["22.1.0", "16.0.0", "14.0.6", "9.0.1"],
    );
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith("kpack-disassembly-")).length;
    const { tool, text } = await disassemble(Uint8Array.of(1), { target: "gfx9999", folders });
    assert.equal(tool.version, "14.0.6");
    assert.equal(text, "0000 <k>:\n\ts_endpgm    // 000000001600: BF810000\n");
    fake(old, "llvm-objdump-14", "14.0.6", "echo nothing");
    const error = await kpackError(
      () => disassemble(Uint8Array.of(1), { target: "gfx9999", folders }),
      "READ_FAILED",
    );
    assert.equal(
      error.message,
      "no llvm-objdump here can disassemble gfx9999: llvm-objdump 22.1.0 does not know it; " +
        "llvm-objdump 16.0.0 crashed (SIGSEGV); llvm-objdump 14.0.6 gave no instructions; llvm-objdump 9.0.1 does not know it",
    );
    assert.equal(
      readdirSync(tmpdir()).filter((name) => name.startsWith("kpack-disassembly-")).length,
      before,
    );
  });

  it("says so where there is none", async () => {
    const error = await kpackError(
      () => disassemble(Uint8Array.of(1), { target: "gfx942", folders: [] }),
      "READ_FAILED",
    );
    assert.match(error.hint ?? "", /Install LLVM/);
    assert.equal(error.name, "AccessError", "the question is not answered: exit status 2");
  });

  it("ends a tool that prints nothing", async () => {
    using tree = new TemporaryTree();
    fake(tree.path, "llvm-objdump", "22.1.0", "sleep 30");
    const how = { target: "gfx942", folders: [tree.path], patience: 500 };
    const error = await kpackError(() => disassemble(Uint8Array.of(1), how), "READ_FAILED");
    assert.match(error.message, /llvm-objdump 22\.1\.0 printed nothing for 0\.5 s/);
  });

  it("prints one document for a damaged code object too", async () => {
    using tree = new TemporaryTree();
    const path = tree.write("cut.hsaco", fixtureBytes("A/hsaco/vadd_gfx942.hsaco").subarray(0, 300));
    const { status, text } = await runCommand(addInspect, "inspect", path, "--disassemble", "--json");
    assert.equal(status, 1);
    const document = parseDocument(text);
    assert.deepEqual(Object.keys(document), ["schema", "file", "kind", "codeObjects", "findings"]);
    assert.equal(document["kind"], "code-object");
    assert.deepEqual(
      documentsAt(document, "findings").map(({ code }) => code),
      ["OUT_OF_BOUNDS"],
    );
    const archive = await archiveBytes({ scheme: ZSTD, targets: { gfx942: ["a#0"] } });
    archive.fill(0xff, 72, 80); // the frame's magic and what follows
    const broken = tree.write("broken.kpack", archive);
    const other = await runCommand(addInspect, "inspect", broken, "--disassemble", "--json");
    assert.equal(other.status, 1);
    assert.equal(parseDocument(other.text)["kind"], "archive");
  });

  it("stops when it is told to", async () => {
    using tree = new TemporaryTree();
    fake(tree.path, "llvm-objdump", "22.1.0", "sleep 30");
    const signal = AbortSignal.timeout(200);
    await assert.rejects(disassemble(Uint8Array.of(1), { target: "gfx942", folders: [tree.path], signal }), {
      name: "TimeoutError",
    });
  });

  const installed = ["llvm-objdump", "llvm-objdump-14"].some(
    (tool) => spawnSync(tool, ["--version"]).status === 0,
  );
  it("works with the LLVM of this machine", {
    skip: installed ? false : "there is no llvm-objdump",
  }, async () => {
    const { status, text } = await runCommand(
      addInspect,
      "inspect",
      at("A/hsaco/vadd_gfx906.hsaco"),
      "--disassemble",
      "vadd",
      "-q",
    );
    assert.equal(status, 0);
    assert.match(text, /<vadd>:\n\ts_load_dword/);
    const json = await runCommand(
      addInspect,
      "inspect",
      at("A/hsaco/vadd_gfx906.hsaco"),
      "--disassemble",
      "--json",
    );
    assert.equal(parseDocument(json.text)["kind"], "code-object");
    const several = await runCommand(addInspect, "inspect", at("C/libfx_multi3.so"), "--disassemble");
    assert.equal(several.status, 2);
    const unknown = await runCommand(
      addInspect,
      "inspect",
      at("A/hsaco/vadd_gfx906.hsaco"),
      "--disassemble",
      "nothing",
    );
    assert.equal(unknown.status, 1);
  });
});
