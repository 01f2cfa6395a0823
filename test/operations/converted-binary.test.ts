import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Finding } from "../../src/node.ts";
import { findCodeObjects } from "../../src/operations/find-code-objects.node.ts";
import { listFile } from "../../src/operations/list.node.ts";
import { unbundle } from "../../src/operations/unbundle.node.ts";
import { fixturePath } from "../support/archive-fixtures.ts";
import { kpackError } from "../support/expect-error.ts";
import { TemporaryTree } from "../support/trees.ts";

/** Its kernels went into archives. */
const CONVERTED = fixturePath("E/lib/libfx_multi3.so");

function assertSaidSo(findings: readonly Finding[]): void {
  assert.deepEqual(
    findings.map(({ severity, code, file }) => [severity, code, file]),
    [["warning", "ALREADY_CONVERTED", CONVERTED]],
  );
  assert.match(findings[0]?.message ?? "", /its kernels are in archives; "kpack resolve" finds them/);
}

describe("a converted binary", () => {
  it("has nothing to list, and that is said with the reason", async () => {
    const { entries, findings } = await listFile(CONVERTED);
    assert.deepEqual(entries, []);
    assertSaidSo(findings);
    assert.deepEqual((await listFile(fixturePath("C/libfx_multi3.so"))).findings, []);
  });

  it("has nothing to inspect", async () => {
    for (const options of [{}, { targets: ["gfx942"] }, { key: "#0" }]) {
      const error = await kpackError(() => findCodeObjects(CONVERTED, options), "NOTHING_FOUND");
      assert.equal(error.found, "a converted binary, its kernels in archives");
      assert.match(error.hint ?? "", /kpack resolve/);
    }
  });

  it("has nothing to take out; others have", async () => {
    using tree = new TemporaryTree();
    const findings: Finding[] = [];
    const onFinding = (finding: Finding): void => void findings.push(finding);
    const error = await kpackError(
      () => unbundle([CONVERTED], tree.at("none"), { onFinding }),
      "NOTHING_FOUND",
    );
    assert.equal(error.found, "a converted binary, its kernels in archives");
    assert.match(error.hint ?? "", /kpack resolve/);
    assertSaidSo(findings.splice(0));
    const files = await unbundle([CONVERTED, fixturePath("C/libfx_multi3.so")], tree.at("out"), {
      onFinding,
    });
    assert.ok(files.length > 0);
    assertSaidSo(findings);
  });
});
