import { constants, zstdCompressSync } from "node:zlib";
import { type ArchiveChanges, AREA_START, buildArchive, entriesOf, tocOf } from "./archive-builder.ts";
import { concat } from "./raw-msgpack.ts";

/**
 * Archives of the scheme zstd-cross-kernel, byte by byte, right or wrong: nothing here is the library's. Frames and
 * slices are tables as the format has them; each part can be given as something else than what would be right.
 */
export interface RawFrame {
  readonly content: Uint8Array;
  /** Indexes of its dictionaries. */
  readonly dictionaries?: readonly number[];
  /** The stored frame, when it is not the content compressed with the dictionaries. */
  readonly stored?: Uint8Array;
  readonly storedSize?: number;
  readonly contentSize?: number;
  /** The dictionaries as the table has them. */
  readonly table?: readonly [number, number];
}

/** Frame, offset, size. */
export type RawSlice = readonly [number, number, number];

export interface RawGraph extends ArchiveChanges {
  readonly frames: readonly RawFrame[];
  /** By ordinal. */
  readonly kernels: readonly (readonly RawSlice[])[];
  readonly depth?: unknown;
  readonly offset?: unknown;
  readonly framesTable?: unknown;
  readonly kernelsTable?: unknown;
}

export function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Uint8Array.from([...bytes, rest]);
}

export function varints(...values: readonly number[]): Uint8Array {
  return concat(...values.map(varint));
}

/** One zstd frame with content size and checksum. */
export function rawFrame(content: Uint8Array, dictionary?: Uint8Array): Uint8Array {
  const params = { [constants.ZSTD_c_contentSizeFlag]: 1, [constants.ZSTD_c_checksumFlag]: 1 };
  const options = { params, pledgedSrcSize: content.length, ...(dictionary?.length && { dictionary }) };
  return new Uint8Array(zstdCompressSync(content, options));
}

/** The stored frames, each compressed with the contents of those that it names. */
export function storedFrames(frames: readonly RawFrame[]): readonly Uint8Array[] {
  return frames.map(({ content, dictionaries = [], stored }) => {
    const contents = dictionaries.map((index) => frames[index]?.content ?? new Uint8Array());
    return stored ?? rawFrame(content, concat(...contents));
  });
}

/** The kernels' bytes, by the contents that the frames were given. */
export function kernelsOfGraph({ frames, kernels }: RawGraph): readonly Uint8Array[] {
  return kernels.map((slices) =>
    concat(
      ...slices.map(([frame, offset, size]) =>
        (frames[frame]?.content ?? new Uint8Array()).subarray(offset, offset + size),
      ),
    ),
  );
}

export function graphArchive(graph: RawGraph): Uint8Array {
  const stored = storedFrames(graph.frames);
  const framesTable = graph.frames.flatMap((frame, index) => {
    const [first = -1, second = -1] = frame.dictionaries ?? [];
    return [
      varint(frame.storedSize ?? stored[index]?.length ?? 0),
      varint(frame.contentSize ?? frame.content.length),
      ...(frame.table ?? [first + 1, second + 1]).map(varint),
    ];
  });
  const kernelsTable = graph.kernels.flatMap((slices) => [
    varint(slices.length),
    ...slices.flat().map(varint),
  ]);
  const fields = [
    ["cross_offset", graph.offset ?? AREA_START],
    ["cross_frames", graph.framesTable ?? concat(...framesTable)],
    ["cross_kernels", graph.kernelsTable ?? concat(...kernelsTable)],
    ["cross_depth", graph.depth ?? 8],
  ] as const;
  const entries = graph.entries ?? entriesOf(kernelsOfGraph(graph));
  return buildArchive({
    area: concat(...stored),
    toc: tocOf(entries, "zstd-cross-kernel", fields, graph.toc),
    ...graph.file,
  });
}

