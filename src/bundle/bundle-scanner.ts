import { type Extent, extentEnd } from "../bytes/extent.ts";
import { type Limits, withDefaultLimits } from "../bytes/limits.ts";
import { toHex } from "../bytes/text.ts";
import type { Codecs } from "../codec/codec.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { Bundle } from "./bundle.ts";
import { BUNDLE_MAGIC } from "./bundle-table.ts";
import { readCompressedBundles } from "./compressed-bundle.ts";
import { COMPRESSED_MAGIC } from "./compressed-header.ts";
import { DecodedCache } from "./decoded-cache.ts";
import { startsLikeMagic, startsWithMagic } from "./magic.ts";
import { readOffloadBundle } from "./offload-bundle.ts";

export interface ScanBundlesOptions {
  /** For compressed bundles: zstd and zlib. */
  readonly codecs: Codecs;
  readonly limits?: Partial<Limits> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: OnFinding | undefined;
  /**
   * Absolute offsets where bundles are known to begin, because something points there. Bytes that are no bundle are
   * then reported and passed over up to the next of these.
   */
  readonly knownStarts?: readonly number[] | undefined;
  /** The first bundle's index. @default 0 */
  readonly firstIndex?: number | undefined;
}

/** Holds the table of almost every bundle, and the padding in front of it. */
const FIRST_BLOCK = 4096;
const LARGEST_BLOCK = 1024 * 1024;
/** The container of LLVM's new offloading driver. */
const OFFLOAD_BINARY_MAGIC = "\u0010\u00ff\u0010\u00ad";

/**
 * All bundles of an extent, in order: uncompressed and compressed ones in any mix, with zero bytes between or not.
 * Where a bundle ends follows from its own table or header; nothing inside its bytes is taken for another one.
 *
 * Reads the tables only (one or two small reads each), except that compressed bundles are decompressed once.
 *
 * @throws FormatError when the extent does not begin with a bundle, or one of its bundles is damaged. What follows
 *   the last bundle and is none is a finding: `TRAILING_BYTES`.
 */
export async function* scanBundles(
  source: Source,
  extent: Extent,
  options: ScanBundlesOptions,
): AsyncGenerator<Bundle, void, undefined> {
  const { signal, onFinding } = options;
  const end = extentEnd(extent);
  const context = {
    codecs: options.codecs,
    limits: withDefaultLimits(options.limits),
    cache: new DecodedCache(),
    signal,
    onFinding,
  };
  const firstIndex = options.firstIndex ?? 0;
  if (extent.size === 0) {
    throw new FormatError("EMPTY_FILE", "there are no bytes", {
      file: source.name,
      field: `bundle[${firstIndex}]`,
      offset: extent.offset,
    });
  }
  let index = firstIndex;
  let offset = extent.offset;
  const starts = [...(options.knownStarts ?? [])].filter((start) => start < end).toSorted((a, b) => a - b);
  let nextStart = 0;
  while (offset < end) {
    const next = await skipZeros(source, offset, end, signal);
    if (next === undefined) break;
    const place = { index, offset: next.offset, end, firstBytes: next.bytes };
    if (startsWithMagic(next.bytes, BUNDLE_MAGIC)) {
      const bundle = await readOffloadBundle(source, place, options);
      yield bundle;
      index += 1;
      offset = bundle.offset + bundle.length;
    } else if (startsWithMagic(next.bytes, COMPRESSED_MAGIC)) {
      const bundles = await readCompressedBundles(source, place, context);
      yield* bundles;
      index += bundles.length;
      offset = next.offset + (bundles[0]?.length ?? 0);
    } else {
      while (nextStart < starts.length && (starts[nextStart] ?? end) <= next.offset) nextStart += 1;
      const start = starts[nextStart];
      reportUnknownBytes(source.name, place, start ?? end, {
        isFirst: index === firstIndex && start === undefined,
        onFinding,
      });
      offset = start ?? end;
      if (start === undefined) return;
    }
  }
  if (index === firstIndex) {
    throw new FormatError("BAD_MAGIC", "there are only zero bytes", {
      file: source.name,
      field: `bundle[${firstIndex}].magic`,
      offset: extent.offset,
      expected: `${BUNDLE_MAGIC} or ${COMPRESSED_MAGIC}`,
    });
  }
}

/** The first byte from `offset` on that is not zero, with what follows it. */
async function skipZeros(
  source: Source,
  offset: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<{ readonly offset: number; readonly bytes: Uint8Array } | undefined> {
  let blockSize = FIRST_BLOCK;
  for (let at = offset; at < end; blockSize = Math.min(blockSize * 4, LARGEST_BLOCK)) {
    const block = await source.read(at, Math.min(blockSize, end - at), { signal });
    const start = firstNonZero(block);
    if (start === undefined) {
      at += block.length;
      continue;
    }
    const found = at + start;
    // Enough to tell what it is, even when it begins at the end of the block.
    const needed = Math.min(BUNDLE_MAGIC.length + 8, end - found);
    const bytes =
      block.length - start >= needed
        ? block.subarray(start)
        : await source.read(found, Math.min(FIRST_BLOCK, end - found), { signal });
    return { offset: found, bytes };
  }
  return undefined;
}

function firstNonZero(bytes: Uint8Array): number | undefined {
  for (let index = 0; index < bytes.length; index++) if (bytes[index] !== 0) return index;
  return undefined;
}

function reportUnknownBytes(
  file: string,
  place: {
    readonly index: number;
    readonly offset: number;
    readonly end: number;
    readonly firstBytes: Uint8Array;
  },
  until: number,
  how: { readonly isFirst: boolean; readonly onFinding: OnFinding | undefined },
): void {
  const { index, offset, end, firstBytes } = place;
  const field = `bundle[${index}].magic`;
  const rest = firstBytes.subarray(0, end - offset);
  if (
    [BUNDLE_MAGIC, COMPRESSED_MAGIC].some(
      (magic) => rest.length < magic.length && startsLikeMagic(rest, magic),
    )
  ) {
    throw new FormatError("TRUNCATED", "the data ends inside a bundle's magic", {
      file,
      field,
      offset,
      found: `${rest.length} bytes`,
    });
  }
  if (startsWithMagic(firstBytes, OFFLOAD_BINARY_MAGIC)) {
    how.onFinding?.({
      severity: "warning",
      code: "UNKNOWN_CONTAINER",
      message: "the container of LLVM's new offloading driver (10 FF 10 AD) is not read",
      file,
      field,
      offset,
    });
    return;
  }
  if (how.isFirst) {
    throw new FormatError("BAD_MAGIC", "this is no offload bundle", {
      file,
      field,
      offset,
      expected: `${BUNDLE_MAGIC} or ${COMPRESSED_MAGIC}`,
      found: toHex(firstBytes.subarray(0, 8)),
    });
  }
  how.onFinding?.({
    severity: "warning",
    code: until === end ? "TRAILING_BYTES" : "UNKNOWN_BYTES",
    message: `${until - offset} bytes ${until === end ? "after the last bundle" : "between bundles"} are no bundle`,
    file,
    field,
    offset,
  });
}
