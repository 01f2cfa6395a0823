import { deflateRawSync, inflateRawSync } from "node:zlib";
import {
  type BlobArea,
  type CompressionScheme,
  type DecompressOptions,
  type DecompressorContext,
  FormatError,
  type KernelCompressor,
  type KernelDecompressor,
  type KernelInput,
  type NewSchemeFields,
  type SchemeFields,
} from "../../src/index.ts";

/**
 * What somebody else's scheme may look like, made of nothing but the public entry: raw deflate per kernel,
 * written back to front, so that nothing may lean on the order of the area, with TOC fields of its own.
 */
export const deflateScheme: CompressionScheme<Uint8Array> = {
  name: "example-deflate",
  fieldNames: ["deflate_places"],
  createCompressor: (): KernelCompressor<Uint8Array> => ({
    async prepareKernel(kernel: KernelInput): Promise<Uint8Array> {
      return new Uint8Array(deflateRawSync(kernel.bytes));
    },
    async finalize(inputs: AsyncIterable<Uint8Array>, area: BlobArea): Promise<NewSchemeFields> {
      const all: Uint8Array[] = [];
      for await (const input of inputs) all.push(input);
      const places: (readonly [number, number])[] = [];
      for (const bytes of all.toReversed()) {
        const { offset, size } = await area.write(bytes);
        places.unshift([offset - area.start, size]);
      }
      return { deflate_places: { start: area.start, places } };
    },
  }),
  openDecompressor: (fields, context) => new DeflateDecompressor(fields, context),
};

class DeflateDecompressor implements KernelDecompressor {
  readonly #start: number;
  readonly #places: readonly (readonly [number, number])[];
  readonly #context: DecompressorContext;

  constructor(fields: SchemeFields, context: DecompressorContext) {
    this.#context = context;
    const value = fields.get("deflate_places");
    const start = value instanceof Map ? value.get("start") : undefined;
    const places = value instanceof Map ? value.get("places") : undefined;
    if (typeof start !== "number" || !Array.isArray(places)) {
      const code = fields.has("deflate_places") ? "WRONG_TYPE" : "MISSING_KEY";
      throw new FormatError(code, "the places are missing", {
        file: context.source.name,
        field: "deflate_places",
      });
    }
    this.#start = start;
    this.#places = places as readonly (readonly [number, number])[];
  }

  async kernelCount(): Promise<number> {
    return this.#places.length;
  }

  async decompressKernel(ordinal: number, options: DecompressOptions = {}): Promise<Uint8Array> {
    const [extent] = await this.storedExtents(ordinal);
    const { source, limits } = this.#context;
    const bytes = await source.read(extent?.offset ?? 0, extent?.size ?? 0, { signal: options.signal });
    const limit = Math.max(1, Math.min(options.expectedSize ?? limits.kernelSize, limits.kernelSize));
    try {
      return new Uint8Array(inflateRawSync(bytes, { maxOutputLength: limit }));
    } catch (cause) {
      throw new FormatError("DECOMPRESSION_FAILED", "the stream is damaged", { file: source.name, cause });
    }
  }

  async storedExtents(
    ordinal: number,
  ): Promise<readonly { readonly offset: number; readonly size: number }[]> {
    const place = this.#places[ordinal];
    if (!place) {
      throw new FormatError("ORDINAL_OUT_OF_RANGE", "no such kernel", {
        file: this.#context.source.name,
        field: "ordinal",
        expected: `0 to ${this.#places.length - 1}`,
        found: ordinal,
      });
    }
    return [{ offset: this.#start + place[0], size: place[1] }];
  }
}
