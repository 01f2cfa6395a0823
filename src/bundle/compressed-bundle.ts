import { type Codecs, requireCodec } from "../codec/codec.ts";
import { FormatError, LimitError } from "../errors/errors.ts";
import type { Finding, OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import {
  type Bundle,
  type BundleCompression,
  type BundleEntry,
  ENTRY_HEAD_SIZE,
  type ReadEntryOptions,
} from "./bundle.ts";
import { BUNDLE_MAGIC, type BundleTable, parseBundleTable } from "./bundle-table.ts";
import {
  type CompressedContainer,
  type CompressedContext,
  compareHash,
  openContainer,
} from "./compressed-container.ts";
import { LARGEST_COMPRESSED_HEADER, parseCompressedHeader } from "./compressed-header.ts";
import { startsWithMagic } from "./magic.ts";
import type { BundlePlace } from "./offload-bundle.ts";

/** Compressed offload bundles: a header, then a zlib or zstd stream whose content is one bundle, or several. */

/** Many times what compilers write; content that repeats a tiny bundle millions of times compresses to almost nothing. */
const MOST_PARTS = 1 << 20;

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
  const container = await openContainer(source, place, compression, context);
  const content = await container.content(context.signal, context.onFinding);
  const tables = parseContent(content, source.name, place, context.onFinding);
  return tables.map(
    ({ start, table }, position) =>
      new CompressedBundle(container, index + position, start, entriesWithHeads(content, start, table)),
  );
}

/**
 * Compares the hash in a compressed bundle's header with its content. LLVM does so only when it is verbose.
 * A scan that reports its findings has done so already.
 * @returns the finding of a difference, or undefined when there is none or the bundle is not compressed.
 */
export async function checkBundleHash(
  bundle: Bundle,
  codecs: Codecs,
  options: { readonly file?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<Finding | undefined> {
  if (bundle.compression === undefined) return undefined;
  const content = await bundle.readContent(options);
  const place = { file: options.file, offset: bundle.offset, field: `bundle[${bundle.index}]` };
  return await compareHash(content, bundle.compression, requireCodec(codecs, "md5"), place);
}

/** Copies: views would keep the whole content in memory for as long as the bundle is known. */
function entriesWithHeads(content: Uint8Array, start: number, table: BundleTable): readonly BundleEntry[] {
  return table.entries.map((entry) => {
    const from = start + entry.offset;
    return { ...entry, head: content.slice(from, from + Math.min(entry.size, ENTRY_HEAD_SIZE)) };
  });
}

class CompressedBundle implements Bundle {
  readonly container = "ccob";
  readonly index: number;
  readonly offset: number;
  readonly length: number;
  readonly compression: BundleCompression;
  readonly contentOffset: number;
  readonly entries: readonly BundleEntry[];
  readonly #container: CompressedContainer;

  constructor(
    container: CompressedContainer,
    index: number,
    contentOffset: number,
    entries: readonly BundleEntry[],
  ) {
    this.#container = container;
    this.index = index;
    this.offset = container.offset;
    this.length = container.length;
    this.compression = container.compression;
    this.contentOffset = contentOffset;
    this.entries = entries;
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
  let parts = 0;
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
    parts += 1 + table.entries.length;
    if (parts > MOST_PARTS) {
      throw new LimitError("LIMIT_EXCEEDED", "the content has too many bundles and entries", {
        file,
        field: `bundle[${place.index}].content`,
        offset: place.offset,
        expected: `at most ${MOST_PARTS}`,
      });
    }
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
