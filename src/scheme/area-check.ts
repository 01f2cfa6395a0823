import { type Extent, extentEnd } from "../bytes/extent.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";

/** Size of the fields of the header: nothing else may begin before it ends. */
export const HEADER_FIELDS_SIZE = 16;
/** Where the blob area begins in what ROCm's tools and we write. */
export const USUAL_AREA_START = 64;

/** Throws unless `extent` lies between the header and the TOC. Sizes are bytes, offsets absolute. */
export function checkInsideArea(
  extent: Extent,
  area: { readonly file: string; readonly tocOffset: number; readonly fileSize: number },
  field: string,
): void {
  const place = { file: area.file, field, offset: extent.offset };
  if (extent.offset < HEADER_FIELDS_SIZE) {
    throw new FormatError("OVERLAP", "the bytes lie inside the header", {
      ...place,
      expected: `an offset from ${HEADER_FIELDS_SIZE} on`,
      found: extent.offset,
    });
  }
  if (extentEnd(extent) > area.fileSize) {
    throw new FormatError("OUT_OF_BOUNDS", "the bytes lie past the end of the file", {
      ...place,
      expected: `an end of at most ${area.fileSize}`,
      found: extentEnd(extent),
      hint: "The file may be cut short: compare its size with the original.",
    });
  }
  if (extentEnd(extent) > area.tocOffset) {
    throw new FormatError("OVERLAP", "the bytes reach into the table of contents", {
      ...place,
      expected: `an end of at most ${area.tocOffset}`,
      found: extentEnd(extent),
    });
  }
}

/**
 * Reports extents that overlap, and bytes between `start` and `end` that none of them covers.
 * Two equal extents are one kernel stored once, no overlap.
 */
export function reportCoverage(
  extents: readonly Extent[],
  start: number,
  end: number,
  file: string,
  onFinding: OnFinding,
): void {
  // Extents out of bounds are said elsewhere; here they would make up bytes that nobody has.
  const sorted = extents
    .filter((extent) => extent.size > 0 && extentEnd(extent) <= end)
    .toSorted((a, b) => a.offset - b.offset || a.size - b.size);
  let position = start;
  let previous: Extent | undefined;
  let overlaps = 0;
  let firstOverlap: Extent | undefined;
  let unused = 0;
  for (const extent of sorted) {
    if (previous && extent.offset === previous.offset && extent.size === previous.size) continue;
    if (extent.offset < position && previous !== undefined) {
      overlaps += 1;
      firstOverlap ??= extent;
    }
    unused += Math.max(0, extent.offset - position);
    position = Math.max(position, extentEnd(extent));
    previous = extent;
  }
  unused += Math.max(0, end - position);
  if (firstOverlap) {
    onFinding({
      severity: "warning",
      code: "EXTENTS_OVERLAP",
      message: `${overlaps} stored kernel(s) share bytes with another one without being the same`,
      file,
      offset: firstOverlap.offset,
    });
  }
  if (unused > 0) {
    onFinding({
      severity: "warning",
      code: "UNUSED_BYTES",
      message: `${unused} bytes of the blob area belong to no kernel`,
      file,
      offset: start,
    });
  }
}
