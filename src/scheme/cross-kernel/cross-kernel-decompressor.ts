import type { Extent } from "../../bytes/extent.ts";
import { abortable } from "../../bytes/abortable.ts";
import type { Codecs, FrameDecompressor } from "../../codec/codec.ts";
import { FormatError, LimitError } from "../../errors/errors.ts";
import type { OnFinding } from "../../errors/finding.ts";
import { checkInsideArea, reportCoverage, USUAL_AREA_START } from "../area-check.ts";
import { decodeFrame } from "../decode-frame.ts";
import {
  checkOrdinal,
  type DecompressOptions,
  type DecompressorContext,
  type FrameMap,
  type KernelDecompressor,
  type KernelReader,
  type SchemeFields,
} from "../scheme.ts";
import { ContentCache } from "./content-cache.ts";
import { DictionaryDecompressors } from "./dictionary-decompressors.ts";
import { FrameWorkspace } from "./frame-workspace.ts";
import { FrameGraph, type Slice } from "./frame-graph.ts";
import { nameKernel } from "./name-kernel.ts";
import { looksTrained } from "./shared-dictionary.ts";

/** A kernel is handed out as a view of its frame's content when that is at most so many times as large, */
const VIEW_SPREAD = 8;
/** or no larger than this. Copying costs about as much as decoding does. */
const SMALL_CONTENT = 64 * 1024;

export class CrossKernelDecompressor implements KernelDecompressor {
  readonly graph: FrameGraph;
  readonly #codecs: Codecs;
  readonly #context: DecompressorContext;
  readonly #cache: ContentCache;
  readonly #decompressors: DictionaryDecompressors;
  /** Frames that are a dictionary of others. */
  readonly #dictionaries: ReadonlySet<number>;
  /** Those, and frames that several kernels are in: worth keeping once decoded. */
  readonly #shared: ReadonlySet<number>;

  constructor(codecs: Codecs, fields: SchemeFields, context: DecompressorContext, cacheSize: number) {
    this.#codecs = codecs;
    this.#context = context;
    const { source, limits } = context;
    this.graph = new FrameGraph(fields, { file: source.name, mostKernels: limits.kernelCount });
    this.#cache = new ContentCache(cacheSize);
    this.#dictionaries = new Set(this.graph.frames.flatMap(({ dictionaries }) => dictionaries));
    this.#shared = sharedFrames(this.graph, this.#dictionaries);
    this.#decompressors = new DictionaryDecompressors(codecs.zstd, this.graph.frames);
  }

  get kernelsPerFrame(): number {
    return this.graph.kernels.length / Math.max(1, this.graph.frames.length);
  }

  async kernelCount(): Promise<number> {
    return this.graph.kernels.length;
  }

