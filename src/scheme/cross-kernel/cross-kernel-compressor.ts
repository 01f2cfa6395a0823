import { abortable } from "../../bytes/abortable.ts";
import { BufferPool } from "../../bytes/buffer-pool.ts";
import { bytesEqual } from "../../bytes/extent.ts";
import { mapOrdered } from "../../bytes/map-ordered.ts";
import type { ZstdCodec } from "../../codec/codec.ts";
import type { ReadOptions } from "../../source/source.ts";
import { loadXxh64 } from "../../hash/xxh64.ts";
import type {
  BlobArea,
  CompressorContext,
  FinalizeOptions,
  KernelCompressor,
  KernelInput,
  NewSchemeFields,
} from "../scheme.ts";
import { type EffortParameters, SMALL_FRAME } from "./effort.ts";
import { FingerprintCollector, type FingerprintTable } from "./fingerprint-table.ts";
import { computeFingerprints, type Fingerprints } from "./fingerprints.ts";
import { createFrameCompressor, FrameCompressors, windowLogFor } from "./frame-compressors.ts";
import { FrameGraphBuilder } from "./frame-graph-builder.ts";
import { areMostlySmall, type Plan, type Planner } from "./planner.ts";
import { buildDictionary } from "./shared-dictionary.ts";

/** A kernel and a way to read it again. */
interface KnownKernel {
  readonly id: string;
  readonly size: number;
  readonly hash: bigint;
  readonly read: KernelInput["read"];
}

/** What the map phase leaves of a kernel: enough to plan, and a way to read it again. */
export interface SketchedKernel extends KnownKernel {
  readonly fingerprints: Fingerprints;
}

/** Compressed sizes of a sample decide whether the dictionary pays; about this part of its own size is what it costs. */
const DICTIONARY_COST = 0.16;
/** A dictionary of which so many times its own size stands in the kernels pays without a trial. */
const SURE_GAIN = 2;
/** The dictionary has to save at least half a percent. */
const LEAST_SAVING = 0.995;
/** Small inputs stay in memory, since opening a thousand files again costs more than compressing them. */
const KEPT_BYTES = 64 << 20;
const TRIAL_FRAMES = 8;
const TRIAL_LEVEL = { level: 9, hashLog: 20 } as const;

export class CrossKernelCompressor implements KernelCompressor<SketchedKernel> {
  readonly #zstd: ZstdCodec;
  readonly #planner: Planner;
  readonly #effort: EffortParameters;
  readonly #context: CompressorContext;
  /** Bytes of kernels that may still be kept; those beyond are read again when they are needed. */
  #room = KEPT_BYTES;

  constructor(zstd: ZstdCodec, planner: Planner, effort: EffortParameters, context: CompressorContext) {
    this.#zstd = zstd;
    this.#planner = planner;
    this.#effort = effort;
    this.#context = context;
  }

  async prepareKernel(kernel: KernelInput): Promise<SketchedKernel> {
    const xxh64 = await loadXxh64();
    const { length } = kernel.bytes;
    const kept = length > this.#room ? undefined : kernel.isStable ? kernel.bytes : kernel.bytes.slice();
    if (kept) this.#room -= length;
    return {
      id: kernel.id,
      size: length,
      hash: xxh64(kernel.bytes),
      fingerprints: computeFingerprints(kernel.bytes),
      read: kept ? async () => kept : (options) => kernel.read(options),
    };
  }

  async finalize(
    inputs: AsyncIterable<SketchedKernel>,
    area: BlobArea,
    options: FinalizeOptions,
  ): Promise<NewSchemeFields> {
    const { kernels, ordinals, table } = await distinctKernels(inputs, options.signal);
    const sizes = kernels.map(({ size }) => size);
    const plan = this.#planner.plan({ table, sizes }, this.#effort);
    const dictionary = await this.#worthwhileDictionary(plan, kernels, options);
    const graph = new FrameGraphBuilder();
    // The dictionary stands behind all frames: it may take longer to compress than they do.
    const dictionaries = dictionary ? [plan.groups.length] : [];
    const contentSizes = plan.groups.map((group) =>
      group.reduce((sum, kernel) => sum + (sizes[kernel] ?? 0), 0),
    );
    using compressors = new FrameCompressors(this.#zstd, {
      dictionary,
      effort: this.#effort,
      // With one group for each kernel they would be too many arguments for one call.
      largestContent: contentSizes.reduce((most, size) => Math.max(most, size), SMALL_FRAME),
    });
    const dictionaryFrame = dictionary && this.#compressDictionary(dictionary, sizes);
    dictionaryFrame?.catch(() => undefined); // awaited below, after the frames
    const buffers = new BufferPool(this.#context.jobs);
    const compressGroup = async (group: readonly number[]): Promise<CompressedGroup> => {
      options.signal?.throwIfAborted();
      const size = group.reduce((sum, kernel) => sum + (sizes[kernel] ?? 0), 0);
      const buffer = buffers.take(size);
      try {
        const content = await readGroup(group, kernels, { signal: options.signal, buffer });
        return { group, contentSize: size, frame: await compressors.compress(content) };
      } finally {
        buffers.give(buffer);
      }
    };
    let done = 0;
    for await (const { group, contentSize, frame } of mapOrdered(
      plan.groups,
      this.#context.jobs,
      compressGroup,
      options.signal,
    )) {
      const { size: storedSize } = await area.write(frame);
      const index = graph.addFrame({ storedSize, contentSize, dictionaries });
      let offset = 0;
      for (const kernel of group) {
        const size = sizes[kernel] ?? 0;
        for (const ordinal of ordinals[kernel] ?? [])
          graph.setKernel(ordinal, [{ frame: index, offset, size }]);
        offset += size;
      }
      done += contentSize;
      options.onProgress?.({ stage: "compress", done, unit: "bytes" });
    }
    if (dictionary && dictionaryFrame) {
      const { size: storedSize } = await area.write(await abortable(dictionaryFrame, options.signal));
      graph.addFrame({ storedSize, contentSize: dictionary.length, dictionaries: [] });
    }
    return graph.finish(area.start);
  }

