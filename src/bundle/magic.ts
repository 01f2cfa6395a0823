/** Comparing the first bytes of something with a magic of ASCII characters. */

export function startsWithMagic(bytes: Uint8Array, magic: string): boolean {
  return bytes.length >= magic.length && startsLikeMagic(bytes, magic);
}

/** Whether `bytes` are a magic, or begin like one and end before it does. */
export function startsLikeMagic(bytes: Uint8Array, magic: string): boolean {
  const length = Math.min(bytes.length, magic.length);
  for (let index = 0; index < length; index++) if (bytes[index] !== magic.charCodeAt(index)) return false;
  return length > 0;
}
