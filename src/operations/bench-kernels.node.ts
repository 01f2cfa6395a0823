import { join } from "node:path";
import { normalizeBinaryKey } from "../archive/binary-key.ts";
import type { KernelToWrite } from "../archive/kernel-to-write.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { bytesEqual, type Extent } from "../bytes/extent.ts";
import type { Limits } from "../bytes/limits.ts";
import { FormatError, NotFoundError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import { detectFile } from "../host/detect.ts";
import { createFile } from "../sink/file-sink.node.ts";
import type { Sink } from "../sink/sink.ts";
import { FilePool } from "../source/file-pool.node.ts";
import { openFile } from "../source/file-source.node.ts";
import type { Source } from "../source/source.ts";
import { matchesAnySelection } from "../target/target-id.ts";
import { findInputs } from "./find-inputs.node.ts";
import { planPack } from "./plan-pack.node.ts";

/** Which kernels are looked at. */
export interface BenchKernelOptions {
  /** Archives, or what can be packed: fat binaries, bundles, code objects and folders of them. */
  readonly inputs: readonly string[];
  readonly targets?: readonly string[] | undefined;
  readonly root?: string | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly onFinding: OnFinding;
  readonly signal?: AbortSignal | undefined;
}

/** One entry of the archives to be: its kernel and the names that it goes by. */
export interface BenchKernel extends KernelToWrite {
  readonly binaryKey: string;
  readonly target: string;
}

/** Uncompressed kernels in one file, so that each setting reads them at the same cost, wherever they came from. */
export class BenchKernels implements AsyncDisposable {
  readonly kernels: readonly BenchKernel[];
  /** Uncompressed bytes of all of them. */
  readonly originalSize: number;
  readonly targets: readonly string[];
  readonly #source: Source;

  private constructor(source: Source, places: readonly Place[]) {
    this.#source = source;
    this.kernels = places.map(({ binaryKey, target, extent }) => ({
      binaryKey,
      target,
      entries: [{ binaryKey, target }],
      kernel: {
        size: extent.size,
        read: (options) => source.read(extent.offset, extent.size, options),
      },
    }));
    this.originalSize = places.reduce((sum, { extent }) => sum + extent.size, 0);
    this.targets = [...new Set(places.map(({ target }) => target))];
  }

  /**
   * Unpacks all kernels of the inputs into a file in `folder`.
   * @throws NotFoundError `NOTHING_FOUND` when no input has any for the wanted targets
   * @throws FormatError `CONFLICTING_KERNELS` when inputs have different kernels for one key and target
   */
  static async unpack(folder: string, options: BenchKernelOptions): Promise<BenchKernels> {
    const path = join(folder, "kernels");
    await using sink = await createFile(path);
    const places: Place[] = [];
    const packable: string[] = [];
    for (const input of options.inputs) {
      if (await isArchive(input, options)) await unpackArchive(input, sink, places, options);
      else packable.push(input);
    }
    if (packable.length > 0) await unpackInputs(packable, sink, places, options);
    if (places.length === 0) {
      throw new NotFoundError("NOTHING_FOUND", "there is no kernel to compare schemes with", {
        file: options.inputs.join(", "),
        field: options.targets && "--targets",
        expected: options.targets && `kernels for ${options.targets.join(", ")}`,
        hint: '"kpack list FILE" shows what a file holds.',
      });
    }
    await sink.commit();
    const source = await openFile(path);
    try {
      return new BenchKernels(source, await withoutRepeats(source, places, options.signal));
    } catch (error) {
      await source[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }
}

interface Place {
  readonly binaryKey: string;
  readonly target: string;
  readonly extent: Extent;
}

/** Each entry once, where inputs have it several times. @throws FormatError `CONFLICTING_KERNELS` for different kernels */
async function withoutRepeats(
  source: Source,
  places: readonly Place[],
  signal: AbortSignal | undefined,
): Promise<readonly Place[]> {
  const firsts = new Map<string, Place>();
  for (const place of places) {
    const name = `${normalizeBinaryKey(place.binaryKey)} ${place.target}`;
    const first = firsts.get(name);
    if (!first) firsts.set(name, place);
    else if (!(await isSameKernel(source, first.extent, place.extent, signal))) {
      throw new FormatError(
        "CONFLICTING_KERNELS",
        "two inputs have different kernels for one key and target",
        {
          field: name,
          hint: "Compare the inputs one by one.",
        },
      );
    }
  }
  return [...firsts.values()];
}

async function isSameKernel(
  source: Source,
  a: Extent,
  b: Extent,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (a.size !== b.size) return false;
  if (a.offset === b.offset) return true;
  const [first, second] = await Promise.all([
    source.read(a.offset, a.size, { signal }),
    source.read(b.offset, b.size, { signal }),
  ]);
  return bytesEqual(first, second);
}

async function isArchive(input: string, { signal }: BenchKernelOptions): Promise<boolean> {
  for await (const { path, named } of findInputs([input])) {
    if (!named) return false;
    await using source = await openFile(path);
    return (await detectFile(source, { signal })) === "kpack";
  }
  return false;
}

async function unpackArchive(
  path: string,
  sink: Sink,
  places: Place[],
  options: BenchKernelOptions,
): Promise<void> {
  const { limits, onFinding, signal, targets } = options;
  await using archive = await openArchive(await openFile(path), {
    onFinding,
    signal,
    ...(limits && { limits }),
  });
  const extents = new Map<number, Extent>();
  for (const entry of archive.entries) {
    const { binaryKey, target, ordinal } = entry;
    if (!matchesAnySelection(target, targets)) continue;
    const extent =
      extents.get(ordinal) ??
      (await append(sink, await archive.readKernel(entry, { checkHash: true, signal })));
    extents.set(ordinal, extent);
    places.push({ binaryKey, target, extent });
  }
}

async function unpackInputs(
  inputs: readonly string[],
  sink: Sink,
  places: Place[],
  options: BenchKernelOptions,
): Promise<void> {
  await using pool = new FilePool();
  const { kernels } = await planPack(pool, { ...options, inputs });
  for (const { kernel, entries } of kernels) {
    const extent = await append(sink, await kernel.read({ signal: options.signal }));
    for (const { binaryKey, target } of entries) places.push({ binaryKey, target, extent });
  }
}

async function append(sink: Sink, bytes: Uint8Array): Promise<Extent> {
  const offset = sink.position;
  await sink.write(bytes);
  return { offset, size: bytes.length };
}