  /** The planned dictionary, unless a trial on a sample of the frames shows that it does not pay for its own bytes. */
  async #worthwhileDictionary(
    plan: Plan,
    kernels: readonly KnownKernel[],
    options: FinalizeOptions,
  ): Promise<Uint8Array | undefined> {
    if (plan.windows.length === 0) return undefined;
    const { signal } = options;
    const dictionary = await buildDictionary(plan.windows, (kernel) =>
      readKernel(kernels, kernel, { signal }),
    );
    if (plan.gain >= dictionary.length * SURE_GAIN) return dictionary;
    const windowLog = windowLogFor(dictionary.length + SMALL_FRAME);
    const withIt = createFrameCompressor(this.#zstd, { ...TRIAL_LEVEL, windowLog, dictionary });
    const without = createFrameCompressor(this.#zstd, {
      ...TRIAL_LEVEL,
      windowLog: windowLogFor(SMALL_FRAME),
    });
    try {
      const step = Math.max(1, Math.floor(plan.groups.length / TRIAL_FRAMES));
      let sampled = 0;
      let smaller = 0;
      let larger = 0;
      for (let index = 0; index < plan.groups.length; index += step) {
        const content = (await readGroup(plan.groups[index] ?? [], kernels, { signal })).subarray(
          0,
          SMALL_FRAME,
        );
        sampled += content.length;
        smaller += (await withIt.compress(content)).length;
        larger += (await without.compress(content)).length;
      }
      const total = kernels.reduce((sum, { size }) => sum + size, 0);
      const scale = sampled === 0 ? 1 : total / sampled;
      const pays = smaller * scale + dictionary.length * DICTIONARY_COST <= LEAST_SAVING * larger * scale;
      return pays ? dictionary : undefined;
    } finally {
      withIt.close();
      without.close();
    }
  }

  async #compressDictionary(dictionary: Uint8Array, sizes: readonly number[]): Promise<Uint8Array> {
    const { smallKernels, largeKernels } = this.#effort.dictionaryLevel;
    const level = areMostlySmall(sizes) ? smallKernels : largeKernels;
    return await this.#zstd.compress(dictionary, { level });
  }
}

interface CompressedGroup {
  readonly group: readonly number[];
  readonly contentSize: number;
  readonly frame: Uint8Array;
}

/** Identical kernels once, in the order of their first ordinals, and the ordinals of each. */
async function distinctKernels(
  inputs: AsyncIterable<SketchedKernel>,
  signal: AbortSignal | undefined,
): Promise<{
  readonly kernels: readonly KnownKernel[];
  readonly ordinals: readonly number[][];
  readonly table: FingerprintTable;
}> {
  const kernels: KnownKernel[] = [];
  const collector = new FingerprintCollector();
  const ordinals: number[][] = [];
  const byHash = new Map<string, number[]>();
  let ordinal = 0;
  for await (const input of inputs) {
    signal?.throwIfAborted();
    const key = `${input.size}:${input.hash}`;
    const candidates = byHash.get(key) ?? [];
    const twin = await findTwin(input, candidates, kernels, signal);
    if (twin === undefined) {
      candidates.push(kernels.length);
      byHash.set(key, candidates);
      const { id, size, hash, read } = input;
      kernels.push({ id, size, hash, read });
      collector.add(input.fingerprints); // which keeps no more of them than it has room for
      ordinals.push([ordinal]);
    } else ordinals[twin]?.push(ordinal);
    ordinal += 1;
  }
  return { kernels, ordinals, table: collector.finish() };
}

async function findTwin(
  input: SketchedKernel,
  candidates: readonly number[],
  kernels: readonly KnownKernel[],
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  for (const candidate of candidates) {
    if (bytesEqual(await readKernel(kernels, candidate, { signal }), await input.read({ signal })))
      return candidate;
  }
  return undefined;
}

async function readKernel(
  kernels: readonly KnownKernel[],
  kernel: number,
  options: ReadOptions,
): Promise<Uint8Array> {
  const sketched = kernels[kernel];
  if (!sketched) throw new RangeError(`there is no kernel ${kernel}`);
  return await sketched.read(options);
}

/** The bytes of a group's kernels, one after the other; in the buffer, when one is given. */
async function readGroup(
  group: readonly number[],
  kernels: readonly KnownKernel[],
  { signal, buffer }: ReadOptions,
): Promise<Uint8Array> {
  const [only] = group;
  if (group.length === 1 && only !== undefined) return await readKernel(kernels, only, { signal, buffer });
  const size = group.reduce((sum, kernel) => sum + (kernels[kernel]?.size ?? 0), 0);
  const content = buffer?.subarray(0, size) ?? new Uint8Array(size);
  let position = 0;
  for (const kernel of group) {
    const place = content.subarray(position);
    const bytes = await readKernel(kernels, kernel, { signal, buffer: place });
    if (bytes.buffer !== place.buffer || bytes.byteOffset !== place.byteOffset) place.set(bytes);
    position += bytes.length;
  }
  return content;
}
