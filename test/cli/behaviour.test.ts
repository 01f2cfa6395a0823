import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { formatFinding } from "../../src/cli/terminal.ts";
import { formatCount, formatRatio, formatSize } from "../../src/cli/render/numbers.ts";
import { renderTable } from "../../src/cli/render/table.ts";
import { document, FIXTURES, kpack, MAIN, runMany, shell } from "../support/run-kpack.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";

const ARCHIVE = "D/ok/zstd_base.kpack";
const KEY = "lib/liba.so#0";

describe("exit status", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, `list ${ARCHIVE}`],
    [0, `info ${ARCHIVE}`],
    [0, `verify ${ARCHIVE}`],
    [0, `verify D/odd/trailing_bytes.kpack`],
    [0, `extract ${ARCHIVE} ${KEY} gfx906 -o TMP/k`],
    [0, `extract ${ARCHIVE} -o TMP/all`],
    [0, `unbundle C/libfx_single.so -o TMP/u`],
    [0, `convert ${ARCHIVE} -o TMP/c`],
    [0, `pack C/libfx_single.so -o TMP/p`],
    [0, "--version"],
    [0, "help"],
    [0, "help pack"],
    // The answer is no.
    [1, "list B/bad/text.hipfb"],
    [1, "list B/bad/plain_cut_24.hipfb"],
    [1, "list D/bad/magic.kpack"],
    [1, `list ${ARCHIVE} --targets gfx1`],
    [1, "info D/bad/toc_nil.kpack"],
    [1, "info C/libfx_single.so"],
    [1, "verify D/bad/version_2.kpack"],
    [1, `verify ${ARCHIVE} D/bad/version_2.kpack`],
    [1, "verify D/odd/trailing_bytes.kpack --strict"],
    [1, `extract ${ARCHIVE} nothing gfx906 -o TMP/x`],
    [1, `extract ${ARCHIVE} ${KEY} gfx1 -o TMP/x`],
    [1, `extract ${ARCHIVE} --targets gfx1 -o TMP/x`],
    [1, "extract D/bad/zstd_frame_truncated.kpack -o TMP/x"],
    [1, "extract D/ok/none_empty.kpack -o TMP/x"],
    [1, "unbundle C/libfx_hostonly.so -o TMP/x"],
    [1, "unbundle B/bad/ccob_v4.hipfb -o TMP/x"],
    [1, `convert D/bad/zstd_frame_truncated.kpack -o TMP/x`],
    [1, `convert ${ARCHIVE} --targets gfx1 -o TMP/x`],
    [1, "pack C/libfx_hostonly.so -o TMP/x"],
    [1, "pack E/lib/libfx_multi3.so -o TMP/x"],
    [1, `pack ${ARCHIVE} -o TMP/x`],
    [1, "pack B/bad/ccob_v4.hipfb -o TMP/x"],
    [1, "pack C/libfx_single.so --targets gfx90a -o TMP/x"],
    // No answer.
    ...["list", "info", "verify"].map((name) => [2, `${name} nowhere.kpack`] as const),
    ...["extract", "convert", "unbundle", "pack"].map((name) => [2, `${name} nowhere -o TMP/x`] as const),
    ...["list", "info", "verify"].map((name) => [2, `${name} D/ok`] as const),
    [2, "unbundle C -o TMP/x"],
    ...["list", "info", "verify", "extract", "convert", "unbundle", "pack"].map((name) => [2, name] as const),
    ...["list", "info", "verify", "extract", "convert", "unbundle", "pack"].map(
      (name) => [2, `${name} x --frobnicate`] as const,
    ),
    [2, ""],
    [2, "frobnicate"],
    [2, "help frobnicate"],
    [0, "help resolve"],
    ...["pack", "convert", "unbundle", "shrink --keep gfx942"].map(
      (name) => [2, `${name} ${ARCHIVE} -o -`] as const,
    ),
    ...["a/b", "a\\b"].map((name) => [2, `pack C/libfx_single.so -o TMP/x --group ${name}`] as const),
    [2, `list ${ARCHIVE} --targets ,`],
    [2, `pack C/libfx_single.so -o TMP/x --level 23`],
    [2, `pack C/libfx_single.so -o TMP/x --level 0`],
    [2, `pack C/libfx_single.so -o TMP/x --jobs 0`],
    [2, `pack C/libfx_single.so -o TMP/x --jobs 1.5`],
    [2, `pack C/libfx_single.so -o TMP/x --scheme zip`],
    [2, `pack C/libfx_single.so -o TMP/x --split-by size`],
    [2, `pack C/libfx_single.so -o TMP/x --scheme none --level 5`],
    [2, `pack C/libfx_single.so -o TMP/x --root B`],
    [2, `extract ${ARCHIVE} ${KEY} -o TMP/x`],
    [2, `extract ${ARCHIVE} ${KEY} gfx906 --targets gfx906 -o TMP/x`],
    [2, `extract ${ARCHIVE} -o -`],
    [2, `extract ${ARCHIVE} ${KEY} gfx906 -o - --json`],
    // Outputs that cannot be written: below a file, or where a folder stands.
    [2, "pack C/libfx_single.so -o TMP/file/x.kpack"],
    [2, "pack C/libfx_single.so -o TMP"],
    [2, "pack C/libfx_single.so --split-by target -o TMP/file"],
    [2, `convert ${ARCHIVE} -o TMP/file/x.kpack`],
    [2, `extract ${ARCHIVE} -o TMP/file`],
    [2, `extract ${ARCHIVE} ${KEY} gfx906 -o TMP/file/x`],
    [2, "unbundle C/libfx_single.so -o TMP/file"],
  ];

  it("is 0 for yes, 1 for no, 2 for no answer; nothing is left behind, and --json is one document", (context) => {
    const runs = cases.flatMap(([status, line]) => {
      const isJsonToo = status !== 0 && !/^(|help.*|frobnicate)$/.test(line);
      return (isJsonToo ? ["", " --json"] : [""]).map((suffix) => {
        const folder = tempFolder(context);
        writeFileSync(join(folder, "file"), "");
        const args = `${line}${suffix}`.split(" ").filter((part) => part !== "");
        return {
          status,
          line: `${line}${suffix}`,
          folder,
          args: args.map((part) => part.replace("TMP", folder)),
        };
      });
    });
    const results = runMany(runs.map(({ args }) => args));
    const wrong: string[] = [];
    for (const [index, { status, line, folder }] of runs.entries()) {
      const ran = results[index] ?? assert.fail(line);
      const isJson = line.endsWith("--json");
      if (ran.status !== status && !line.endsWith(" -o - --json"))
        wrong.push(`${ran.status} instead of ${status}: ${line}\n${ran.stderr}`);
      if (status === 2 && ran.stdout !== "" && !isJson) wrong.push(`stdout for ${line}: ${ran.stdout}`);
      if (status !== 0 && ran.stderr === "" && !line.startsWith("verify") && !isJson)
        wrong.push(`nothing said for ${line}`);
      if (/^\s+at /m.test(ran.stderr)) wrong.push(`a stack trace for ${line}: ${ran.stderr}`);
      const left = filesBelow(folder).filter(
        (name) => name.endsWith(".tmp") || (status === 2 && name !== "file"),
      );
      if (left.length > 0) wrong.push(`left behind by ${line}: ${left.join(", ")}`);
      if (!isJson) continue;
      try {
        const { schema } = document(ran);
        if (status === 2 && schema !== "kpack/error/1") wrong.push(`schema ${String(schema)} for ${line}`);
      } catch {
        wrong.push(`no JSON document for ${line}: ${ran.stdout}`);
      }
    }
    assert.deepEqual(wrong, []);
  });
});

