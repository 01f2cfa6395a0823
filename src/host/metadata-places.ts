import type { Extent } from "../bytes/extent.ts";
import { isKpackError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import { readHipkMetadata } from "./hipk-metadata.ts";
import { addressTester, type HostLayout, type HostSection, sectionOfAddress } from "./host-layout.ts";
import type { Wrapper } from "./wrappers.ts";

/** Where the runtime finds HIPK metadata, of the places to which a converted binary's wrappers point. */
export interface MetadataPlaces {
  /** Wrappers that point elsewhere lead the runtime to no metadata. */
  readonly addresses: ReadonlySet<number>;
  /** The metadata, up to the end of its section; where no wrapper points to any, the section that should have it. */
  readonly extent: Extent | undefined;
}

/** Places that are looked at: converters make one, and with pointers that were damaged there are any number. */
const MOST_PLACES = 64;
/** Bytes that are tried to decode: metadata is small, and what follows it may be large. */
const WINDOWS = [1 << 16, 1 << 20] as const;

/** Follows the wrappers' pointers, each place once, those first to which most wrappers point. */
export async function findMetadata(
  source: Source,
  layout: HostLayout,
  wrappers: readonly Wrapper[],
  options: {
    readonly metadataSection: HostSection | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<MetadataPlaces> {
  const { metadataSection: section, signal } = options;
  const addresses = new Set<number>();
  let extent: Extent | undefined;
  for (const address of mostUsed(layout, wrappers)) {
    const place = extentAt(layout, address);
    if (place === undefined || !(await holdsMetadata(source, place, signal))) continue;
    addresses.add(address);
    extent ??= place;
  }
  if (section === undefined) return { addresses, extent };
  // Who points there is not lost: damaged metadata is said when it is read.
  if (section.address > 0 && section.fileSize > 0) addresses.add(section.address);
  return { addresses, extent: extent ?? { offset: section.fileOffset, size: section.fileSize } };
}

function mostUsed(layout: HostLayout, wrappers: readonly Wrapper[]): readonly number[] {
  const isInFile = addressTester(layout);
  const uses = new Map<number, number>();
  for (const { pointsTo } of wrappers) {
    if (pointsTo !== undefined && isInFile(pointsTo)) uses.set(pointsTo, (uses.get(pointsTo) ?? 0) + 1);
  }
  return [...uses]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MOST_PLACES)
    .map(([address]) => address);
}

function extentAt(layout: HostLayout, address: number): Extent | undefined {
  const section = sectionOfAddress(layout, address);
  if (section === undefined) return undefined;
  const skipped = address - section.address;
  return { offset: section.fileOffset + skipped, size: section.fileSize - skipped };
}

async function holdsMetadata(
  source: Source,
  { offset, size }: Extent,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (const window of WINDOWS) {
    try {
      await readHipkMetadata(source, { metadata: { offset, size: Math.min(size, window) } }, { signal });
      return true;
    } catch (error) {
      if (!isKpackError(error) || error.name === "AccessError") throw error;
    }
    if (size <= window) return false;
  }
  return false;
}
