import { type Extent, extentEnd } from "../bytes/extent.ts";
import { FormatError } from "../errors/errors.ts";
import type { Source } from "../source/source.ts";
import { checkOrdinal } from "./scheme.ts";

/** Bytes of the number of kernels, at the start of the area. */
export const COUNT_SIZE = 4;
/** Bytes of a frame's size, in front of each frame. */
export const FRAME_SIZE_SIZE = 4;

/** Frames up to this size on average are walked through windows of this size, others size by size. */
const SMALL_FRAME = 8192;
const WINDOW_SIZE = 262144;

/** Bytes of the area that were read last while walking. */
interface Window {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

interface SignalOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Finds the frames of an area by walking their sizes, as far as they are asked for, and remembers them. */
export class FrameWalk {
  readonly #source: Source;
  readonly #area: Extent;
  #count: number | undefined;
  /** Frames found by walking so far; the next size stands at `#walked`. */
  readonly #frames: Extent[] = [];
  #walked: number;
  /** Kept from one walk to the next: kernels asked for in order find their sizes in it. */
  #window: Window = { offset: 0, bytes: new Uint8Array() };
  #walk: Promise<void> = Promise.resolve();

  constructor(source: Source, area: Extent) {
    this.#source = source;
    this.#area = area;
    this.#walked = area.offset + COUNT_SIZE;
  }

  /** The frames found so far, by ordinal. */
  get frames(): readonly Extent[] {
    return this.#frames;
  }

  /** How many frames the area says that it has. */
  async count(options: SignalOptions = {}): Promise<number> {
    if (this.#count !== undefined) return this.#count;
    const count = readUint32(await this.#source.read(this.#area.offset, COUNT_SIZE, options));
    if (count * FRAME_SIZE_SIZE > this.#area.size - COUNT_SIZE) {
      throw new FormatError("COUNT_TOO_LARGE", "the area cannot hold so many kernels", {
        file: this.#source.name,
        field: "number of kernels",
        offset: this.#area.offset,
        expected: `at most ${Math.floor((this.#area.size - COUNT_SIZE) / FRAME_SIZE_SIZE)}`,
        found: count,
      });
    }
    this.#count = count;
    return count;
  }

  /** Finds a frame by walking the sizes before it. */
  async locate(
    ordinal: number,
    options: SignalOptions & { readonly id?: string | undefined },
  ): Promise<Extent> {
    const count = await this.count(options);
    checkOrdinal(ordinal, count, { file: this.#source.name, id: options.id });
    const frame = await this.walkTo(ordinal, options);
    this.#checkRoom(ordinal, frame, count);
    return frame;
  }

  /** One walk at a time; a failed one leaves the frames found so far and can be tried again. */
  async walkTo(ordinal: number, options: SignalOptions): Promise<Extent> {
    const walk = this.#walk.catch(() => undefined).then(() => this.#walkFrames(ordinal, options));
    this.#walk = walk;
    await walk;
    const frame = this.#frames[ordinal];
    if (!frame) throw new RangeError(`ordinal ${ordinal} was not walked`);
    return frame;
  }

  async #walkFrames(ordinal: number, options: SignalOptions): Promise<void> {
    while (this.#frames.length <= ordinal) {
      options.signal?.throwIfAborted();
      const index = this.#frames.length;
      if (this.#walked + FRAME_SIZE_SIZE > extentEnd(this.#area)) {
        throw new FormatError("OUT_OF_BOUNDS", "the area ends before this frame's size", {
          file: this.#source.name,
          field: `size of frame ${index}`,
          offset: this.#walked,
          expected: `an end of at most ${extentEnd(this.#area)}`,
          found: this.#walked + FRAME_SIZE_SIZE,
        });
      }
      const size = readUint32(await this.#readSize(options));
      this.#frames.push(this.checkFrame(index, this.#walked + FRAME_SIZE_SIZE, size));
      this.#walked += FRAME_SIZE_SIZE + size;
    }
  }

  /**
   * The four bytes of the next frame's size. Where frames are small, one read brings the sizes of many of them: a
   * hundred thousand reads of four bytes would take seconds.
   */
  async #readSize(options: SignalOptions): Promise<Uint8Array> {
    const start = this.#walked - this.#window.offset;
    if (start >= 0 && start + FRAME_SIZE_SIZE <= this.#window.bytes.length)
      return this.#window.bytes.subarray(start);
    const averageFrame = this.#area.size / Math.max(1, this.#count ?? 1);
    const wanted = averageFrame <= SMALL_FRAME ? WINDOW_SIZE : FRAME_SIZE_SIZE;
    const length = Math.min(wanted, extentEnd(this.#area) - this.#walked);
    const bytes = await this.#source.read(this.#walked, length, { signal: options.signal });
    this.#window = { offset: this.#walked, bytes };
    return bytes;
  }

  /** The frames after this one need at least their sizes' bytes: without a walk, it shows a count that is too large. */
  #checkRoom(ordinal: number, frame: Extent, count: number): void {
    const left = extentEnd(this.#area) - extentEnd(frame);
    const needed = (count - ordinal - 1) * FRAME_SIZE_SIZE;
    if (needed <= left) return;
    throw new FormatError("COUNT_TOO_LARGE", "the area ends before the frames that it should hold", {
      file: this.#source.name,
      field: "number of kernels",
      offset: this.#area.offset,
      expected: `at most ${ordinal + 1 + Math.floor(left / FRAME_SIZE_SIZE)}`,
      found: count,
    });
  }

  /** The extent of a frame, once it is known to lie in the area. */
  checkFrame(ordinal: number, offset: number, size: number): Extent {
    if (offset + size > extentEnd(this.#area)) {
      throw new FormatError("OUT_OF_BOUNDS", "the frame reaches past the end of the kernels' area", {
        file: this.#source.name,
        field: `size of frame ${ordinal}`,
        offset: offset - FRAME_SIZE_SIZE,
        expected: `at most ${extentEnd(this.#area) - offset}`,
        found: size,
      });
    }
    return { offset, size };
  }
}

/** The little-endian u32 that `bytes` begin with. */
export function readUint32(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
}
