import assert from "node:assert/strict";

/** What a command printed with `--json`, without a claim about its shape. */
export type JsonDocument = Readonly<Record<string, unknown>>;

export function parseDocument(text: string): JsonDocument {
  const value: unknown = JSON.parse(text);
  assert.ok(isDocument(value), "the document is an object");
  return value;
}

/** The objects of a list in the document. */
export function documentsAt(document: JsonDocument, key: string): readonly JsonDocument[] {
  const value: unknown = document[key];
  assert.ok(Array.isArray(value), `${key} is a list`);
  return value.filter(isDocument);
}

function isDocument(value: unknown): value is JsonDocument {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
