import type { Limits } from "../bytes/limits.ts";
import { type Codecs, requireCodec } from "../codec/codec.ts";
import { ByteReader } from "../bytes/byte-reader.ts";
import { FormatError, isKpackError } from "../errors/errors.ts";
import type { Finding, OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { Bundle, BundleCompression, BundleEntry, ReadEntryOptions } from "./bundle.ts";
import { BUNDLE_MAGIC, type BundleTable, parseBundleTable } from "./bundle-table.ts";
import { formatHash, LARGEST_COMPRESSED_HEADER, parseCompressedHeader } from "./compressed-header.ts";
import { decodeStream, largestStream, scanStreamFrame } from "./compressed-stream.ts";
import type { DecodedCache } from "./decoded-cache.ts";
import { startsWithMagic } from "./magic.ts";
import type { BundlePlace } from "./offload-bundle.ts";

/** Compressed offload bundles: a header, then a zlib or zstd stream whose content is one bundle, or several. */

export interface CompressedContext {
  readonly codecs: Codecs;
  readonly limits: Limits;
  readonly cache: DecodedCache;
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: OnFinding | undefined;
}

const FIRST_WINDOW = 1024 * 1024;

/** Reads the bundles of the compressed container at a place whose magic was checked. */
export async function readCompressedBundles(
  source: Source,
  place: BundlePlace,
  context: CompressedContext,
): Promise<readonly Bundle[]> {
  const { index, offset } = place;
  const field = `bundle[${index}]`;
  const available = place.end - offset;
  const header =
    place.firstBytes.length >= Math.min(LARGEST_COMPRESSED_HEADER, available)
      ? place.firstBytes
      : await source.read(offset, Math.min(LARGEST_COMPRESSED_HEADER, available), { signal: context.signal });
  const headerPlace = { file: source.name, fileOffset: offset, field };
  const compression = parseCompressedHeader(header, available, context.limits, headerPlace);
  const length = compression.totalSize ?? (await findLength(source, place, compression, context));
  const container = new Container(source, offset, length, field, compression, context);
  const content = await container.content(context.signal, context.onFinding);
  const tables = parseContent(content, source.name, place, context.onFinding);
  return tables.map(
    ({ start, table }, position) => new CompressedBundle(container, index + position, start, table),
  );
}

/**
 * Compares the hash in a compressed bundle's header with its content. LLVM does so only when it is verbose.
 * @returns the finding of a difference, or undefined when there is none or the bundle is not compressed.
 */
export async function checkBundleHash(
  bundle: Bundle,
  codecs: Codecs,
  options: { readonly file?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<Finding | undefined> {
  if (bundle.compression === undefined) return undefined;
  const digest = await requireCodec(codecs, "md5")(await bundle.readContent(options));
  const hash = formatHash(new ByteReader(digest).u64Big("md5"));
  if (hash === bundle.compression.hash) return undefined;
  return {
    severity: "warning",
    code: "BUNDLE_HASH_MISMATCH",
    message: `the header says ${bundle.compression.hash}, the content's hash is ${hash}`,
    file: options.file,
    field: `bundle[${bundle.index}].hash`,
    offset: bundle.offset,
  };
}

/** One compressed run of bytes in the source, and its content for as long as the cache keeps it. */
class Container {
  readonly source: Source;
  readonly offset: number;
  readonly length: number;
  readonly compression: BundleCompression;
  readonly #field: string;
  readonly #context: CompressedContext;

  constructor(
    source: Source,
    offset: number,
    length: number,
    field: string,
    compression: BundleCompression,
    context: CompressedContext,
  ) {
    this.source = source;
    this.offset = offset;
    this.length = length;
    this.compression = compression;
    this.#field = field;
    this.#context = context;
  }

  async content(signal: AbortSignal | undefined, onFinding?: OnFinding): Promise<Uint8Array> {
    signal?.throwIfAborted();
    // Other callers may wait for the same decoding, so one caller's signal must not end it.
    const { uncompressedSize } = this.compression;
    const decode = (): Promise<Uint8Array> => this.#decode(onFinding);
    const content = await this.#context.cache.get(this.offset, uncompressedSize, decode);
    signal?.throwIfAborted();
    return content;
  }

  async #decode(onFinding: OnFinding | undefined): Promise<Uint8Array> {
    const { headerSize } = this.compression;
    const fileOffset = this.offset + headerSize;
    const bytes = await this.source.read(fileOffset, this.length - headerSize);
    const place = { file: this.source.name, fileOffset, field: this.#field };
    const decoded = await decodeStream(bytes, this.compression, this.#context.codecs, place);
    if (decoded.consumed < bytes.length) {
      onFinding?.({
        severity: "warning",
        code: "TRAILING_BYTES",
        message: `${bytes.length - decoded.consumed} bytes follow the compressed stream inside the bundle`,
        file: this.source.name,
        field: `${this.#field}.totalSize`,
        offset: fileOffset + decoded.consumed,
      });
    }
    return decoded.content;
  }
}

class CompressedBundle implements Bundle {
  readonly container = "ccob";
  readonly index: number;
  readonly offset: number;
  readonly length: number;
  readonly compression: BundleCompression;
  readonly contentOffset: number;
  readonly entries: readonly BundleEntry[];
  readonly #container: Container;

  constructor(container: Container, index: number, contentOffset: number, table: BundleTable) {
    this.#container = container;
    this.index = index;
    this.offset = container.offset;
    this.length = container.length;
    this.compression = container.compression;
    this.contentOffset = contentOffset;
    this.entries = table.entries;
  }

  async readEntry(entry: BundleEntry, options?: ReadEntryOptions): Promise<Uint8Array> {
    const content = await this.#container.content(options?.signal);
    const start = this.contentOffset + entry.offset;
    const bytes = content.subarray(start, start + entry.size);
    const buffer = options?.buffer;
    // A copy: a view would keep the whole content in memory for as long as the caller keeps one entry.
    if (buffer === undefined || buffer.length < bytes.length) return bytes.slice();
    buffer.set(bytes);
    return buffer.subarray(0, bytes.length);
  }

  async readContent(options?: { readonly signal?: AbortSignal | undefined }): Promise<Uint8Array> {
    return await this.#container.content(options?.signal);
  }
}

/** Version 1 has no total size: the stream itself says where it ends. */
async function findLength(
  source: Source,
  place: BundlePlace,
  compression: BundleCompression,
  context: CompressedContext,
): Promise<number> {
  const { headerSize, method, uncompressedSize } = compression;
  const fileOffset = place.offset + headerSize;
  const most = Math.min(place.end - fileOffset, largestStream(uncompressedSize));
  const streamPlace = { file: source.name, fileOffset, field: `bundle[${place.index}]` };
  if (method === "zlib") {
    // Only decoding shows where a zlib stream ends.
    const bytes = await source.read(fileOffset, most, { signal: context.signal });
    return headerSize + (await decodeStream(bytes, compression, context.codecs, streamPlace)).consumed;
  }
  for (let window = Math.min(most, FIRST_WINDOW); ; window = Math.min(most, window * 4)) {
    const bytes = await source.read(fileOffset, window, { signal: context.signal });
    try {
      const frame = scanStreamFrame(bytes, streamPlace);
      return headerSize + frame.start + frame.size;
    } catch (error) {
      if (window === most || !isKpackError(error, "TRUNCATED")) throw error;
    }
  }
}

interface ContentBundle {
  readonly start: number;
  readonly table: BundleTable;
}

/** The bundles in decompressed content: one after another, with zero bytes between. */
function parseContent(
  content: Uint8Array,
  file: string,
  place: BundlePlace,
  onFinding: OnFinding | undefined,
): readonly ContentBundle[] {
  const found: ContentBundle[] = [];
  for (let start = 0; start < content.length; ) {
    const field = `bundle[${place.index + found.length}]`;
    const bytes = content.subarray(start);
    if (!startsWithMagic(bytes, BUNDLE_MAGIC)) {
      if (found.length === 0) break;
      onFinding?.({
        severity: "warning",
        code: "TRAILING_BYTES",
        message: `${bytes.length} bytes in the decompressed content are no bundle`,
        file,
        field: `bundle[${place.index}].content`,
        offset: place.offset,
      });
      break;
    }
    const tablePlace = { file, fileOffset: place.offset, isDecompressed: true, field };
    const table = parseBundleTable(bytes, bytes.length, tablePlace, onFinding);
    if (table === undefined) break; // cannot be: all bytes are in hand
    found.push({ start, table });
    start += table.length;
    while (content[start] === 0) start++;
  }
  if (found.length > 0) return found;
  throw new FormatError("NOT_A_BUNDLE", "the decompressed content is no offload bundle", {
    file,
    field: `bundle[${place.index}].content`,
    offset: place.offset,
    expected: BUNDLE_MAGIC,
  });
}
