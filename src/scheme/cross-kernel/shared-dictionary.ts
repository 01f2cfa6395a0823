import type { DictionaryWindow } from "./dictionary-windows.ts";

/** zstd takes a dictionary that begins with these bytes for a trained one. */
const TRAINED_DICTIONARY_MAGIC = 0xec30a437;

/** Whether zstd would not take the bytes as raw content. */
export function looksTrained(dictionary: Uint8Array): boolean {
  if (dictionary.length < 4) return false;
  return (
    new DataView(dictionary.buffer, dictionary.byteOffset, 4).getUint32(0, true) === TRAINED_DICTIONARY_MAGIC
  );
}

/**
 * Puts the windows together, the best last: zstd writes small offsets, to what stands near, in fewer bits.
 * Each kernel is read once.
 *
 * @param windows best first
 */
export async function buildDictionary(
  windows: readonly DictionaryWindow[],
  readKernel: (kernel: number) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const size = windows.reduce((sum, window) => sum + window.size, 0);
  const dictionary = new Uint8Array(size);
  const places = new Map<DictionaryWindow, number>();
  let position = 0;
  for (const window of windows.toReversed()) {
    places.set(window, position);
    position += window.size;
  }
  for (const [kernel, own] of Map.groupBy(windows, (window) => window.kernel)) {
    const bytes = await readKernel(kernel);
    for (const window of own) {
      dictionary.set(bytes.subarray(window.offset, window.offset + window.size), places.get(window) ?? 0);
    }
  }
  if (!looksTrained(dictionary)) return dictionary;
  const shifted = new Uint8Array(size + 4);
  shifted.set(dictionary, 4);
  return shifted;
}
