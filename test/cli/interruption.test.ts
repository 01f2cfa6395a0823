import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createFile, none, writeArchive } from "../../src/node.ts";
import { buildBundle } from "../bundle/bundle-builder.ts";
import { kernelToWrite, sampleKernel } from "../support/kernels.ts";
import { MAIN, PROJECT } from "../support/run-kpack.ts";
import { filesBelow, tempFolder } from "../support/temp-folder.ts";
import { fixture } from "../support/pack-inputs.ts";

const KERNELS = 150;
const KERNEL_SIZE = 4 << 20;

/** Runs the command, interrupts it as soon as `isReached` says so, and returns its exit status. */
async function interrupted(args: readonly string[], isReached: () => boolean): Promise<number | null> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: "ignore" });
  const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
  const deadline = performance.now() + 15_000;
  while (child.exitCode === null && !isReached() && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 1));
  child.kill("SIGINT");
  return await ended;
}

function hasFiles(folder: string, count: number): boolean {
  try {
    return readdirSync(folder).length >= count;
  } catch {
    return false; // not made yet
  }
}

describe("an interruption while many files are written", () => {
  const folder = mkdtempSync(join(tmpdir(), "kpack-interruption-"));
  const inputs = { extract: join(folder, "in.kpack"), unbundle: join(folder, "in.hipfb") };
  after(() => rmSync(folder, { recursive: true }));

  before(async () => {
    const bytes = sampleKernel(1, KERNEL_SIZE);
    bytes.set(await fixture("A/hsaco/vadd_gfx942.hsaco"));
    await using sink = await createFile(inputs.extract);
    const kernels = Array.from({ length: KERNELS }, (_, index) => ({
      binaryKey: `k#${index}`,
      target: "gfx942",
    }));
    await writeArchive(sink, [kernelToWrite(bytes, ...kernels)], {
      scheme: none,
      groupName: "g",
      family: "f",
    });
    await sink.commit();
    const entries = Array.from({ length: 12 }, (_, index) => ({
      id: `hipv4-amdgcn-amd-amdhsa--gfx942:f${index}+`,
      content: bytes,
    }));
    writeFileSync(inputs.unbundle, buildBundle(entries));
  });

  for (const command of ["extract", "unbundle"] as const) {
    it(`${command} leaves whole files only, no temporary one`, async (context) => {
      const folder = tempFolder(context);
      let count = 0;
      for (let round = 0; round < 6; round++) {
        const out = join(folder, String(round));
        const place = command === "extract" ? join(out, "gfx942") : out;
        const status = await interrupted([command, inputs[command], "-o", out, "-q"], () =>
          hasFiles(place, 1 + round),
        );
        if (status === 130) count += 1;
        assert.deepEqual(
          filesBelow(out).filter((name) => name.endsWith(".tmp")),
          [],
        );
        rmSync(out, { recursive: true });
      }
      assert.ok(count > 0, "no run was interrupted");
    });
  }

  it("a file that is begun goes before the process does, also one that is just being opened", (context) => {
    const out = tempFolder(context);
    const script = `
      import { createFile, removeUnfinishedFiles } from ${JSON.stringify(join(PROJECT, "src/sink/file-sink.node.ts"))};
      const begun = await createFile(${JSON.stringify(join(out, "a"))});
      await begun.write(new Uint8Array(3 << 20));
      const done = await createFile(${JSON.stringify(join(out, "b"))});
      await done.commit();
      const late = createFile(${JSON.stringify(join(out, "c"))});
      late.catch(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
      await removeUnfinishedFiles();
      process.exit();`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(filesBelow(out), ["b"]);
  });
});
