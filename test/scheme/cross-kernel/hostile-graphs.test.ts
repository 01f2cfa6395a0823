import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KpackErrorCode, memorySource, openArchive, zstdCrossKernel } from "../../../src/index.ts";
import { entryOf } from "../../support/archive-builder.ts";
import { CountingCodecs } from "../../support/counting-codecs.ts";
import { kpackError } from "../../support/expect-error.ts";
import { openBytes } from "../../support/kernels.ts";
import {
  chainedContents,
  graphArchive,
  kernelsOfGraph,
  type RawFrame,
  rawFrame,
  type RawGraph,
  storedFrames,
  varints,
} from "../../support/raw-graph.ts";
import { concat, map } from "../../support/raw-msgpack.ts";
import { FaultySource } from "../../support/sources.ts";

/** Two kernels, each in a frame of its own with a dictionary of its own; all contents are of one size. */
const CONTENTS = chainedContents(4, 3000) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
const SIZE = CONTENTS[0].length;
const FRAMES: readonly RawFrame[] = [
  { content: CONTENTS[0], dictionaries: [2] },
  { content: CONTENTS[2], dictionaries: [3] },
  { content: CONTENTS[1] },
  { content: CONTENTS[3] },
];
const SOUND: RawGraph = { frames: FRAMES, kernels: [[[0, 0, SIZE]], [[1, 0, SIZE]]], depth: 2 };
const STORED = storedFrames(FRAMES);
const KERNELS = kernelsOfGraph(SOUND);

function withFrame(index: number, change: Partial<RawFrame>): RawGraph {
  return {
    ...SOUND,
    frames: FRAMES.map((frame, at) => ({
      ...frame,
      stored: STORED[at] as Uint8Array,
      ...(at === index && change),
    })),
  };
}

function withKernel(slices: RawGraph["kernels"][number]): RawGraph {
  return { ...SOUND, kernels: [slices, [[1, 0, SIZE]]] };
}

/** A chain of so many frames, of which one kernel needs all. */
function chain(length: number, depth: number): RawGraph {
  const content = new Uint8Array(100).fill(7);
  const stored = rawFrame(content);
  const frames = Array.from({ length }, (_, index) => ({
    content,
    stored,
    dictionaries: index + 1 < length ? [index + 1] : [],
  }));
  return { frames, kernels: [[[0, 0, 100]]], depth };
}

function changedStored(index: number, change: (bytes: Uint8Array) => void): RawGraph {
  const stored = (STORED[index] as Uint8Array).slice();
  change(stored);
  return withFrame(index, { stored });
}

/** A frame of one RLE block whose header claims `size` bytes. */
function lyingFrame(size: number): Uint8Array {
  const bytes = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0, (5 << 3) | 3, 0, 0, 0x41);
  new DataView(bytes.buffer).setUint32(5, size, true);
  return bytes;
}

/** A frame of `blocks` RLE blocks of 128 KiB: that much content in few bytes. */
function bomb(blocks: number): Uint8Array {
  const head = lyingFrame(blocks * 131072).subarray(0, 9);
  const parts = Array.from({ length: blocks }, (_, index) => {
    const header = (131072 << 3) | (1 << 1) | (index === blocks - 1 ? 1 : 0);
    return Uint8Array.of(header & 0xff, (header >> 8) & 0xff, header >> 16, 0x41);
  });
  return concat(head, ...parts);
}

function repeated(pattern: Uint8Array, times: number): Uint8Array {
  return new Uint8Array(Buffer.alloc(pattern.length * times, pattern));
}

type Refusal = readonly [graph: RawGraph, code: KpackErrorCode | RegExp, field: RegExp];

