import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { exampleDocuments } from "../support/example-documents.ts";
import { type JsonDocument, parseDocument } from "../support/json-document.ts";
import { FIXTURES, PROJECT } from "../support/run-kpack.ts";

/** docs/json.md against the documents that the commands print: those in the golden files, and some that are made here. */
const page = readFileSync(join(PROJECT, "docs/json.md"), "utf8");
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf("\n")).trim(), section]),
);
const golden = join(FIXTURES, "golden/cli");
const printed = readdirSync(golden)
  .filter((name) => name.endsWith("-json.txt"))
  .map((name) => {
    const text = readFileSync(join(golden, name), "utf8");
    return [name, parseDocument(text.slice(text.indexOf("\n") + 1, text.search(/^--- /m)))] as const;
  });
const made = (await exampleDocuments()).map(
  (document, index) => [`document ${index} of ${schemaOf(document)}`, document] as const,
);
const documents = [...printed, ...made];

/** Free maps of a file or of the request: their keys are not ours. */
const FREE = new Set(["fields", "more", "variables"]);
/** What some tables leave out of their fields' paths, as the text above them says. */
const LEFT_OUT = /^(?:entries\[\]|archives\[\]\.changed\[\]\.functions\[\]\.(?:before|after))\.(?=.)/;
/** What no document here has: it takes an llvm-objdump, or a compiler that names arguments or uses printf. */
const UNSEEN = new Set([
  "disassembly",
  "disassembly.tool",
  "disassembly.version",
  "disassembly.text",
  "codeObjects[].codeObject.metadata.more",
  "codeObjects[].codeObject.kernels[].args[].name",
  "codeObjects[].codeObject.kernels[].args[].typeName",
]);

function schemaOf(document: JsonDocument): string {
  return String(document["schema"]);
}

/** Paths as the page has them: `archives[].path`. */
function* pathsOf(value: unknown, path = ""): Generator<string> {
  if (Array.isArray(value)) for (const element of value) yield* pathsOf(element, `${path}[]`);
  else if (typeof value === "object" && value !== null) {
    for (const [key, element] of Object.entries(value)) {
      const inside = path === "" ? key : `${path}.${key}`;
      yield inside.replace(LEFT_OUT, "");
      if (!FREE.has(key)) yield* pathsOf(element, inside);
    }
  }
}

function namesIn(section: string): ReadonlySet<string> {
  return new Set([...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path = ""]) => path));
}

/** The fields of a schema, those of its findings among them. */
function namesOf(schema: string): ReadonlySet<string> {
  const names = namesIn(sections.get(schema) ?? assert.fail(schema));
  if (names.has("findings[].code")) return names;
  const ofFindings = [...namesIn(sections.get("Findings") ?? assert.fail())];
  const lists = [...names].filter((name) => /(?:^|\.)findings$/.test(name));
  return new Set([...names, ...lists.flatMap((list) => ofFindings.map((name) => `${list}[].${name}`))]);
}

describe("docs/json.md", () => {
  it("has a heading for every schema that the code prints, and a document of each", () => {
    const inCode = globSync(join(PROJECT, "src/cli/**/*.ts")).flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/"(kpack\/[a-z]+\/\d+)"/g)].map(([, schema = ""]) => schema),
    );
    const headings = [...sections.keys()].filter((name) => name.startsWith("kpack/")).toSorted();
    assert.deepEqual(headings, [...new Set(inCode)].toSorted());
    assert.deepEqual(headings, [...new Set(documents.map(([, document]) => schemaOf(document)))].toSorted());
  });

  for (const [name, document] of documents) {
    it(`names every field of ${name}`, () => {
      const known = namesOf(schemaOf(document));
      assert.deepEqual(
        [...pathsOf(document)].filter((path) => !known.has(path)),
        [],
      );
    });
  }

  it("names no field that no document has", () => {
    const bySchema = Map.groupBy(documents, ([, document]) => schemaOf(document));
    for (const [schema, group] of bySchema) {
      const seen = new Set(group.flatMap(([, document]) => [...pathsOf(document)]));
      const missing = [...namesIn(sections.get(schema) ?? "")].filter((path) => !seen.has(path));
      assert.deepEqual(
        missing.filter((path) => !UNSEEN.has(path)),
        [],
        schema,
      );
    }
  });
});
