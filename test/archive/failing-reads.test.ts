import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AccessError, memorySource, nodeCodecs, none, openArchive, zstdPerKernel } from "../../src/node.ts";
import { kernelsDigest, kernelsToWrite, readAll, sampleKernel, writeToMemory } from "../support/kernels.ts";
import { FaultySource } from "../support/sources.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });
const KERNELS = [9000, 12_000, 30_000, 0, 20_000, 50].map((size, index) => sampleKernel(index, size));
const ARCHIVES = {
  none: await archiveBytes(none, true),
  "zstd-per-kernel with a table": await archiveBytes(zstd, true),
  "zstd-per-kernel without one": await archiveBytes(zstd, false),
};
const FAULTS = {
  "is refused": new AccessError("READ_FAILED", "the disk is gone", { file: "faulty" }),
  "is short": new AccessError("SOURCE_CHANGED", "the file became shorter", { file: "faulty" }),
  "throws something of its own": new Error("a fault of somebody else's source"),
};

async function archiveBytes(scheme: typeof none, extraFields: boolean): Promise<Uint8Array> {
  const options = { scheme, extraFields, shareIdentical: false };
  return (await writeToMemory(kernelsToWrite(KERNELS), options)).bytes;
}

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
before(() => void process.on("unhandledRejection", note));
after(() => {
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});

for (const [name, bytes] of Object.entries(ARCHIVES)) {
  for (const [what, fault] of Object.entries(FAULTS)) {
    describe(`scheme ${name}: when a read ${what}`, () => {
      const isTheFault = (error: unknown): boolean => error === fault;
      const faulty = (): FaultySource => {
        const source = new FaultySource(memorySource(bytes, "faulty"));
        source.fault = fault;
        return source;
      };

      it("opening fails with just that, and the source is disposed of", async () => {
        for (const failAt of [1, 2]) {
          const source = faulty();
          source.failAt = failAt;
          await assert.rejects(openArchive(source), isTheFault);
          assert.equal(source.disposals, 1);
          assert.equal(source.readCount, failAt, "nothing was read after it");
          assert.equal((await openArchive(source)).entries.length, KERNELS.length, "a retry");
        }
      });

      it("reading a kernel fails with just that, and can be tried again", async () => {
        for (const index of KERNELS.keys()) {
          for (let failAt = 1; ; failAt++) {
            const source = faulty();
            const archive = await openArchive(source);
            const entry = [...archive.entries][index]!;
            source.failAt = failAt;
            const wasReached = await archive.readKernel(entry).then(
              () => false,
              (error: unknown) => isTheFault(error) || assert.fail(String(error)),
            );
            source.failAt = 0;
            assert.deepEqual(await archive.readKernel(entry, { checkHash: true }), KERNELS[index]);
            assert.equal(source.disposals, 0);
            if (!wasReached) break;
            assert.ok(failAt < 20);
          }
        }
      });

      it("reading all kernels ends there, and can be tried again on the same archive", async () => {
        for (const [jobs, reuseMemory] of [
          [1, false],
          [4, false],
          [1, true],
          [3, true],
        ] as const) {
          for (let failAt = 1; ; failAt++) {
            const source = faulty();
            const archive = await openArchive(source);
            source.failAt = failAt;
            const read: number[] = [];
            let failed = false;
            try {
              for await (const { entry, bytes: kernel } of archive.readKernels({ jobs, reuseMemory })) {
                assert.deepEqual(kernel, KERNELS[entry.ordinal]);
                read.push(entry.ordinal);
              }
            } catch (error) {
              assert.ok(isTheFault(error), String(error));
              failed = true;
            }
            assert.deepEqual(read, [...read.keys()], "those before it came in order");
            source.failAt = 0;
            assert.equal((await readAll(archive)).length, KERNELS.length);
            if (!failed) break;
            assert.ok(failAt < 40);
          }
        }
      });

      it("reading many kernels at once fails where it must, and nowhere for good", async () => {
        const source = faulty();
        const archive = await openArchive(source);
        source.failAt = 2;
        const results = await Promise.allSettled(
          [...archive.entries].map(async (entry) => await archive.readKernel(entry)),
        );
        const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
        assert.equal(reasons.length, 1);
        assert.ok(reasons.every(isTheFault));
        assert.equal((await readAll(archive)).length, KERNELS.length);
      });
    });
  }

  describe(`scheme ${name}: when reading is aborted`, () => {
    it("it stops with the signal's reason and can be done again", async () => {
      const archive = await openArchive(memorySource(bytes));
      const digest = kernelsDigest(await readAll(archive));
      const fresh = await openArchive(memorySource(bytes));
      const reason = new Error("enough");
      const controller = new AbortController();
      const reading = fresh.readKernels({ signal: controller.signal, jobs: 1 });
      await reading.next();
      controller.abort(reason);
      await assert.rejects(reading.next(), (error) => error === reason);
      await assert.rejects(
        openArchive(memorySource(bytes), { signal: AbortSignal.abort(reason) }),
        (error) => error === reason,
      );
      assert.equal(kernelsDigest(await readAll(fresh)), digest);
    });

    it("leaving the loop early leaves nothing behind", async () => {
      const source = new FaultySource(memorySource(bytes));
      const archive = await openArchive(source);
      source.failAt = 6; // one of those that are read ahead
      for await (const _ of archive.readKernels({ jobs: 6 })) break;
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(unhandled, []);
    });
  });
}
