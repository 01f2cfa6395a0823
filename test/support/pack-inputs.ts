import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Finding } from "../../src/errors/finding.ts";
import { openArchive, openFile } from "../../src/node.ts";
import { pack, type PackOptions, type PackResult } from "../../src/operations/pack.node.ts";
import { fixturePath } from "./archive-fixtures.ts";

/** Writes files below a folder; text names a fixture whose bytes they get. */
export function writeTree(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}

export async function packed(
  options: Omit<PackOptions, "onFinding">,
): Promise<PackResult & { readonly findings: readonly Finding[] }> {
  const findings: Finding[] = [];
  const result = await pack({ jobs: 2, ...options, onFinding: (finding) => void findings.push(finding) });
  return { ...result, findings };
}

/** `KEY TARGET ORDINAL`, in TOC order. */
export async function entriesOf(path: string): Promise<readonly string[]> {
  await using archive = await openArchive(await openFile(path));
  return [...archive.entries].map(({ id, ordinal }) => `${id} ${ordinal}`);
}

/** SHA-256 by key and target. */
export async function digestsOf(path: string): Promise<Readonly<Record<string, string>>> {
  await using archive = await openArchive(await openFile(path));
  const digests: Record<string, string> = {};
  for (const entry of archive.entries) {
    digests[entry.id] = createHash("sha256")
      .update(await archive.readKernel(entry, { checkHash: true }))
      .digest("hex");
  }
  return digests;
}

export async function fixture(name: string): Promise<Uint8Array> {
  return new Uint8Array(await readFile(fixturePath(name)));
}
