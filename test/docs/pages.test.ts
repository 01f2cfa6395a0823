import { test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The literals of a union type in a source file. */
function literalsOf(file: string, typeName: string): readonly string[] {
  const source = readFileSync(file, "utf8");
  const body = new RegExp(`export type ${typeName} =([^;]*);`).exec(source)?.[1] ?? "";
  return [...body.matchAll(/"([A-Z0-9_]+)"/g)].map((match) => match[1] ?? "");
}

const documented = readFileSync("docs/errors.md", "utf8");

for (const [file, typeName] of [
  ["src/errors/errors.ts", "FormatErrorCode"],
  ["src/errors/errors.ts", "LimitErrorCode"],
  ["src/errors/errors.ts", "NotFoundErrorCode"],
  ["src/errors/errors.ts", "AccessErrorCode"],
  ["src/errors/finding.ts", "OddityCode"],
] as const) {
  test(`docs/errors.md has a row for each ${typeName}`, () => {
    const codes = literalsOf(file, typeName);
    assert.ok(codes.length > 1, "the type was found");
    for (const code of codes) assert.ok(new RegExp(`^\\| \`${code}\` +\\|`, "m").test(documented), code);
  });
}

test("docs/errors.md has no code that does not exist", () => {
  const known = new Set(
    ["FormatErrorCode", "LimitErrorCode", "NotFoundErrorCode", "AccessErrorCode"]
      .flatMap((typeName) => literalsOf("src/errors/errors.ts", typeName))
      .concat(literalsOf("src/errors/finding.ts", "OddityCode")),
  );
  const rows = [...documented.matchAll(/^\| `([A-Z0-9_]+)` +\|/gm)].map((match) => match[1] ?? "");
  for (const code of rows) assert.ok(known.has(code), code);
});

test("docs/format.md shows the archive that the specification gives in hexadecimal", () => {
  const block =
    /in hexadecimal[\s\S]*?```text\n([\s\S]*?)```/.exec(readFileSync("docs/format.md", "utf8"))?.[1] ?? "";
  const hex = block.replace("00 (48 times)", "00".repeat(48)).replace(/\s/g, "");
  assert.equal(hex.length / 2, 242);
});

test("the pages of the commands show the current help texts", () => {
  execFileSync(process.execPath, ["scripts/command-pages.ts", "--check"], { stdio: "pipe" });
});