const REFUSED_ON_OPENING: Readonly<Record<string, Refusal>> = {
  "a dictionary with a lower index, a cycle": [
    withFrame(3, { table: [2, 0] }),
    "FRAME_GRAPH",
    /^cross_frames\[3\]$/,
  ],
  "an empty slice among others": [
    {
      ...SOUND,
      kernels: [
        [
          [1, 0, 5],
          [1, 5, 0],
        ],
      ],
    },
    "FRAME_GRAPH",
    /^cross_kernels\[0\]\[1\]$/,
  ],
  "a frame as its own dictionary": [withFrame(0, { table: [1, 0] }), "FRAME_GRAPH", /^cross_frames\[0\]$/],
  "its own second dictionary": [withFrame(2, { table: [4, 3] }), "FRAME_GRAPH", /^cross_frames\[2\]$/],
  "a dictionary that is not there": [withFrame(0, { table: [5, 0] }), "FRAME_GRAPH", /^cross_frames\[0\]$/],
  "a second dictionary that is not there": [
    withFrame(0, { table: [3, 2 ** 32 - 1] }),
    "FRAME_GRAPH",
    /^cross_frames\[0\]$/,
  ],
  "a chain deeper than the archive states": [chain(4, 3), "FRAME_GRAPH", /^frames of kernel 0$/],
  "a chain of nine, with eight stated": [chain(9, 8), "FRAME_GRAPH", /^frames of kernel 0$/],
  "a chain of 5,000": [chain(5000, 8), "FRAME_GRAPH", /^frames of kernel 0$/],
  "a kernel of more frames than stated": [
    {
      ...SOUND,
      kernels: [
        [
          [2, 0, 1],
          [3, 0, 1],
          [1, 0, 1],
        ],
      ],
    },
    "FRAME_GRAPH",
    /^frames of kernel 0$/,
  ],
  "more than eight frames stated": [{ ...SOUND, depth: 9 }, "FRAME_GRAPH", /^cross_depth$/],
  "a huge number of frames stated": [{ ...SOUND, depth: 2 ** 40 }, "FRAME_GRAPH", /^cross_depth$/],
  "a negative number of frames stated": [{ ...SOUND, depth: -1 }, "WRONG_TYPE", /^cross_depth$/],
  "no frame stated": [{ ...SOUND, depth: 0 }, "FRAME_GRAPH", /^frames of kernel 0$/],
  "a slice past the end": [withKernel([[0, 1, SIZE]]), "OUT_OF_BOUNDS", /^cross_kernels\[0\]\[0\]$/],
  "a slice of nothing past the end": [
    withKernel([[0, SIZE + 1, 0]]),
    "OUT_OF_BOUNDS",
    /^cross_kernels\[0\]\[0\]$/,
  ],
  "a slice whose end wraps in 32 bits": [
    withKernel([
      [0, 0, 1],
      [0, 2 ** 32 - 1, 2],
    ]),
    "OUT_OF_BOUNDS",
    /^cross_kernels\[0\]\[1\]$/,
  ],
  "a slice of a frame that is not there": [
    withKernel([[4, 0, 0]]),
    "FRAME_GRAPH",
    /^cross_kernels\[0\]\[0\]\.frame$/,
  ],
  "a table of frames cut in a number": [
    { ...SOUND, framesTable: concat(varints(9, 9, 0, 0), Uint8Array.of(0x80)) },
    "TRUNCATED",
    /^cross_frames: stored size$/,
  ],
  "a table of frames cut between numbers": [
    { ...SOUND, framesTable: varints(9, 9, 0, 0, 9, 9) },
    "TRUNCATED",
    /^cross_frames: first dictionary$/,
  ],
  "a table of kernels cut": [
    { ...SOUND, kernelsTable: varints(1, 0, 0) },
    "TRUNCATED",
    /^cross_kernels: size$/,
  ],
  "four thousand million slices in a short table": [
    { ...SOUND, kernelsTable: varints(2 ** 32 - 1, 0, 0, 1, 0, 0, 1) },
    "TRUNCATED",
    /^cross_kernels: frame$/,
  ],
  "a number of 33 bits": [
    { ...SOUND, framesTable: Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0) },
    "OUT_OF_BOUNDS",
    /^cross_frames: stored size$/,
  ],
  "a number of six bytes": [
    { ...SOUND, kernelsTable: Uint8Array.of(0x81, 0x80, 0x80, 0x80, 0x80, 0) },
    "OUT_OF_BOUNDS",
    /^cross_kernels: number of slices$/,
  ],
  "frames as text": [{ ...SOUND, framesTable: "text" }, "WRONG_TYPE", /^cross_frames$/],
  "frames as an array": [{ ...SOUND, framesTable: [1, 2] }, "WRONG_TYPE", /^cross_frames$/],
  "kernels as a number": [{ ...SOUND, kernelsTable: 7 }, "WRONG_TYPE", /^cross_kernels$/],
  "depth as text": [{ ...SOUND, depth: "8" }, "WRONG_TYPE", /^cross_depth$/],
  "a negative offset": [{ ...SOUND, offset: -64 }, "WRONG_TYPE", /^cross_offset$/],
  "an offset beyond every file": [{ ...SOUND, offset: 2n ** 64n - 1n }, "OUT_OF_BOUNDS", /^cross_offset$/],
  ...Object.fromEntries(
    ["cross_offset", "cross_frames", "cross_kernels", "cross_depth"].map((name) => [
      `no ${name}`,
      [{ ...SOUND, toc: [[name, undefined]] }, "MISSING_KEY", new RegExp(`^${name}$`)] as Refusal,
    ]),
  ),
};

