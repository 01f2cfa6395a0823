import type { Extent } from "../bytes/extent.ts";
import { KeptBuffer } from "../bytes/kept-buffer.ts";
import { LimitError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import { checkInsideArea, reportCoverage, USUAL_AREA_START } from "./area-check.ts";
import {
  type BlobArea,
  checkOrdinal,
  type CompressionScheme,
  type DecompressOptions,
  type DecompressorContext,
  type KernelCompressor,
  type KernelDecompressor,
  type KernelReader,
  type KernelInput,
  type NewSchemeFields,
  type SchemeFields,
} from "./scheme.ts";

/** Kernels up to this size are read into memory that is kept. */
const LARGEST_KEPT = 64 * 1024 * 1024;

/**
 * The scheme `none`: kernels one after another, uncompressed.
 *
 * | TOC field | value |
 * | --- | --- |
 * | `blobs` | array, by ordinal, of maps `offset` (absolute), `size` (bytes) |
 */
export const none: CompressionScheme<Uint8Array> = {
  name: "none",
  fieldNames: ["blobs"],
  createCompressor: () => new PlainCompressor(),
  openDecompressor: (fields, context) => new PlainDecompressor(fields, context),
};

class PlainCompressor implements KernelCompressor<Uint8Array> {
  async prepareKernel(kernel: KernelInput): Promise<Uint8Array> {
    return kernel.isStable ? kernel.bytes : kernel.bytes.slice();
  }

  async finalize(inputs: AsyncIterable<Uint8Array>, area: BlobArea): Promise<NewSchemeFields> {
    const blobs: Extent[] = [];
    for await (const bytes of inputs) {
      const { offset, size } = await area.write(bytes);
      blobs.push({ offset, size });
    }
    return { blobs: blobs.map(({ offset, size }) => ({ offset, size })) };
  }
}

class PlainDecompressor implements KernelDecompressor {
  readonly #blobs: readonly Extent[];
  readonly #context: DecompressorContext;

  constructor(fields: SchemeFields, context: DecompressorContext) {
    this.#context = context;
    this.#blobs = readBlobs(fields);
    const early = this.#blobs.find((blob) => blob.offset >= 16 && blob.offset < USUAL_AREA_START);
    if (early) {
      context.onFinding({
        severity: "warning",
        code: "AREA_BEFORE_64",
        message: `a kernel begins at byte ${early.offset}, inside the padding of the header`,
        file: context.source.name,
        offset: early.offset,
      });
    }
  }

  async kernelCount(): Promise<number> {
    return this.#blobs.length;
  }

  async decompressKernel(ordinal: number, options: DecompressOptions = {}): Promise<Uint8Array> {
    return await this.#read(ordinal, options, undefined);
  }

  openReader(): KernelReader {
    const buffer = new KeptBuffer(LARGEST_KEPT);
    return {
      decompressKernel: async (ordinal, options = {}) => {
        const { size } = this.#blob(ordinal, options.id);
        return await this.#read(ordinal, options, buffer.for(size));
      },
      close(): void {},
    };
  }

  async #read(
    ordinal: number,
    options: DecompressOptions,
    buffer: Uint8Array | undefined,
  ): Promise<Uint8Array> {
    const { source, limits } = this.#context;
    const blob = this.#blob(ordinal, options.id);
    if (blob.size > limits.kernelSize) {
      throw new LimitError("LIMIT_EXCEEDED", "the kernel is larger than the limit for one kernel", {
        file: source.name,
        field: `blobs[${ordinal}].size`,
        expected: `at most ${limits.kernelSize} bytes`,
        found: blob.size,
        hint: "Raise the limit (option limits.kernelSize) if the archive is trusted.",
      });
    }
    return await source.read(blob.offset, blob.size, { signal: options.signal, buffer });
  }

  async storedExtents(ordinal: number): Promise<readonly Extent[]> {
    return [this.#blob(ordinal, undefined)];
  }

  async verifyArea(onFinding: OnFinding): Promise<void> {
    const { source, tocOffset } = this.#context;
    reportCoverage(this.#blobs, USUAL_AREA_START, tocOffset, source.name, onFinding);
  }

  #blob(ordinal: number, id: string | undefined): Extent {
    const { source, tocOffset } = this.#context;
    checkOrdinal(ordinal, this.#blobs.length, { file: source.name, id });
    const blob = this.#blobs[ordinal] ?? { offset: 0, size: 0 };
    checkInsideArea(blob, { file: source.name, tocOffset, fileSize: source.size }, `blobs[${ordinal}]`);
    return blob;
  }
}

function readBlobs(fields: SchemeFields): readonly Extent[] {
  const reader = fields.reader("blobs");
  const count = reader.arraySize("blobs");
  const blobs: Extent[] = [];
  for (let ordinal = 0; ordinal < count; ordinal++) {
    const field = `blobs[${ordinal}]`;
    const pairs = reader.mapSize(field);
    let offset: number | undefined;
    let size: number | undefined;
    for (let pair = 0; pair < pairs; pair++) {
      const key = reader.string(field);
      if (key !== "offset" && key !== "size") {
        reader.skip(`${field}.${key}`);
        continue;
      }
      if ((key === "offset" ? offset : size) !== undefined) {
        throw reader.error("DUPLICATE_KEY", "the same key stands twice in a map", `${field}.${key}`);
      }
      const value = reader.unsigned(`${field}.${key}`);
      if (key === "offset") offset = value;
      else size = value;
    }
    if (offset === undefined || size === undefined) {
      const missing = offset === undefined ? "offset" : "size";
      throw reader.error("MISSING_KEY", "a key that the format needs is missing", `${field}.${missing}`);
    }
    blobs.push({ offset, size });
  }
  return blobs;
}
