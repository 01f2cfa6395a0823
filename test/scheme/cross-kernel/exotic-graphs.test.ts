import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { verifyArchive } from "../../../src/operations/verify.ts";
import { openBytes, readAll } from "../../support/kernels.ts";
import { exoticGraphs, graphArchive, kernelsOfGraph } from "../../support/raw-graph.ts";

describe("a graph that our planners do not write", () => {
  for (const [name, graph] of Object.entries(exoticGraphs())) {
    it(`decodes right: ${name}`, async () => {
      const archive = await openBytes(graphArchive(graph));
      const kernels = kernelsOfGraph(graph);
      assert.equal(await archive.decompressor.kernelCount(), kernels.length);
      for (const ordinal of [...kernels.keys()].toReversed())
        assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), kernels[ordinal]);
      const read = await readAll(archive);
      assert.deepEqual(
        read.map(({ bytes }) => bytes),
        kernels,
      );
      const findings: unknown[] = [];
      await archive.decompressor.verifyArea?.((finding) => findings.push(finding));
      assert.deepEqual(findings, []);
      assert.deepEqual(archive.findings, []);
      const report = await verifyArchive(archive);
      assert.deepEqual(
        report.findings.filter(({ severity }) => severity === "error"),
        [],
      );
    });
  }
});
