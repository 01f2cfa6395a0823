import type { OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { Bundle, BundleEntry, ReadEntryOptions } from "./bundle.ts";
import { type BundleTable, parseBundleTable } from "./bundle-table.ts";

/** Uncompressed offload bundles in a source: the table is read, the entries only when asked for. */

export interface BundlePlace {
  /** Position among the bundles of the scanned extent. */
  readonly index: number;
  /** Absolute offset of the bundle in the source. */
  readonly offset: number;
  /** Absolute offset up to which the bundle may reach. */
  readonly end: number;
  /** Bytes from `offset` on that were read already. */
  readonly firstBytes: Uint8Array;
}

/** Reads the table of the uncompressed bundle at a place whose magic was checked. */
export async function readOffloadBundle(
  source: Source,
  place: BundlePlace,
  options: { readonly signal?: AbortSignal | undefined; readonly onFinding?: OnFinding | undefined },
): Promise<Bundle> {
  const { index, offset } = place;
  const available = place.end - offset;
  const tablePlace = {
    file: source.name,
    fileOffset: offset,
    isDecompressed: false,
    field: `bundle[${index}]`,
  };
  let bytes = place.firstBytes;
  let table = parseBundleTable(bytes, available, tablePlace, options.onFinding);
  while (table === undefined) {
    bytes = await source.read(offset, Math.min(available, bytes.length * 2), { signal: options.signal });
    table = parseBundleTable(bytes, available, tablePlace, options.onFinding);
  }
  return new PlainBundle(source, index, offset, table);
}

class PlainBundle implements Bundle {
  readonly container = "plain";
  readonly contentOffset = 0;
  readonly index: number;
  readonly offset: number;
  readonly length: number;
  readonly entries: readonly BundleEntry[];
  readonly #source: Source;

  constructor(source: Source, index: number, offset: number, table: BundleTable) {
    this.#source = source;
    this.index = index;
    this.offset = offset;
    this.length = table.length;
    this.entries = table.entries;
  }

  async readEntry(entry: BundleEntry, options?: ReadEntryOptions): Promise<Uint8Array> {
    // An entry without bytes may point anywhere.
    if (entry.size === 0) return new Uint8Array(0);
    return await this.#source.read(this.offset + entry.offset, entry.size, options);
  }

  async readContent(options?: { readonly signal?: AbortSignal | undefined }): Promise<Uint8Array> {
    return await this.#source.read(this.offset, this.length, options);
  }
}