/** Contents that a dictionary helps with: each begins as the one before ends. */
export function chainedContents(count: number, size: number): readonly Uint8Array[] {
  const bytes = new Uint8Array((count + 1) * size);
  let state = 12345;
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[at] = state >>> 24;
  }
  return Array.from({ length: count }, (_, index) => bytes.slice(index * size, (index + 2) * size));
}

/** Graphs that no planner of ours writes, but that the format allows. */
export function exoticGraphs(): Readonly<Record<string, RawGraph>> {
  const contents = chainedContents(10, 6000);
  const [a, b, c] = contents as [Uint8Array, Uint8Array, Uint8Array];
  const whole = (frame: number): RawSlice => [frame, 0, contents[frame]?.length ?? 0];
  return {
    "two dictionaries": {
      frames: [{ content: b, dictionaries: [1, 2] }, { content: a }, { content: c }],
      kernels: [[[0, 0, b.length]]],
      depth: 3,
    },
    "two dictionaries in the other order": {
      frames: [{ content: b, dictionaries: [2, 1] }, { content: a }, { content: c }],
      kernels: [[[0, 0, b.length]]],
      depth: 3,
    },
    "a second dictionary without a first": {
      frames: [{ content: b, dictionaries: [1], table: [0, 2] }, { content: a }],
      kernels: [[[0, 0, b.length]]],
      depth: 2,
    },
    "the same dictionary twice": {
      frames: [{ content: b, dictionaries: [1, 1] }, { content: a }],
      kernels: [[[0, 0, b.length]]],
      depth: 2,
    },
    "a chain of eight": {
      frames: contents
        .slice(0, 8)
        .map((content, index) => ({ content, dictionaries: index < 7 ? [index + 1] : [] })),
      kernels: contents.slice(0, 8).map((_, frame) => [whole(frame)]),
    },
    "eight frames, each with the next two": {
      frames: contents.slice(0, 8).map((content, index) => ({
        content,
        dictionaries: [index + 1, index + 2].filter((other) => other < 8),
      })),
      kernels: contents.slice(0, 8).map((_, frame) => [whole(frame)]),
    },
    "three slices of two frames": {
      frames: [{ content: a, dictionaries: [2] }, { content: b, dictionaries: [2] }, { content: c }],
      kernels: [
        [
          [1, 100, 5000],
          [0, 0, 6000],
          [1, 0, 100],
        ],
        [
          [0, 11_999, 1],
          [1, 0, 1],
        ],
      ],
      depth: 3,
    },
    "kernels without slices": {
      frames: [{ content: a }],
      kernels: [[], [[0, 0, 0]], [], [[0, 5, 700]], []],
      depth: 1,
    },
    "no frames at all": { frames: [], kernels: [[], []], depth: 0 },
    "an empty frame with a dictionary, an empty dictionary": {
      frames: [
        { content: new Uint8Array(), dictionaries: [2] },
        { content: b, dictionaries: [3] },
        { content: c },
        { content: new Uint8Array() },
      ],
      kernels: [[[0, 0, 0]], [[1, 0, b.length]]],
      depth: 2,
    },
    "a frame that nobody needs": {
      frames: [{ content: a }, { content: b, dictionaries: [2] }, { content: c }],
      kernels: [[whole(0)]],
      depth: 1,
    },
    "numbers in more bytes than they need": {
      frames: [{ content: a }],
      kernels: [[[0, 0, 5]]],
      kernelsTable: Uint8Array.of(0x81, 0x80, 0x00, 0x80, 0x00, 0x80, 0x80, 0x80, 0x80, 0x00, 0x05),
      depth: 1,
    },
    "a dictionary that begins with a part of the trained ones' magic": {
      frames: [{ content: b, dictionaries: [1] }, { content: concat(Uint8Array.of(0x37, 0xa4, 0x30), a) }],
      kernels: [[[0, 0, b.length]]],
      depth: 2,
    },
    "a dictionary of three bytes": {
      frames: [{ content: b, dictionaries: [1] }, { content: Uint8Array.of(1, 2, 3) }],
      kernels: [[[0, 0, b.length]]],
      depth: 2,
    },
  };
}
