import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type FrameDecompressor, nodeCodecs, type ZstdCodec } from "../../../src/node.ts";
import { DictionaryDecompressors } from "../../../src/scheme/cross-kernel/dictionary-decompressors.ts";

/** Decompressors that decode nothing, on record. */
function recording(): {
  readonly zstd: ZstdCodec;
  readonly opened: FrameDecompressor[];
  readonly closed: FrameDecompressor[];
} {
  const opened: FrameDecompressor[] = [];
  const closed: FrameDecompressor[] = [];
  const createFrameDecompressor = (): FrameDecompressor => {
    const memory = new Uint8Array(4);
    const decompressor: FrameDecompressor = {
      decompress: async (frame) => memory.fill(frame[0] ?? 0),
      close: () => void closed.push(decompressor),
    };
    opened.push(decompressor);
    return decompressor;
  };
  return { zstd: { ...(nodeCodecs.zstd as ZstdCodec), createFrameDecompressor }, opened, closed };
}

const DICTIONARY = Uint8Array.of(1, 2, 3);
/** Frames 0 to 5 share the dictionary 8, frames 6 and 7 the dictionary 9. */
const FRAMES = Array.from({ length: 10 }, (_, index) => ({
  contentSize: 4,
  dictionaries: index < 6 ? [8] : index < 8 ? [9] : [],
}));

describe("decompressors for shared dictionaries", () => {
  const decode = (value: number) => async (decompressor: FrameDecompressor | undefined) =>
    (await decompressor?.decompress(Uint8Array.of(value), 4)) ?? Uint8Array.of(0);

  it("are used by one frame after another, and what they decode is copied", async () => {
    const { zstd, opened, closed } = recording();
    const decompressors = new DictionaryDecompressors(zstd, FRAMES);
    const first = await decompressors.use(FRAMES[0] as (typeof FRAMES)[0], DICTIONARY, decode(7));
    await decompressors.use(FRAMES[1] as (typeof FRAMES)[0], DICTIONARY, decode(8));
    assert.deepEqual([...first], [7, 7, 7, 7]);
    assert.equal(opened.length, 1);
    decompressors.close();
    assert.deepEqual(closed, opened);
  });

  it("are as many as frames are decoded at once, and all are closed in the end, used ones too", async () => {
    const { zstd, opened, closed } = recording();
    const decompressors = new DictionaryDecompressors(zstd, FRAMES);
    const decodings = FRAMES.slice(0, 6).map((frame, index) =>
      decompressors.use(frame, DICTIONARY, decode(index)),
    );
    decompressors.close();
    const contents = await Promise.all(decodings);
    assert.deepEqual(
      contents.map(([byte]) => byte),
      [0, 1, 2, 3, 4, 5],
    );
    assert.equal(opened.length, 6);
    assert.equal(new Set(closed).size, 6);
  });

  it("are closed when another dictionary is used, and after a failure they are kept", async () => {
    const { zstd, opened, closed } = recording();
    const frames = [...FRAMES, ...FRAMES.slice(6, 8), ...FRAMES.slice(6, 8)];
    const decompressors = new DictionaryDecompressors(zstd, frames);
    const [one, other] = [FRAMES[0], FRAMES[6]] as const;
    assert.ok(one && other);
    const failing = decompressors.use(
      one,
      DICTIONARY,
      async () => await Promise.reject(new Error("damaged")),
    );
    await assert.rejects(failing, /damaged/);
    await decompressors.use(one, DICTIONARY, decode(1));
    assert.equal(opened.length, 1);
    await decompressors.use(other, DICTIONARY, decode(2));
    assert.deepEqual(closed, opened.slice(0, 1));
    decompressors.close();
    assert.deepEqual(closed, opened);
  });

  it("are not made where few frames share a dictionary, or the codec has none", async () => {
    const { zstd, opened } = recording();
    const rare = new DictionaryDecompressors(zstd, FRAMES);
    assert.deepEqual([...(await rare.use(FRAMES[6] as (typeof FRAMES)[0], DICTIONARY, decode(1)))], [0]);
    const plain = new DictionaryDecompressors({ ...zstd, createFrameDecompressor: undefined }, FRAMES);
    assert.deepEqual([...(await plain.use(FRAMES[0] as (typeof FRAMES)[0], DICTIONARY, decode(1)))], [0]);
    assert.equal(opened.length, 0);
  });
});
