import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** A folder of its own for a test, gone when the test is over. */
export function tempFolder(context: Pick<TestContext, "after">): string {
  const folder = mkdtempSync(join(tmpdir(), "kpack-test-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** All files below a folder, with `/`, sorted: also hidden and temporary ones. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();
}
