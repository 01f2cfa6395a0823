import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { listFile } from "../../src/operations/list.node.ts";
import { entryOf, noneArchive } from "../support/archive-builder.ts";
import { sampleKernel } from "../support/kernels.ts";
import { map, raw } from "../support/raw-msgpack.ts";
import { tempFolder } from "../support/temp-folder.ts";

it("text that is not valid UTF-8 is shown as null, with a finding, beside all others", async (context) => {
  const path = join(tempFolder(context), "a.kpack");
  const bad = raw("a2 c328");
  const entries = map(
    ["a", map(["gfx942", entryOf(0, 50, [["metadata", bad]])])],
    [
      "b",
      map([
        "gfx942",
        entryOf(0, 50, [
          ["metadata", "fine"],
          ["more", [bad]],
        ]),
      ]),
    ],
  );
  writeFileSync(path, noneArchive([sampleKernel(1, 50)], { entries }));
  const seen: string[] = [];
  const listing = await listFile(path, { onFinding: ({ code }) => seen.push(code) });
  assert.equal(listing.kind, "archive");
  assert.deepEqual(
    listing.entries.map(({ fields }) => ({ ...fields })),
    [
      { type: "hsaco", metadata: null },
      { type: "hsaco", metadata: "fine", more: null },
    ],
  );
  assert.deepEqual(
    listing.findings.map(({ severity, code, field }) => [severity, code, field]),
    [
      ["error", "MALFORMED_TEXT", "metadata of a gfx942"],
      ["error", "MALFORMED_TEXT", "more of b gfx942"],
    ],
  );
  assert.deepEqual(seen, ["MALFORMED_TEXT", "MALFORMED_TEXT"]);
});
