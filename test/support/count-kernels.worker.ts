import { parentPort } from "node:worker_threads";
import { DEFAULT_LIMITS, isKpackError, nodeCodecs, zstdPerKernel } from "../../src/node.ts";

/** How writing ended when there was no end to the kernels. */
export interface CountedKernels {
  readonly name: string;
  readonly code: string;
  readonly field: string | undefined;
  readonly found: string | number | undefined;
  readonly framesGiven: number;
  readonly areaEnd: number;
}

const FRAME = new Uint8Array(9);
let framesGiven = 0;
let areaEnd = 64;

async function* frames(): AsyncGenerator<Uint8Array> {
  for (;;) {
    framesGiven += 1;
    yield FRAME;
  }
}

const compressor = zstdPerKernel({ codecs: nodeCodecs }).createCompressor({
  extraFields: true,
  jobs: 1,
  limits: DEFAULT_LIMITS,
});
try {
  await compressor.finalize(
    frames(),
    {
      start: 64,
      get position(): number {
        return areaEnd;
      },
      async write(bytes) {
        areaEnd += bytes.length;
        return { offset: areaEnd - bytes.length, size: bytes.length };
      },
      async patch() {},
    },
    {},
  );
} catch (error) {
  if (!isKpackError(error)) throw error;
  const { name, code, field, found } = error;
  const counted: CountedKernels = { name, code, field, found, framesGiven, areaEnd };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(counted);
}
