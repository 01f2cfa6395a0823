import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AccessError,
  createFile,
  type KernelToWrite,
  nodeCodecs,
  none,
  openArchive,
  openFile,
  writeArchive,
  zstdPerKernel,
} from "../../src/node.ts";
import { kpackError } from "../support/expect-error.ts";
import { FaultySink } from "../support/faulty-sinks.ts";
import { kernelsToWrite, readAll, sampleKernel } from "../support/kernels.ts";

const zstd = zstdPerKernel({ codecs: nodeCodecs });
const KERNELS = kernelsToWrite(
  [4000, 0, 100, 20_000, 3000, 3001].map((size, index) => sampleKernel(index, size)),
);
const OPTIONS = { groupName: "g", family: "f" };

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kpack-writes-"));
});
after(async () => await rm(folder, { recursive: true }));

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
before(() => void process.on("unhandledRejection", note));
after(() => {
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});

/** Writes into a file that exists already, with `fault` on the way: it must stay as it was, alone in its folder. */
async function leavesNothing(
  write: (sink: Awaited<ReturnType<typeof createFile>>) => Promise<unknown>,
  isExpected: (error: unknown) => boolean,
): Promise<void> {
  const path = join(folder, "target.kpack");
  await writeFile(path, "what was there before");
  await assert.rejects(async () => {
    await using sink = await createFile(path);
    await write(sink);
    await sink.commit();
  }, isExpected);
  assert.deepEqual(await readdir(folder), ["target.kpack"]);
  assert.equal(await readFile(path, "utf8"), "what was there before");
  await rm(path);
}

function withFault(index: number, read: KernelToWrite["kernel"]["read"]): readonly KernelToWrite[] {
  return KERNELS.map((kernel, at) =>
    at === index ? { ...kernel, kernel: { size: kernel.kernel.size, read } } : kernel,
  );
}

for (const scheme of [none, zstd]) {
  describe(`writing with scheme ${scheme.name}`, () => {
    it("fails with just the sink's error, whichever write it is", async () => {
      const whole = new FaultySink(0);
      await writeArchive(whole, KERNELS, { ...OPTIONS, scheme });
      assert.ok(whole.callCount > KERNELS.length);
      for (let failAt = 1; failAt <= whole.callCount; failAt++)
        for (const jobs of [1, 4]) {
          const sink = new FaultySink(failAt);
          await assert.rejects(
            writeArchive(sink, KERNELS, { ...OPTIONS, scheme, jobs }),
            (error) => error === sink.fault,
          );
          assert.equal(sink.callCount, failAt, "nothing is written after it");
        }
    });

    it("fails with just a kernel's error and leaves nothing behind", async () => {
      const fault = new AccessError("READ_FAILED", "the kernel is gone");
      for (const index of KERNELS.keys())
        for (const jobs of [1, 3]) {
          const kernels = withFault(index, async () => await Promise.reject(fault));
          await leavesNothing(
            async (sink) => await writeArchive(sink, kernels, { ...OPTIONS, scheme, jobs }),
            (error) => error === fault,
          );
        }
    });

    it("fails when a kernel is not as large as it was, and leaves nothing behind", async () => {
      for (const size of [3999, 4001]) {
        const kernels = withFault(0, async () => new Uint8Array(size));
        await leavesNothing(
          async (sink) => await writeArchive(sink, kernels, { ...OPTIONS, scheme }),
          (error) => error instanceof AccessError && error.code === "SOURCE_CHANGED" && error.found === size,
        );
      }
    });

    it("fails with what the list of kernels throws", async () => {
      const fault = new Error("no more");
      async function* broken(): AsyncGenerator<KernelToWrite> {
        yield* KERNELS.slice(0, 3);
        throw fault;
      }
      await leavesNothing(
        async (sink) => await writeArchive(sink, broken(), { ...OPTIONS, scheme }),
        (error) => error === fault,
      );
    });

    it("stops with the signal's reason in the middle, and leaves nothing behind", async () => {
      for (const index of KERNELS.keys())
        for (const jobs of [1, 4]) {
          const controller = new AbortController();
          const reason = new Error("enough");
          const bytes = await KERNELS[index]!.kernel.read();
          const kernels = withFault(index, async () => {
            controller.abort(reason);
            return bytes;
          });
          await leavesNothing(
            async (sink) =>
              await writeArchive(sink, kernels, { ...OPTIONS, scheme, jobs, signal: controller.signal }),
            (error) => error === reason,
          );
        }
    });

    it("closes the list of kernels when it fails", async () => {
      let closed = false;
      async function* kernels(): AsyncGenerator<KernelToWrite> {
        try {
          yield* KERNELS;
        } finally {
          closed = true;
        }
      }
      const sink = new FaultySink(3);
      await assert.rejects(writeArchive(sink, kernels(), { ...OPTIONS, scheme, jobs: 1 }));
      assert.ok(closed);
    });

    it("writes the same file when it is tried again", async () => {
      const path = join(folder, "again.kpack");
      await kpackError(async () => {
        await using sink = await createFile(path);
        const conflicting = [...KERNELS, ...KERNELS.slice(0, 1)];
        await writeArchive(sink, conflicting, { ...OPTIONS, scheme });
      }, "CONFLICTING_KERNELS");
      {
        await using sink = await createFile(path);
        await writeArchive(sink, KERNELS, { ...OPTIONS, scheme });
        await sink.commit();
      }
      const expected = new FaultySink(0);
      await writeArchive(expected, KERNELS, { ...OPTIONS, scheme });
      assert.ok(Buffer.from(expected.bytes()).equals(await readFile(path)));
      await using archive = await openArchive(await openFile(path));
      assert.equal((await readAll(archive)).length, KERNELS.length);
      await rm(path);
    });
  });
}
