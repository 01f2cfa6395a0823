import type { FrameMap } from "../scheme/scheme.ts";

/** The frames of an archive in which kernels share stored bytes, and who depends on whom. Sizes are bytes. */
export interface GraphInfo {
  /** The most frames that one kernel needs decoded: its own, their dictionaries, and theirs. */
  readonly depth: number;
  /** Stored bytes that no byte of a kernel depends on. */
  readonly unusedSize: number;
  readonly frames: readonly FrameInfo[];
}

/** One stored frame. */
export interface FrameInfo {
  readonly frame: number;
  readonly storedSize: number;
  /** Decoded. */
  readonly contentSize: number;
  /** Frames whose contents are its dictionary. */
  readonly dictionaries: readonly number[];
  /** How many frames have it as their dictionary. */
  readonly usedBy: number;
  /** Ordinals of the kernels that have a slice of it: several in a solid frame, none in a mere dictionary. */
  readonly kernels: readonly number[];
}

/** What a scheme says of an archive's frames, summed up. */
export function describeGraph(map: FrameMap): GraphInfo {
  const usedBy = map.frames.map(() => 0);
  const kernels = map.frames.map(() => new Set<number>());
  for (const { dictionaries } of map.frames)
    for (const dictionary of new Set(dictionaries)) usedBy[dictionary] = (usedBy[dictionary] ?? 0) + 1;
  map.kernels.forEach((slices, ordinal) => {
    for (const { frame } of slices) kernels[frame]?.add(ordinal);
  });
  const frames = map.frames.map(({ extent, contentSize, dictionaries }, frame) => ({
    frame,
    storedSize: extent.size,
    contentSize,
    dictionaries,
    usedBy: usedBy[frame] ?? 0,
    kernels: [...(kernels[frame] ?? [])],
  }));
  const depth = map.kernels.reduce((most, _, ordinal) => {
    const { own, dictionaries } = framesOf(map, ordinal);
    return Math.max(most, own.length + dictionaries.length);
  }, 0);
  return { depth, unusedSize: attributeFrames(map).unusedSize, frames };
}

/** The frames that hold a kernel, and those that have to be decoded before them, each once. */
export function framesOf(
  map: FrameMap,
  ordinal: number,
): { readonly own: readonly number[]; readonly dictionaries: readonly number[] } {
  const own = new Set((map.kernels[ordinal] ?? []).map(({ frame }) => frame));
  const needed = new Set(own); // grows while it is gone through
  for (const frame of needed)
    for (const dictionary of map.frames[frame]?.dictionaries ?? []) needed.add(dictionary);
  return { own: [...own], dictionaries: [...needed].filter((frame) => !own.has(frame)) };
}

/** Each kernel's part of all stored bytes. */
export interface AttributedSizes {
  /** By ordinal, in bytes; not whole numbers. */
  readonly kernels: readonly number[];
  /** Bytes that no byte of a kernel depends on. */
  readonly unusedSize: number;
}

/**
 * Divides the stored bytes among the kernels, so that the parts add up: a frame's bytes go to its kernels in proportion
 * to their slices' sizes; a dictionary's go to the frames that name it in proportion to their contents, and from there
 * on to their kernels. A frame that is both divides its bytes among both.
 */
export function attributeFrames(map: FrameMap): AttributedSizes {
  const weights = map.frames.map(() => 0);
  for (const { dictionaries, contentSize } of map.frames)
    for (const dictionary of dictionaries) weights[dictionary] = (weights[dictionary] ?? 0) + contentSize;
  for (const slices of map.kernels)
    for (const { frame, size } of slices) weights[frame] = (weights[frame] ?? 0) + size;
  // Dictionaries stand behind the frames that name them: from the end, each has all that it hands on.
  const costs = map.frames.map(({ extent }) => extent.size);
  const dependents = dependentsOf(map);
  let unusedSize = 0;
  for (let frame = map.frames.length - 1; frame >= 0; frame--) {
    const weight = weights[frame] ?? 0;
    const cost = costs[frame] ?? 0;
    if (weight === 0) unusedSize += cost;
    for (const dependent of weight === 0 ? [] : (dependents[frame] ?? [])) {
      const part = (map.frames[dependent]?.contentSize ?? 0) / weight;
      costs[dependent] = (costs[dependent] ?? 0) + cost * part;
    }
  }
  const kernels = map.kernels.map((slices) =>
    slices.reduce((sum, { frame, size }) => {
      const weight = weights[frame] ?? 0;
      return weight === 0 ? sum : sum + ((costs[frame] ?? 0) * size) / weight;
    }, 0),
  );
  return { kernels, unusedSize };
}

function dependentsOf(map: FrameMap): readonly (readonly number[])[] {
  const dependents: number[][] = map.frames.map(() => []);
  map.frames.forEach(({ dictionaries }, frame) => {
    for (const dictionary of dictionaries) dependents[dictionary]?.push(frame);
  });
  return dependents;
}
