/** Writes an archive of many small kernels that resemble each other, with a fixed pseudo-random sequence. */
import { createFile, nodeCodecs, writeArchive, zstdPerKernel, type KernelToWrite } from "rocm-kpack/node";

const [path = "", countText = "100000"] = process.argv.slice(2);
const count = Number(countText);
let state = 12345;
const next = (): number => (state = (Math.imul(state, 1103515245) + 12345) >>> 0);
const base = Uint8Array.from({ length: 4096 }, () => next() >>> 24);

function* kernels(): Generator<KernelToWrite> {
  for (let index = 0; index < count; index++) {
    const bytes = base.slice(0, 1024 + (next() % 3072));
    for (let change = 0; change < 64; change++) bytes[next() % bytes.length] = next() >>> 24;
    const entries = [
      { binaryKey: `lib/library/kernel_${String(index).padStart(6, "0")}.co#0`, target: "gfx942" },
    ];
    yield { kernel: { size: bytes.length, read: async () => bytes }, entries };
  }
}

await using sink = await createFile(path);
const scheme = zstdPerKernel({ codecs: nodeCodecs });
await writeArchive(sink, kernels(), { groupName: "small", family: "gfx942", scheme });
await sink.commit();
