import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type FrameCompressor,
  type FrameCompressorOptions,
  nodeCodecs,
  type ZstdCodec,
} from "../../../src/node.ts";
import { scanZstdFrame } from "../../../src/codec/zstd-frame.ts";
import { EFFORT_PARAMETERS, EFFORTS, SMALL_FRAME } from "../../../src/scheme/cross-kernel/effort.ts";
import {
  createFrameCompressor,
  FrameCompressors,
  windowLogFor,
} from "../../../src/scheme/cross-kernel/frame-compressors.ts";
import { kpackError } from "../../support/expect-error.ts";
import { codePiece, joined, randomKernel } from "../../support/kernel-families.ts";

const zstd = nodeCodecs.zstd as ZstdCodec;
const DICTIONARY = codePiece(1, 150_000);
const WITHIN = DICTIONARY.subarray(40_000, 41_000);

/** Sizes around those at which zstd or the stream changes its way; some like the dictionary, some like nothing. */
const CONTENTS: readonly Uint8Array[] = [
  ...[0, 1, 5, 100, 5000, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 262_144].map((size, index) =>
    codePiece(index + 2, size),
  ),
  ...[0, 3, 200, 70_000].map((size, index) => randomKernel(index, size)),
  joined([DICTIONARY.subarray(1000, 60_000), codePiece(50, 3000), DICTIONARY.subarray(90_000, 140_000)]),
  joined([randomKernel(7, 150_000), codePiece(51, 100_000), randomKernel(8, 150_000)]),
  WITHIN,
  new Uint8Array(400_000),
];
/** Those that show most: level 19 is slow. */
const FEW_CONTENTS = [0, 1, 4, 6, 8, 13, 15, 16, 17, 18].map((index) => CONTENTS[index] as Uint8Array);

function create(options: FrameCompressorOptions): FrameCompressor {
  return createFrameCompressor(zstd, options);
}

async function compressAll(
  options: FrameCompressorOptions,
  contents: readonly Uint8Array[],
): Promise<readonly Uint8Array[]> {
  const compressor = create(options);
  const frames: Uint8Array[] = [];
  try {
    for (const content of contents) frames.push(await compressor.compress(content));
  } finally {
    compressor.close();
  }
  return frames;
}

function assertSameFrames(found: readonly Uint8Array[], wanted: readonly Uint8Array[], what: string): void {
  assert.equal(found.length, wanted.length);
  for (const [index, frame] of found.entries())
    assert.ok(Buffer.from(frame).equals(wanted[index] as Uint8Array), `${what}: frame ${index} differs`);
}

describe("a frame compressor", () => {
  const variants: readonly (readonly [string, Omit<FrameCompressorOptions, "windowLog">])[] = [
    ["level 9", { level: 9 }],
    ["level 12", { level: 12 }],
    ["level 19", { level: 19 }],
    ["small frames' level 9", { ...EFFORT_PARAMETERS.default.small }],
    ["small frames' level 19", { ...EFFORT_PARAMETERS.max.small }],
  ];
  for (const [name, level] of variants) {
    for (const dictionary of [undefined, DICTIONARY]) {
      const how = `${name}, ${dictionary ? "with a dictionary" : "without one"}`;
      const options = { ...level, windowLog: windowLogFor((dictionary?.length ?? 0) + 400_000), dictionary };

      const contents = level.level > 12 ? FEW_CONTENTS : CONTENTS;

      it(`writes whole frames, that do not depend on those before: ${how}`, async () => {
        const frames = await compressAll(options, contents);
        for (const [index, frame] of frames.entries()) {
          const content = contents[index] as Uint8Array;
          const { size, contentSize, hasChecksum, dictionaryId } = scanZstdFrame(frame);
          assert.deepEqual(
            { size, contentSize, hasChecksum, dictionaryId },
            { size: frame.length, contentSize: content.length, hasChecksum: true, dictionaryId: 0 },
          );
          assert.deepEqual(await zstd.decompress(frame, content.length, { dictionary }), content);
          if (dictionary && content === WITHIN)
            assert.ok(frame.length < 40, "what the dictionary has is free");
        }
        const reversed = await compressAll(options, contents.toReversed());
        assertSameFrames(reversed.toReversed(), frames, "in reverse order");
        for (const index of [0, 1, 4, contents.length - 4, contents.length - 2]) {
          const alone = await compressAll(options, [contents[index] as Uint8Array]);
          assertSameFrames(alone, [frames[index] as Uint8Array], `content ${index} alone`);
        }
        if (contents === FEW_CONTENTS) return;
        const twice = await compressAll(options, [...contents, ...contents]);
        assertSameFrames(twice, [...frames, ...frames], "a second time");
      });
    }
  }

  it("does not keep or change the bytes that it is given", async () => {
    const content = codePiece(9, 70_000);
    const copy = content.slice();
    const compressor = create({ level: 9, windowLog: 20 });
    const first = await compressor.compress(content);
    assert.deepEqual(content, copy);
    content.fill(0);
    const second = await compressor.compress(copy);
    compressor.close();
    assert.deepEqual(second, first);
  });

  it("is refused where the codec has none", async () => {
    const codec: ZstdCodec = { ...zstd, createFrameCompressor: undefined };
    await kpackError(async () => createFrameCompressor(codec, { level: 3, windowLog: 20 }), "MISSING_CODEC");
  });
});

describe("the pool of frame compressors", () => {
  for (const effort of EFFORTS) {
    it(`gives the same frames whatever is compressed at once: effort ${effort}`, async () => {
      const contents = FEW_CONTENTS;
      const options = {
        dictionary: DICTIONARY,
        effort: EFFORT_PARAMETERS[effort],
        largestContent: 400_000,
      };
      using one = new FrameCompressors(zstd, options);
      using many = new FrameCompressors(zstd, options);
      const frames: Uint8Array[] = [];
      for (const content of contents) frames.push(await one.compress(content));
      assertSameFrames(
        await Promise.all(contents.map((content) => many.compress(content))),
        frames,
        "at once",
      );
    });
  }

  it("closes a compressor that failed, and goes on with another one", async () => {
    let made = 0;
    let closed = 0;
    const codec: ZstdCodec = {
      ...zstd,
      createFrameCompressor: (): FrameCompressor => {
        made += 1;
        const fails = made === 1;
        return {
          compress: async (bytes) => await (fails ? Promise.reject(new Error("no")) : Promise.resolve(bytes)),
          close: () => void (closed += 1),
        };
      },
    };
    const effort = EFFORT_PARAMETERS.fast;
    const pool = new FrameCompressors(codec, { dictionary: undefined, effort, largestContent: SMALL_FRAME });
    await assert.rejects(pool.compress(new Uint8Array(1)), /no/);
    assert.deepEqual([made, closed], [1, 1]);
    await pool.compress(new Uint8Array(1));
    await pool.compress(new Uint8Array(2));
    await pool.compress(new Uint8Array(SMALL_FRAME));
    assert.deepEqual([made, closed], [3, 1], "one for small frames, one for large ones");
    pool[Symbol.dispose]();
    assert.equal(closed, 3);
  });

  it("has windows from 128 KiB to what decoders take by default, that hold the dictionary and the content", () => {
    assert.equal(windowLogFor(0), 17);
    assert.equal(windowLogFor(2 ** 17 - 1), 17);
    assert.equal(windowLogFor(2 ** 17), 18);
    assert.equal(windowLogFor(3 << 20), 22);
    assert.equal(windowLogFor(2 ** 40), windowLogFor(2 ** 31));
    assert.ok(windowLogFor(2 ** 40) <= 27);
  });
});
