import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, it } from "node:test";
import { PROJECT } from "../support/run-kpack.ts";

/** All files that importing `entry` loads, and the packages that they ask for. Types alone load nothing. */
function importGraph(entry: string): {
  readonly files: readonly string[];
  readonly packages: ReadonlySet<string>;
} {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    for (const [, clause = "", from = ""] of text.matchAll(
      /^(?:import|export)\s+([^;]*?\bfrom\s+)?"([^"]+)"/gm,
    )) {
      if (/^type\b/.test(clause)) continue;
      if (from.startsWith(".")) visit(join(dirname(file), from));
      else packages.add(from);
    }
    for (const [, from = ""] of text.matchAll(/\bimport\("([^"]+)"\)/g)) packages.add(`import(${from})`);
  };
  visit(entry);
  return { files: [...files].map((file) => relative(PROJECT, file)), packages };
}

describe("the portable entry", () => {
  const graph = importGraph(join(PROJECT, "src/index.ts"));

  it("loads nothing of Node's, and no package but the hash", () => {
    assert.ok(graph.files.length > 20);
    assert.deepEqual(
      graph.files.filter((file) => file.endsWith(".node.ts") || file.startsWith("src/cli")),
      [],
    );
    assert.deepEqual([...graph.packages], ["xxhash-wasm"]);
  });

  it("names no global of Node's", () => {
    for (const file of graph.files) {
      const text = readFileSync(join(PROJECT, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
      assert.doesNotMatch(text, /\b(?:process|Buffer|require|__dirname|setImmediate)\b[.(]/, file);
    }
  });

  it("is seen by this test where it does: the entry for Node", () => {
    const node = importGraph(join(PROJECT, "src/node.ts"));
    assert.ok(node.files.some((file) => file.endsWith(".node.ts")));
    assert.ok(node.packages.has("node:zlib") && node.packages.has("node:fs/promises"));
  });
});
