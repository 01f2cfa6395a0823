import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { reportError, UsageError } from "../../src/cli/report-error.ts";
import { schemeOf } from "../../src/cli/schemes.ts";
import { document, kpack } from "../support/run-kpack.ts";

const GOOD = "D/ok/zstd_base.kpack";
const BAD = "D/bad/magic.kpack";

function reported(context: TestContext, error: unknown): { readonly status: number; readonly text: string } {
  const write = context.mock.method(process.stderr, "write", () => true);
  try {
    const status = reportError(error, false);
    return { status, text: write.mock.calls.map(({ arguments: [text] }) => String(text)).join("") };
  } finally {
    write.mock.restore();
  }
}

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return assert.fail("it threw nothing");
}

describe("what is wrong usage", () => {
  it("no RangeError of the engine: that is a fault of the program, with its trace", (context) => {
    const endless = (depth: number): number => endless(depth + 1) + 1;
    for (const action of [
      () => endless(0),
      () => new ArrayBuffer(2 ** 52),
      () => "x".repeat(2 ** 31),
      () => Buffer.alloc(8).readUint32LE(9),
    ]) {
      const { status, text } = reported(context, thrownBy(action));
      assert.equal(status, 2);
      assert.match(text, /unexpected error, please report it: RangeError[^]*\n\s+at /);
      assert.doesNotMatch(text, /kpack help/);
    }
  });

  it("what a scheme does not take", (context) => {
    const error = thrownBy(() => schemeOf({ scheme: "zstd-per-kernel", level: 23 }));
    assert.ok(error instanceof UsageError);
    const { status, text } = reported(context, error);
    assert.equal(status, 2);
    assert.match(text, /level must be an integer from 1 to 22, got 23\n.*kpack help/);
  });
});

describe("verify with a file that cannot be read", () => {
  it("gives the results of the others, in one document", async () => {
    const ran = await kpack(["verify", GOOD, "nowhere.kpack", BAD, "--json"]);
    assert.equal(ran.status, 2);
    const { schema, archives } = document(ran);
    assert.equal(schema, "kpack/verify/1");
    assert.ok(Array.isArray(archives));
    const answers = archives.map(({ file, ok, findings, entries }) => [
      file,
      ok,
      findings.map(({ severity, code }: { severity: string; code: string }) => `${severity} ${code}`),
      entries !== undefined,
    ]);
    assert.deepEqual(answers, [
      [GOOD, true, ["warning NOT_A_CODE_OBJECT"], true],
      ["nowhere.kpack", false, ["error READ_FAILED"], false],
      [BAD, false, ["error BAD_MAGIC"], false],
    ]);
    assert.match(ran.stderr, /^kpack: nowhere\.kpack: cannot be read/);
  });

  it("is 2 when any could not be read, and else 1 or 0", async () => {
    const cases: readonly (readonly [number, readonly string[]])[] = [
      [2, [GOOD, "nowhere.kpack"]],
      [2, ["nowhere.kpack", "D/ok"]],
      [1, [GOOD, BAD]],
      [0, [GOOD, GOOD]],
    ];
    for (const [status, files] of cases)
      for (const more of [[], ["--json"]])
        assert.equal((await kpack(["verify", ...files, ...more])).status, status, files.join(" "));
  });

  it("as text goes on with the next", async () => {
    const { stdout, stderr } = await kpack(["verify", "nowhere.kpack", GOOD]);
    assert.match(stdout, /zstd_base\.kpack: good/);
    assert.match(stderr, /^kpack: nowhere\.kpack: cannot be read/);
  });

  it("and no other has no document but the error's", async () => {
    const ran = await kpack(["verify", "nowhere.kpack", "--json"]);
    assert.deepEqual([ran.status, document(ran)["schema"]], [2, "kpack/error/1"]);
  });
});

describe("wrong usage", () => {
  it("has one form, whoever noticed it, and names the command's own help", async () => {
    const cases: readonly (readonly [readonly string[], string, string])[] = [
      [
        ["convert", GOOD, "-o", "x", "--level", "99"],
        "option '-l, --level <n>' argument '99' is invalid.",
        " convert",
      ],
      [["convert", GOOD, "-o", "x", "-s", "none", "--level", "3"], "--level belongs to --scheme", " convert"],
      [["shrink", GOOD, "--keep", "gfx942"], "give -o for the copy, or --dry-run", " shrink"],
      [["list"], "missing required argument 'file'", " list"],
      [["nothing"], "unknown command 'nothing'", ""],
    ];
    for (const [args, message, topic] of cases) {
      const { status, stdout, stderr } = await kpack(args);
      assert.equal(status, 2);
      assert.equal(stdout, "");
      assert.ok(stderr.startsWith(`kpack: ${message}`), stderr);
      assert.ok(stderr.endsWith(`\n  "kpack help${topic}" shows how it is used.\n`), stderr);
    }
  });

  it("is an empty path, but not an empty name", async () => {
    for (const args of [
      ["list", ""],
      ["verify", GOOD, ""],
      ["info", "", "--json"],
    ]) {
      const ran = await kpack(args);
      assert.equal(ran.status, 2);
      assert.match(ran.stderr, /^kpack: the argument '\w+' is empty: it names no file\n/);
      if (args.includes("--json")) assert.equal(document(ran)["code"], "USAGE");
    }
    assert.equal((await kpack(["extract", GOOD, "", "-o", "unused"])).status, 1);
  });
});

describe("a kernel that is not in the archive", () => {
  it("is named as it was asked for", async () => {
    const without = await kpack(["extract", GOOD, "nokey", "-o", "unused"]);
    assert.match(without.stderr, new RegExp(`^kpack: ${GOOD}, nokey: the archive has no such kernel`));
    const withTarget = await kpack(["extract", GOOD, "nokey", "gfx906", "-o", "unused"]);
    assert.match(withTarget.stderr, new RegExp(`^kpack: ${GOOD}, nokey for gfx906: the archive has no`));
    assert.deepEqual([without.status, withTarget.status], [1, 1]);
  });
});