const WRONG_BYTES = /^(CHECKSUM_MISMATCH|DECOMPRESSION_FAILED)$/;

/** Refused when kernel 0 is read; kernel 1 is fine all the same. */
const REFUSED_ON_READING: Readonly<Record<string, Refusal>> = {
  "a wrong checksum": [
    changedStored(0, (bytes) => bytes.set([bytes.at(-1)! ^ 1], bytes.length - 1)),
    "CHECKSUM_MISMATCH",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "the checksum of another frame": [
    changedStored(0, (bytes) => bytes.set(STORED[1]!.subarray(-4), bytes.length - 4)),
    "CHECKSUM_MISMATCH",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "a wrong checksum of the dictionary": [
    changedStored(2, (bytes) => bytes.set([bytes.at(-1)! ^ 1], bytes.length - 1)),
    "CHECKSUM_MISMATCH",
    /^frame 2 \(a\.so#0 gfx942\)$/,
  ],
  "the other kernel's dictionary": [
    withFrame(0, { table: [4, 0] }),
    WRONG_BYTES,
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "no dictionary, though it was made with one": [
    withFrame(0, { table: [0, 0] }),
    WRONG_BYTES,
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "its dictionaries in the wrong order": [
    {
      ...withFrame(0, {
        stored: rawFrame(CONTENTS[0], concat(CONTENTS[1], CONTENTS[3])),
        table: [4, 3],
      }),
      depth: 3,
    },
    WRONG_BYTES,
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "a content size that is too large by one": [
    withFrame(0, { contentSize: SIZE + 1 }),
    "SIZE_MISMATCH",
    /^frame 0/,
  ],
  "a content size of 4 GiB": [
    withFrame(0, { contentSize: 2 ** 32 - 1 }),
    "LIMIT_EXCEEDED",
    /^slices of kernel a\.so#0/,
  ],
  "a frame and a table that both claim 4 GiB": [
    withFrame(0, { contentSize: 2 ** 32 - 1, stored: lyingFrame(2 ** 32 - 1), storedSize: 13 }),
    "LIMIT_EXCEEDED",
    /^slices of kernel a\.so#0/,
  ],
  "a frame and a table that both claim a GiB": [
    withFrame(0, { contentSize: 2 ** 30, stored: lyingFrame(2 ** 30) }),
    "DECOMPRESSION_FAILED",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "a dictionary that claims a GiB": [
    withFrame(2, { contentSize: 2 ** 30, stored: lyingFrame(2 ** 30) }),
    "DECOMPRESSION_FAILED",
    /^frame 2 \(a\.so#0 gfx942\)$/,
  ],
  "a frame of other bytes than zstd's": [
    withFrame(0, { stored: new Uint8Array(50).fill(0x41) }),
    "DECOMPRESSION_FAILED",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "a frame without bytes": [
    withFrame(0, { stored: new Uint8Array() }),
    "DECOMPRESSION_FAILED",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "two frames in one": [
    withFrame(0, { stored: concat(STORED[0]!, STORED[0]!) }),
    "DECOMPRESSION_FAILED",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "a raw dictionary that begins like a trained one": [
    withFrame(2, {
      content: concat(Uint8Array.of(0x37, 0xa4, 0x30, 0xec), CONTENTS[1].subarray(4)),
      stored: rawFrame(concat(Uint8Array.of(0x37, 0xa4, 0x30, 0xec), CONTENTS[1].subarray(4))),
    }),
    "FRAME_GRAPH",
    /^frame 0 \(a\.so#0 gfx942\)$/,
  ],
  "another size than the TOC's": [
    {
      ...SOUND,
      entries: map(
        ["a.so#0", map(["gfx942", entryOf(0, SIZE - 1)])],
        ["a.so#1", map(["gfx942", entryOf(1, SIZE)])],
      ),
    },
    "SIZE_MISMATCH",
    /^slices of kernel a\.so#0/,
  ],
  "an ordinal out of range": [
    {
      ...SOUND,
      entries: map(
        ["a.so#0", map(["gfx942", entryOf(2, SIZE)])],
        ["a.so#1", map(["gfx942", entryOf(1, SIZE)])],
      ),
    },
    "ORDINAL_OUT_OF_RANGE",
    /^ordinal of a\.so#0/,
  ],
  "slices that make 5 GB": [
    {
      ...SOUND,
      kernelsTable: concat(varints(900_000), repeated(varints(0, 0, SIZE), 900_000), varints(1, 1, 0, SIZE)),
      entries: map(
        ["a.so#0", map(["gfx942", entryOf(0, 900_000 * SIZE)])],
        ["a.so#1", map(["gfx942", entryOf(1, SIZE)])],
      ),
    },
    "LIMIT_EXCEEDED",
    /^slices of kernel a\.so#0/,
  ],
};

function assertCode(code: string, wanted: KpackErrorCode | RegExp): void {
  if (typeof wanted === "string") assert.equal(code, wanted);
  else assert.match(code, wanted);
}

describe("a hostile graph", () => {
  it("is one that was right before it was changed", async () => {
    const archive = await openBytes(graphArchive(withFrame(9, {})));
    for (const [ordinal, kernel] of KERNELS.entries())
      assert.deepEqual(await archive.readKernel(`a.so#${ordinal}`, "gfx942"), kernel);
  });

  for (const [name, [graph, code, field]] of Object.entries(REFUSED_ON_OPENING)) {
    it(`is refused when it is opened: ${name}`, async () => {
      const bytes = graphArchive({ ...graph, entries: map() });
      const error = await kpackError(async () => await openBytes(bytes), undefined, field);
      assertCode(error.code, code);
      assert.equal(error.file, "test.kpack");
    });
  }

  it("with dictionaries that are over the limit together is refused before any is decoded", async () => {
    const half = 2 ** 31;
    const framesTable = concat(
      varints(STORED[0]!.length, SIZE, 3, 4),
      varints(STORED[1]!.length, SIZE, 3, 0),
      varints(STORED[2]!.length, half, 0, 0),
      varints(STORED[3]!.length, half, 0, 0),
    );
    const codecs = new CountingCodecs();
    const archive = await openArchive(memorySource(graphArchive({ ...SOUND, depth: 3, framesTable })), {
      schemes: [zstdCrossKernel({ codecs })],
    });
    const error = await kpackError(
      async () => await archive.decompressor.decompressKernel(0),
      "LIMIT_EXCEEDED",
      /^slices of kernel 0$/,
    );
    assert.equal(error.found, SIZE + 4 * half, "each dictionary decoded, and joined");
    assert.deepEqual(codecs.take(), []);
  });

  it("with more frames, kernels or slices than are read is refused", async () => {
    const four: RawGraph = { ...SOUND, entries: map() };
    const kernels = [[[1, 0, 5]], [], [], [], []] as const;
    const slices = [Array.from({ length: 5 }, (_, index) => [1, index, 1] as const)];
    for (const [graph, field] of [
      [{ ...four, kernels: [] }, "cross_frames"],
      [{ ...four, frames: SOUND.frames.slice(2), kernels: kernels.slice(1) }, "cross_kernels"],
      [{ ...four, frames: SOUND.frames.slice(2), kernels: slices }, "cross_kernels"],
    ] as const) {
      const open = async (kernelCount: number): Promise<unknown> =>
        await openArchive(memorySource(graphArchive(graph)), {
          schemes: [zstdCrossKernel({ codecs: new CountingCodecs() })],
          limits: { kernelCount },
        });
      await kpackError(async () => await open(3), "LIMIT_EXCEEDED", new RegExp(`^${field}$`));
      await open(5);
    }
  });

  for (const [name, [graph, code, field]] of Object.entries(REFUSED_ON_READING)) {
    it(`is refused when its kernel is read, and no other is: ${name}`, async () => {
      const codecs = new CountingCodecs();
      const source = memorySource(graphArchive(graph), "test.kpack");
      const archive = await openArchive(source, { schemes: [zstdCrossKernel({ codecs })] });
      for (let attempt = 0; attempt < 2; attempt++) {
        const error = await kpackError(
          async () => await archive.readKernel("a.so#0", "gfx942"),
          undefined,
          field,
        );
        assertCode(error.code, code);
        assert.equal(error.file, "test.kpack");
        assert.deepEqual(await archive.readKernel("a.so#1", "gfx942"), KERNELS[1]);
      }
      assert.ok(Math.max(...codecs.take()) <= SIZE, "no more was asked for than a frame may hold");
    });
  }

  it("that reaches out of the area is refused, by verifyArea too; other kernels are read", async () => {
    const rest = graphArchive(SOUND).length;
    const cases: readonly (readonly [number, KpackErrorCode])[] = [
      [STORED[3]!.length + 1, "OVERLAP"],
      [rest, "OUT_OF_BOUNDS"],
      [2 ** 32 - 1, "OUT_OF_BOUNDS"],
    ];
    for (const [storedSize, code] of cases) {
      const archive = await openBytes(graphArchive(withFrame(3, { storedSize })));
      await kpackError(async () => await archive.decompressor.decompressKernel(1), code, /^frame 3$/);
      await kpackError(
        async () => await archive.decompressor.verifyArea?.(() => undefined),
        code,
        /^frame 3$/,
      );
      assert.deepEqual(await archive.decompressor.decompressKernel(0), KERNELS[0]);
    }
    for (const [offset, code] of [
      [0, "OVERLAP"],
      [15, "OVERLAP"],
      [2 ** 40, "OUT_OF_BOUNDS"],
      [2 ** 53 - 1, "OUT_OF_BOUNDS"],
    ] as const) {
      const archive = await openBytes(graphArchive({ ...SOUND, offset }));
      await kpackError(async () => await archive.decompressor.decompressKernel(0), code, /^frame [02]$/);
    }
  });

  it("of a kernel with very many slices of one frame decodes that frame once", async () => {
    const codecs = new CountingCodecs();
    const slices = Array.from({ length: 20_000 }, (_, index) => [0, index % SIZE, 1] as const);
    const graph: RawGraph = { ...SOUND, kernels: [slices] };
    const archive = await openArchive(memorySource(graphArchive(graph)), {
      schemes: [zstdCrossKernel({ codecs })],
    });
    assert.deepEqual(await archive.decompressor.decompressKernel(0), kernelsOfGraph(graph)[0]);
    assert.equal(codecs.take().length, 2);
  });

  it("with a frame over the limit is refused before the decoder is asked", async () => {
    const codecs = new CountingCodecs();
    const stored = bomb(100);
    const content = new Uint8Array(100 * 131072).fill(0x41);
    const bytes = graphArchive({
      frames: [{ content, stored }],
      kernels: [[[0, 1000, 10]]],
      depth: 1,
    });
    assert.ok(bytes.length < 2000);
    const scheme = zstdCrossKernel({ codecs });
    const limits = { bundleSize: 1 << 20 };
    const archive = await openArchive(memorySource(bytes), { schemes: [scheme], limits });
    await kpackError(
      async () => await archive.decompressor.decompressKernel(0),
      "LIMIT_EXCEEDED",
      /^slices of kernel 0$/,
    );
    assert.deepEqual(codecs.take(), []);
    const permissive = await openArchive(memorySource(bytes), { schemes: [scheme] });
    const kernel = await permissive.decompressor.decompressKernel(0);
    assert.deepEqual(kernel, content.subarray(0, 10));
    assert.equal(kernel.buffer.byteLength, 10, "a small slice does not keep a large content alive");
  });

  it("whose frames are swapped reads as damaged, or as other bytes than the TOC's hashes", async () => {
    const swapped = withFrame(9, {}).frames.map((frame, index) =>
      index < 2 ? { ...frame, stored: STORED[1 - index] as Uint8Array } : frame,
    );
    const archive = await openBytes(graphArchive({ ...SOUND, frames: swapped }));
    for (const ordinal of [0, 1]) {
      const error = await kpackError(async () => await archive.decompressor.decompressKernel(ordinal));
      assertCode(error.code, WRONG_BYTES);
    }
  });
});

describe("a failure that passes", () => {
  const bytes = graphArchive({
    ...SOUND,
    frames: [FRAMES[0]!, { content: CONTENTS[2], dictionaries: [2] }, FRAMES[2]!, FRAMES[3]!],
  });

  it("of the decoder is not kept: the next reader gets the kernel", async () => {
    const codecs = new CountingCodecs();
    const archive = await openArchive(memorySource(bytes), { schemes: [zstdCrossKernel({ codecs })] });
    codecs.failNext = 1;
    const both = await Promise.allSettled(
      [0, 1].map(async (ordinal) => await archive.decompressor.decompressKernel(ordinal)),
    );
    assert.deepEqual(
      both.map(({ status }) => status),
      ["rejected", "rejected"],
      "both waited for the one dictionary",
    );
    assert.equal(codecs.take().length, 1);
    for (const [ordinal, kernel] of KERNELS.entries())
      assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), kernel);
    assert.equal(codecs.take().length, 3);
  });

  it("of the source is not kept either", async () => {
    for (let failAt = 1; failAt <= 2; failAt++) {
      const source = new FaultySource(memorySource(bytes));
      const archive = await openArchive(source, {
        schemes: [zstdCrossKernel({ codecs: new CountingCodecs() })],
      });
      source.failAt = failAt;
      await assert.rejects(archive.decompressor.decompressKernel(0), (error) => error === source.fault);
      for (const [ordinal, kernel] of KERNELS.entries())
        assert.deepEqual(await archive.decompressor.decompressKernel(ordinal), kernel);
    }
  });
});