  async decompressKernel(ordinal: number, options: DecompressOptions = {}): Promise<Uint8Array> {
    options.signal?.throwIfAborted();
    const slices = this.#slices(ordinal, options.id);
    const size = slices.reduce((sum, slice) => sum + slice.size, 0);
    this.#checkSize(size, slices, ordinal, options);
    return await nameKernel(options.id, async () => await this.#assemble(slices, size, options));
  }

  async #assemble(slices: readonly Slice[], size: number, options: DecompressOptions): Promise<Uint8Array> {
    const [only] = slices;
    if (slices.length === 1 && only) return cut(await this.#content(only.frame, options), only);
    // Each frame once, however many slices of it there are: a hostile archive may have very many.
    const frames = [...new Set(slices.map(({ frame }) => frame))];
    const contents = await Promise.all(frames.map((frame) => this.#content(frame, options)));
    const byFrame = new Map(frames.map((frame, index) => [frame, contents[index]]));
    const kernel = new Uint8Array(size);
    let position = 0;
    for (const { frame, offset, size: length } of slices) {
      const content = byFrame.get(frame);
      if (content) kernel.set(content.subarray(offset, offset + length), position);
      position += length;
    }
    return kernel;
  }

  frameOf(ordinal: number): number | undefined {
    const slices = this.graph.kernels[ordinal] ?? [];
    return slices.length === 1 ? slices[0]?.frame : undefined;
  }

  /** Decodes frames that are no dictionary into memory of its own; all others are shared with everybody. */
  openReader(): KernelReader {
    const workspace = new FrameWorkspace(this.#codecs.zstd, this.graph.largestContent);
    return {
      decompressKernel: async (ordinal, options = {}) => {
        const slices = this.#slices(ordinal, options.id);
        const [slice] = slices;
        if (!slice || slices.length !== 1 || this.#dictionaries.has(slice.frame))
          return await this.decompressKernel(ordinal, options);
        options.signal?.throwIfAborted();
        this.#checkSize(slice.size, slices, ordinal, options);
        const content =
          workspace.contentOf(slice.frame) ??
          (await nameKernel(options.id, () => this.#decode(slice.frame, options, workspace)));
        return content.subarray(slice.offset, slice.offset + slice.size);
      },
      close: () => workspace.close(),
    };
  }

  async storedExtents(ordinal: number): Promise<readonly Extent[]> {
    const frames = new Set(this.#slices(ordinal, undefined).map(({ frame }) => frame));
    return [...frames].map((frame) => this.graph.frame(frame).extent);
  }

  async verifyArea(onFinding: OnFinding): Promise<void> {
    const { source, tocOffset } = this.#context;
    const extents = this.graph.frames.map(({ extent }) => extent);
    extents.forEach((extent, index) => this.#checkExtent(extent, `frame ${index}`));
    reportCoverage(extents, USUAL_AREA_START, tocOffset, source.name, onFinding);
  }

  describeFrames(): FrameMap {
    return this.graph;
  }

  close(): void {
    this.#decompressors.close();
    this.#cache.clear();
  }

  #slices(ordinal: number, id: string | undefined): readonly Slice[] {
    checkOrdinal(ordinal, this.graph.kernels.length, { file: this.#context.source.name, id });
    return this.graph.kernels[ordinal] ?? [];
  }

  #checkSize(size: number, slices: readonly Slice[], ordinal: number, options: DecompressOptions): void {
    const { source, limits } = this.#context;
    const place = { file: source.name, field: `slices of kernel ${options.id ?? ordinal}` };
    if (options.expectedSize !== undefined && options.expectedSize !== size) {
      throw new FormatError("SIZE_MISMATCH", "the kernel's size is not the one that the TOC states", {
        ...place,
        expected: options.expectedSize,
        found: size,
      });
    }
    if (size > limits.kernelSize) {
      throw new LimitError("LIMIT_EXCEEDED", "the kernel is larger than the limit for one kernel", {
        ...place,
        expected: `at most ${limits.kernelSize} bytes`,
        found: size,
      });
    }
    const needed = this.graph.decodedSize(slices);
    if (needed > limits.bundleSize) {
      throw new LimitError("LIMIT_EXCEEDED", "the frames that the kernel needs are larger than the limit", {
        ...place,
        expected: `at most ${limits.bundleSize} bytes together`,
        found: needed,
      });
    }
  }

  async #content(frame: number, options: DecompressOptions): Promise<Uint8Array> {
    if (!this.#shared.has(frame)) return await this.#decode(frame, options);
    // Others may wait for a shared frame: one caller's abort must not fail them.
    const decoding = this.#cache.get(frame, () => this.#decode(frame, { onFinding: options.onFinding }));
    return await abortable(decoding, options.signal);
  }

  async #decode(index: number, options: DecompressOptions, workspace?: FrameWorkspace): Promise<Uint8Array> {
    const { source, limits } = this.#context;
    const frame = this.graph.frame(index);
    const { extent, contentSize, dictionaries } = frame;
    const field = `frame ${index}`;
    this.#checkExtent(extent, field);
    const reading = source.read(extent.offset, extent.size, {
      signal: options.signal,
      buffer: workspace?.stored.for(extent.size),
    });
    const needed = [
      reading,
      ...dictionaries.map((dictionary) => this.#content(dictionary, options)),
    ] as const;
    // A reader's memory is used again as soon as this rejects: nothing may then still write to it.
    if (workspace) await Promise.allSettled(needed);
    const [stored, ...contents] = await Promise.all(needed);
    const dictionary = this.#dictionary(contents, field);
    const decode = (frameDecompressor: FrameDecompressor | undefined): Promise<Uint8Array> =>
      decodeFrame(stored, {
        codecs: this.#codecs,
        file: source.name,
        offset: extent.offset,
        field,
        expectedSize: contentSize,
        sizeField: "content size",
        limit: limits.bundleSize,
        strict: true,
        dictionary,
        frameDecompressor,
        onFinding: options.onFinding,
        signal: options.signal,
      });
    if (workspace) return await workspace.decode(index, frame, dictionary, decode);
    return await this.#decompressors.use(frame, dictionary, decode);
  }

  #checkExtent(extent: Extent, field: string): void {
    const { source, tocOffset } = this.#context;
    checkInsideArea(extent, { file: source.name, tocOffset, fileSize: source.size }, field);
  }

  #dictionary(contents: readonly Uint8Array[], field: string): Uint8Array | undefined {
    const dictionary = joinContents(contents);
    if (!dictionary || !looksTrained(dictionary)) return dictionary;
    throw new FormatError("FRAME_GRAPH", "the frame's dictionary begins like a trained one", {
      file: this.#context.source.name,
      field,
    });
  }
}

/** A part of a frame's content: a view of it, unless that would keep much more alive than the part itself. */
function cut(content: Uint8Array, { offset, size }: Slice): Uint8Array {
  const isMostOfIt = content.length <= Math.max(SMALL_CONTENT, size * VIEW_SPREAD);
  return isMostOfIt ? content.subarray(offset, offset + size) : content.slice(offset, offset + size);
}

/** The raw dictionary that contents make, one after the other. */
export function joinContents(contents: readonly Uint8Array[]): Uint8Array | undefined {
  const [first, ...others] = contents;
  if (first === undefined || others.length === 0) return first;
  const joined = new Uint8Array(contents.reduce((sum, { length }) => sum + length, 0));
  let position = 0;
  for (const content of contents) {
    joined.set(content, position);
    position += content.length;
  }
  return joined;
}

function sharedFrames(graph: FrameGraph, dictionaries: ReadonlySet<number>): ReadonlySet<number> {
  const shared = new Set(dictionaries);
  const usedBy = new Map<number, number>();
  graph.kernels.forEach((slices, ordinal) => {
    for (const { frame } of slices) {
      if ((usedBy.get(frame) ?? ordinal) !== ordinal) shared.add(frame);
      usedBy.set(frame, ordinal);
    }
  });
  return shared;
}
