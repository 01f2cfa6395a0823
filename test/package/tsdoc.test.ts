import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { PROJECT } from "../support/run-kpack.ts";

/** Names that an entry exports, and the file that declares each. */
function exportsOf(path: string): readonly (readonly [string, string])[] {
  const text = readFileSync(path, "utf8");
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)].flatMap(
    ([, names = "", from = ""]) =>
      names
        .split(",")
        .map((name) =>
          name
            .trim()
            .replace(/^type /, "")
            .replace(/ as .*$/, ""),
        )
        .filter((name) => name !== "")
        .map((name) => [name, join(dirname(path), from)] as const),
  );
}

describe("what is exported is documented", () => {
  for (const entry of ["src/index.ts", "src/node.ts"]) {
    it(entry, () => {
      const names = exportsOf(join(PROJECT, entry));
      assert.ok(names.length >= 5);
      const bare: string[] = [];
      for (const [name, file] of names) {
        const lines = readFileSync(file, "utf8").split("\n");
        const declaration = new RegExp(
          `^export (?:abstract |async )*(?:class|interface|type|function|const) ${name}\\b`,
        );
        const at = lines.findIndex((line) => declaration.test(line));
        assert.ok(at >= 0, `${name} is not declared in ${file}`);
        if (!lines[at - 1]?.trimEnd().endsWith("*/")) bare.push(`${name} (${file})`);
      }
      assert.deepEqual(bare, []);
    });
  }
});