describe("streams", () => {
  it("the bytes of one kernel go to stdout, and nothing else does", () => {
    const { status, stdout, stderr } = shell(`$KPACK extract ${ARCHIVE} '${KEY}' gfx906 -o - | sha256sum`);
    assert.equal(status, 0);
    assert.equal(stderr, "");
    const expected = shell(`$KPACK extract D/ok/none_base.kpack '${KEY}' gfx906 -o - | sha256sum`);
    assert.equal(stdout, expected.stdout);
  });

  it("--quiet leaves notes out, and errors in", async (context) => {
    const folder = tempFolder(context);
    const quiet = await kpack(["extract", ARCHIVE, "-o", folder, "--quiet"]);
    assert.deepEqual([quiet.status, quiet.stdout, quiet.stderr], [0, "", ""]);
    assert.match((await kpack(["info", "nowhere", "--quiet"])).stderr, /^kpack: nowhere: cannot be read/);
  });

  it("a reader that has had enough is no fault", () => {
    for (const command of ["list D/ok/zstd_many5000.kpack", "list D/ok/zstd_many5000.kpack --json"]) {
      const { stdout, stderr } = shell(
        `set -o pipefail; $KPACK ${command} | head -c 10; echo "\${PIPESTATUS[0]}"`,
      );
      assert.match(stdout, /0\n$/);
      assert.equal(stderr, "");
    }
    const closed = shell(
      `$KPACK verify D/bad/magic.kpack D/bad/version_2.kpack 2>&1 >/dev/null | true; echo "\${PIPESTATUS[0]}"`,
    );
    assert.equal(closed.stdout, "1\n");
  });

  it("a full disk is", () => {
    if (!existsSync("/dev/full")) return;
    const { status, stderr } = shell(`$KPACK list ${ARCHIVE} > /dev/full`);
    assert.equal(status, 2);
    assert.match(stderr, /^kpack: .*ENOSPC/);
  });

  it("colour depends on the stream that is written to", () => {
    const finding = { severity: "error", code: "TRUNCATED", message: "m" } as const;
    const stream = (isTTY: boolean): NodeJS.WritableStream =>
      Object.assign(new PassThrough(), {
        isTTY,
        getColorDepth: () => (isTTY ? 24 : 1),
      });
    const { FORCE_COLOR: forced, NO_COLOR: none } = process.env;
    delete process.env["FORCE_COLOR"];
    delete process.env["NO_COLOR"];
    assert.equal(formatFinding(finding, stream(false)), "error: m [TRUNCATED]");
    assert.equal(formatFinding(finding, stream(true)), "\u001b[31merror:\u001b[39m m [TRUNCATED]");
    if (forced !== undefined) process.env["FORCE_COLOR"] = forced;
    if (none !== undefined) process.env["NO_COLOR"] = none;
  });

  it("there is colour on a terminal, none with NO_COLOR, none in a file while stderr is a terminal", (context) => {
    if (!existsSync("/usr/bin/script")) return context.skip("no script(1) to make a terminal");
    const folder = tempFolder(context);
    const inTerminal = (command: string, env: Readonly<Record<string, string>> = {}): string =>
      shell(`TERM=xterm-256color script -qec "$KPACK ${command}" /dev/null < /dev/null`, { env }).stdout;
    assert.match(inTerminal("info nowhere"), /\u001b\[31mkpack:/);
    assert.match(inTerminal("verify D/bad/magic.kpack"), /\u001b\[31merror:/);
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(inTerminal("info nowhere", { NO_COLOR: "1" }), /\u001b\[3/);
    inTerminal(`verify D/bad/magic.kpack > ${folder}/out.txt`);
    assert.match(readFileSync(join(folder, "out.txt"), "utf8"), /^error: /);
  });

  it("text from a file cannot steer the terminal", async () => {
    const { stdout } = await kpack(["list", "D/ok/none_unicode.kpack"]);
    assert.match(stdout, /🚀/);
    assert.equal(renderTable([{ title: "A" }], [["\u001b[31m\u202e"]]), "A\n\\u001b[31m\\u202e");
  });
});

describe("interruption", () => {
  for (const [signal, status] of [
    ["SIGHUP", 129],
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    it(`${signal} while packing leaves no file, and ends with ${status}`, async (context) => {
      const folder = tempFolder(context);
      // Many kernels: one that is being compressed is not interrupted.
      const inputs = Array.from({ length: 60 }, (_, index) => `in/k${10 + index}.hsaco`);
      mkdirSync(join(folder, "in"));
      for (const [index, name] of inputs.entries())
        writeFileSync(join(folder, name), bigCodeObject(512 * 1024, index));
      const args = [MAIN, "pack", join(folder, "in"), "-o", join(folder, "out.kpack"), "--level", "19"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
      let text = "";
      child.stdout.on("data", (data: Buffer) => (text += data.toString()));
      child.stderr.on("data", (data: Buffer) => (text += data.toString()));
      const ended = new Promise<readonly [number | null, string | null]>((resolve) =>
        child.on("close", (code, by) => resolve([code, by])),
      );
      const deadline = performance.now() + 15_000;
      while (!filesBelow(folder).some((name) => name.endsWith(".tmp")) && performance.now() < deadline)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await new Promise((resolve) => setTimeout(resolve, 100));
      child.kill(signal);
      assert.deepEqual(await ended, [status, null], text);
      assert.deepEqual(filesBelow(folder), inputs);
      assert.equal(text, "");
    });
  }
});

/** Noise behind a code object's header: slow to compress at a high level. */
function bigCodeObject(size: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(size);
  const words = new Uint32Array(bytes.buffer);
  let state = seed;
  for (let index = 0; index < words.length; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[index] = state & 0x0f0f3f1f;
  }
  bytes.set(readFileSync(join(FIXTURES, "A/hsaco/vadd_gfx942.hsaco")));
  return bytes;
}

describe("an old Node", () => {
  const pretend = (version: string): readonly string[] => {
    const script = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: ${JSON.stringify(version)} } });`;
    return ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
  };
  for (const version of ["18.0.0", "22.20.0", "24.5.0"]) {
    it(`${version} is told what to do, before anything else is loaded`, async () => {
      const { status, stdout, stderr } = await kpack(["list", ARCHIVE], { nodeArgs: pretend(version) });
      assert.equal(status, 2);
      assert.equal(stdout, "");
      assert.match(
        stderr,
        new RegExp(`^kpack: this needs Node 24\\.6 or later, and this is ${version}\\.\\n`),
      );
      assert.match(stderr, /npx -p node@24 -p rocm-kpack kpack\n$/);
    });
  }
  for (const version of ["24.6.0", "25.0.0", "30.1.2"]) {
    it(`${version} is new enough`, async () => {
      assert.equal((await kpack(["list", ARCHIVE], { nodeArgs: pretend(version) })).status, 0);
    });
  }
  it("the check itself asks for nothing that Node 18 lacks", () => {
    const imports = [...readFileSync(MAIN, "utf8").matchAll(/^import .* from "(.*)";$/gm)].map(
      ([, name]) => name,
    );
    assert.deepEqual(imports, ["node:os"]);
  });
});

describe("numbers for people", () => {
  it("sizes are in powers of 1000, ratios in percent, counts with their noun", () => {
    assert.deepEqual([0, 1, 2, 999, 1000, 999_949, 999_950, 1_310_496_488, 5e15].map(formatSize), [
      "0 bytes",
      "1 byte",
      "2 bytes",
      "999 bytes",
      "1.0 kB",
      "1000 kB",
      "1.0 MB",
      "1.3 GB",
      "5000 TB",
    ]);
    assert.deepEqual([formatRatio(1, 8), formatRatio(0, 0)], ["12.5%", "-"]);
    assert.deepEqual(
      [formatCount(1, "kernel"), formatCount(5000, "entry", "entries")],
      ["1 kernel", "5,000 entries"],
    );
  });
});
