import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FIXTURES, PROJECT } from "../support/run-kpack.ts";
import { parseJson } from "../support/parse-json.ts";

/** docs/json.md against the documents that the commands print, as the golden files have them. */
const page = readFileSync(join(PROJECT, "docs/json.md"), "utf8");
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf("\n")).trim(), section]),
);
const golden = join(FIXTURES, "golden/cli");
const documents = readdirSync(golden)
  .filter((name) => name.endsWith("-json.txt"))
  .map((name) => {
    const text = readFileSync(join(golden, name), "utf8");
    const json = text.slice(text.indexOf("\n") + 1, text.search(/^--- /m));
    return [name, parseJson<{ readonly schema: string }>(json)] as const;
  });

/** Free maps of a file: their keys are the file's. */
const FREE = new Set(["fields"]);

function* keysOf(value: unknown, parents: readonly string[] = []): Generator<string> {
  if (Array.isArray(value)) for (const element of value) yield* keysOf(element, parents);
  else if (typeof value === "object" && value !== null) {
    for (const [key, element] of Object.entries(value)) {
      yield [...parents, key].join(" ");
      if (!FREE.has(key)) yield* keysOf(element, [...parents, key]);
    }
  }
}

function namesIn(section: string): ReadonlySet<string> {
  return new Set(
    [...section.matchAll(/^\| +`([^`]+)` +\|/gm)].map(
      ([, path = ""]) => path.split(".").at(-1)?.replaceAll("[]", "") ?? "",
    ),
  );
}

describe("docs/json.md", () => {
  it("has a heading for every schema, and no schema without a document", () => {
    const schemas = new Set(documents.map(([, { schema }]) => schema));
    const headings = [...sections.keys()].filter((name) => name.startsWith("kpack/"));
    assert.deepEqual(headings.toSorted(), [...schemas].toSorted());
  });

  for (const [name, document] of documents) {
    it(`names every key of ${name}`, () => {
      const known = namesIn(sections.get(document.schema) ?? assert.fail(document.schema));
      const ofFindings = namesIn(sections.get("Findings") ?? assert.fail());
      const unknown = [...keysOf(document)].filter((path) => {
        const parts = path.split(" ");
        const key = parts.at(-1) ?? "";
        return !(parts.at(-2) === "findings" ? ofFindings : known).has(key);
      });
      assert.deepEqual(unknown, []);
    });
  }

  it("names no key that no document has", () => {
    const seen = new Map<string, Set<string>>();
    for (const [, document] of documents) {
      const keys = seen.get(document.schema) ?? new Set();
      for (const path of keysOf(document)) keys.add(path.split(" ").at(-1) ?? "");
      seen.set(document.schema, keys);
    }
    for (const [schema, keys] of seen)
      for (const key of namesIn(sections.get(schema) ?? "")) assert.ok(keys.has(key), `${schema}: ${key}`);
  });
});
