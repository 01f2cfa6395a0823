import { abortable } from "../bytes/abortable.ts";
import { ByteReader } from "../bytes/byte-reader.ts";
import type { Limits } from "../bytes/limits.ts";
import type { Codecs } from "../codec/codec.ts";
import { isKpackError } from "../errors/errors.ts";
import type { Finding, OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { BundleCompression } from "./bundle.ts";
import { formatHash } from "./compressed-header.ts";
import {
  type DecodedStream,
  decodeStream,
  largestStream,
  scanStreamFrame,
  type StreamPlace,
} from "./compressed-stream.ts";
import type { DecodedCache } from "./decoded-cache.ts";
import type { BundlePlace } from "./offload-bundle.ts";

/** The compressed bytes behind a `CCOB` header, and their content for as long as a cache keeps it. */

export interface CompressedContext {
  readonly codecs: Codecs;
  readonly limits: Limits;
  readonly cache: DecodedCache;
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: OnFinding | undefined;
}

const FIRST_WINDOW = 1024 * 1024;

/** Finds where the container at `place` ends. Version 1 has no total size: its stream itself says where it ends. */
export async function openContainer(
  source: Source,
  place: BundlePlace,
  compression: BundleCompression,
  context: CompressedContext,
): Promise<CompressedContainer> {
  const { headerSize, method, totalSize } = compression;
  const fileOffset = place.offset + headerSize;
  const streamPlace = { file: source.name, fileOffset, field: `bundle[${place.index}]` };
  const container = (length: number, decoded?: DecodedStream): CompressedContainer =>
    new CompressedContainer(source, { place, length, compression, decoded }, context);
  if (totalSize !== undefined) return container(totalSize);
  const most = Math.min(place.end - fileOffset, largestStream(compression.uncompressedSize));
  if (method === "zstd") {
    return container(headerSize + (await frameLength(source, most, streamPlace, context.signal)));
  }
  // Only decoding shows where a zlib stream ends, so its content is kept for the first who asks.
  context.signal?.throwIfAborted();
  const bytes = await source.read(fileOffset, most, { signal: context.signal });
  const decoding = decodeStream(bytes, compression, context.codecs, streamPlace);
  const decoded = await abortable(decoding, context.signal);
  return container(headerSize + decoded.consumed, decoded);
}

async function frameLength(
  source: Source,
  most: number,
  place: StreamPlace,
  signal: AbortSignal | undefined,
): Promise<number> {
  for (let window = Math.min(most, FIRST_WINDOW); ; window = Math.min(most, window * 4)) {
    const bytes = await source.read(place.fileOffset, window, { signal });
    try {
      const frame = scanStreamFrame(bytes, place);
      return frame.start + frame.size;
    } catch (error) {
      if (window === most || !isKpackError(error, "TRUNCATED")) throw error;
    }
  }
}

interface ContainerParts {
  readonly place: BundlePlace;
  /** Header and compressed bytes. */
  readonly length: number;
  readonly compression: BundleCompression;
  /** What finding the length has decoded already. */
  readonly decoded: DecodedStream | undefined;
}

/** One compressed run of bytes in the source. */
export class CompressedContainer {
  readonly offset: number;
  readonly length: number;
  readonly compression: BundleCompression;
  readonly #source: Source;
  readonly #field: string;
  readonly #context: CompressedContext;
  #decoded: DecodedStream | undefined;

  constructor(source: Source, parts: ContainerParts, context: CompressedContext) {
    this.offset = parts.place.offset;
    this.length = parts.length;
    this.compression = parts.compression;
    this.#source = source;
    this.#field = `bundle[${parts.place.index}]`;
    this.#context = context;
    this.#decoded = parts.decoded;
  }

  /** The content. With `onFinding`, oddities of the bytes are reported, among them another hash than the header's. */
  async content(signal: AbortSignal | undefined, onFinding?: OnFinding): Promise<Uint8Array> {
    signal?.throwIfAborted();
    // Other callers may wait for the same decoding, so one caller's signal must not end it: the caller just leaves.
    const { uncompressedSize } = this.compression;
    const decode = (): Promise<Uint8Array> => this.#decode(onFinding);
    return await abortable(this.#context.cache.get(this.offset, uncompressedSize, decode), signal);
  }

  async #decode(onFinding: OnFinding | undefined): Promise<Uint8Array> {
    const { headerSize } = this.compression;
    const fileOffset = this.offset + headerSize;
    const size = this.length - headerSize;
    const place = { file: this.#source.name, fileOffset, field: this.#field };
    const decoded = this.#decoded ?? (await this.#decodeBytes(size, place));
    this.#decoded = undefined; // from here on the cache alone keeps it
    if (onFinding === undefined) return decoded.content;
    if (decoded.consumed < size) {
      onFinding({
        severity: "warning",
        code: "TRAILING_BYTES",
        message: `${size - decoded.consumed} bytes follow the compressed stream inside the bundle`,
        file: place.file,
        field: `${this.#field}.totalSize`,
        offset: fileOffset + decoded.consumed,
      });
    }
    const { md5 } = this.#context.codecs;
    if (md5) {
      const where = { file: place.file, offset: this.offset, field: this.#field };
      const finding = await compareHash(decoded.content, this.compression, md5, where);
      if (finding) onFinding(finding);
    }
    return decoded.content;
  }

  async #decodeBytes(size: number, place: StreamPlace): Promise<DecodedStream> {
    const bytes = await this.#source.read(place.fileOffset, size);
    return await decodeStream(bytes, this.compression, this.#context.codecs, place);
  }
}

/** The finding that the content's hash is not the header's, or undefined. */
export async function compareHash(
  content: Uint8Array,
  compression: BundleCompression,
  md5: NonNullable<Codecs["md5"]>,
  place: { readonly file: string | undefined; readonly offset: number; readonly field: string },
): Promise<Finding | undefined> {
  const hash = formatHash(new ByteReader(await md5(content)).u64Big("md5"));
  if (hash === compression.hash) return undefined;
  return {
    severity: "warning",
    code: "BUNDLE_HASH_MISMATCH",
    message: `the header says ${compression.hash}, the content's hash is ${hash}`,
    file: place.file,
    field: `${place.field}.hash`,
    offset: place.offset,
  };
}
