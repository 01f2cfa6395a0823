/** A run of bytes in a file: absolute offset and size, both in bytes. */
export interface Extent {
  readonly offset: number;
  readonly size: number;
}

export function extentEnd(extent: Extent): number {
  return extent.offset + extent.size;
}

/** Whether two extents share a byte. */
export function extentsOverlap(a: Extent, b: Extent): boolean {
  return a.size > 0 && b.size > 0 && a.offset < extentEnd(b) && b.offset < extentEnd(a);
}

/** `offset` rounded up to a multiple of `alignment`, which is a power of two or any positive integer. */
export function alignUp(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}

export function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
