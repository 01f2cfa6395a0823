import type { Extent } from "../bytes/extent.ts";
import type { OnFinding } from "../errors/finding.ts";
import { FormatError } from "../errors/errors.ts";
import type { OnProgress } from "../errors/progress.ts";
import type { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import type { MessagePackValue } from "../msgpack/message-pack-value.ts";
import type { Limits } from "../bytes/limits.ts";
import type { ReadOptions, Source } from "../source/source.ts";

/**
 * A compression scheme owns the blob area of an archive and the table-of-contents fields that describe it.
 * Writing is map and reduce: `prepareKernel` runs for many kernels at once, `finalize` once, over all of them.
 * Archives find their scheme in a list that is passed in; see {@link findScheme}.
 *
 * `Input` is what the map hands to the reduce; nothing but the scheme looks into it.
 */
export interface CompressionScheme<Input = unknown> {
  /** As in the TOC field `compression_scheme`. */
  readonly name: string;
  /** Names of the TOC fields that belong to the scheme. A rewrite in another scheme leaves them out. */
  readonly fieldNames: readonly string[];
  createCompressor(context: CompressorContext): KernelCompressor<Input>;
  /**
   * Opens the scheme from its TOC fields. Must not read the blob area: that is left to the first kernel.
   * @throws FormatError when a field is missing or wrong.
   */
  openDecompressor(fields: SchemeFields, context: DecompressorContext): KernelDecompressor;
}

/** What a compressor is told once. */
export interface CompressorContext {
  /** False: write nothing that the scheme's original definition does not have. */
  readonly extraFields: boolean;
  /** How many calls of `prepareKernel` run at once, and how many jobs `finalize` should run at once. */
  readonly jobs: number;
  readonly limits: Limits;
}

/** One kernel on its way into an archive. */
export interface KernelInput {
  /** For messages: binary key and target. */
  readonly id: string;
  readonly target: string;
  readonly binaryKey: string;
  /** The kernel. Valid until `prepareKernel` has settled, then the memory is used again: copy what is kept. */
  readonly bytes: Uint8Array;
  /** True where the bytes stay as they are for good after all, and keep little else in memory. @default false */
  readonly isStable?: boolean | undefined;
  /** Reads the kernel once more from where it came from, for schemes that need it in `finalize`. */
  read(options?: ReadOptions): Promise<Uint8Array>;
}

/** The writing side of a scheme, for one archive. */
export interface KernelCompressor<Input = unknown> {
  /** Map: one kernel, many at once. What it returns is handed to `finalize`, in ordinal order. */
  prepareKernel(kernel: KernelInput, options: { readonly signal?: AbortSignal | undefined }): Promise<Input>;
  /**
   * Reduce: runs once, alone. Takes the inputs in ordinal order, as they become ready, and writes the blob area.
   * @returns the scheme's TOC fields, in the order in which they are to be written.
   */
  finalize(inputs: AsyncIterable<Input>, area: BlobArea, options: FinalizeOptions): Promise<NewSchemeFields>;
}

/** How the reduce phase is run. */
export interface FinalizeOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/** The TOC fields that a scheme writes, in their order. */
export type NewSchemeFields = Readonly<Record<string, MessagePackValue>>;

/** The part of an archive that a scheme writes. It knows where it lies in the file. */
export interface BlobArea {
  /** Absolute offset of the area's first byte. */
  readonly start: number;
  /** Absolute offset of the next byte. */
  readonly position: number;
  /** Appends bytes and returns their absolute extent. The bytes may be changed once the call has resolved. */
  write(bytes: Uint8Array): Promise<Extent>;
  /** Overwrites bytes that were written before, at an absolute offset: a count that is known only at the end. */
  patch(offset: number, bytes: Uint8Array): Promise<void>;
}

/** The TOC fields of a scheme, when an archive is read. */
export interface SchemeFields {
  has(name: string): boolean;
  /** The value, or undefined when the TOC has no such key. */
  get(name: string): MessagePackValue | undefined;
  /** A reader that stands at the value. @throws FormatError `MISSING_KEY` */
  reader(name: string): MessagePackReader;
}

/** What a decompressor is told once. */
export interface DecompressorContext {
  readonly source: Source;
  /** The blob area ends here: where the TOC begins. */
  readonly tocOffset: number;
  readonly limits: Limits;
  readonly onFinding: OnFinding;
}

/** What a decompressor is told of one kernel. */
export interface DecompressOptions {
  /** The TOC's `original_size`, where it has one. A scheme checks what it can check before it allocates. */
  readonly expectedSize?: number | undefined;
  /** For messages: binary key and target. */
  readonly id?: string | undefined;
  /** Receives what is odd about the stored bytes though they can be read. */
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The reading side of a scheme, for one archive. */
export interface KernelDecompressor {
  /** How many kernels the area holds, by the scheme's own count. */
  kernelCount(options?: { readonly signal?: AbortSignal | undefined }): Promise<number>;
  /**
   * The bytes of the kernel with this ordinal; the caller must not change them.
   * @throws FormatError `ORDINAL_OUT_OF_RANGE`, or what is wrong with the kernel's bytes.
   */
  decompressKernel(ordinal: number, options?: DecompressOptions): Promise<Uint8Array>;
  /**
   * A reader that decodes one kernel after another into memory of its own. For schemes that profit from it: touching
   * fresh memory for each kernel takes longer than decoding it.
   */
  openReader?(): KernelReader;
  /** Where the stored bytes of the kernel lie: everything that is read for it alone. */
  storedExtents(
    ordinal: number,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<readonly Extent[]>;
  /**
   * How many kernels one decoding gives on average; more than 1 when kernels share frames. Whoever reads ahead has to
   * look so many times further, or several jobs wait for one frame.
   */
  readonly kernelsPerFrame?: number | undefined;
  /**
   * The frame that the kernel is in; undefined where it is in several. Readers keep the frame that they decoded last, so
   * kernels of one frame should be read one after another. Only where kernels share frames.
   */
  frameOf?(ordinal: number): number | undefined;
  /** Checks the area as a whole: bounds, overlaps, unused bytes. What it finds goes to `onFinding`. */
  verifyArea?(onFinding: OnFinding, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Lets go of what is kept for the next kernel. Called when the archive is disposed of. */
  close?(): void;
  /** What is stored and who depends on whom, for schemes in which kernels share stored bytes. Reads nothing. */
  describeFrames?(): FrameMap;
}

/** Reads kernels one at a time; see {@link KernelDecompressor.openReader}. Can be used again after a failure. */
export interface KernelReader {
  /** As {@link KernelDecompressor.decompressKernel}, but the bytes are valid only until the next call. */
  decompressKernel(ordinal: number, options?: DecompressOptions): Promise<Uint8Array>;
  close(): void;
}

/** The stored frames of an archive and the kernels in them. */
export interface FrameMap {
  /** In an order in which the dictionaries of a frame stand behind it. */
  readonly frames: readonly FrameDescription[];
  /** By ordinal, the slices of decoded frames that make the kernel, in order. */
  readonly kernels: readonly (readonly FrameSlice[])[];
}

/** Bytes that are stored, and decoded, as one. */
export interface FrameDescription {
  /** Where the stored bytes lie in the file. */
  readonly extent: Extent;
  /** Decoded, in bytes. */
  readonly contentSize: number;
  /** Indexes of the frames that have to be decoded first. */
  readonly dictionaries: readonly number[];
}

/** A run of bytes of a frame's decoded content. */
export interface FrameSlice {
  readonly frame: number;
  readonly offset: number;
  readonly size: number;
}

/** The scheme with this name in a list of schemes. @throws FormatError `UNKNOWN_SCHEME` */
export function findScheme(
  schemes: readonly CompressionScheme[],
  name: string,
  place: { readonly file?: string | undefined },
): CompressionScheme {
  const scheme = schemes.find((candidate) => candidate.name === name);
  if (scheme === undefined) {
    throw new FormatError("UNKNOWN_SCHEME", "no such compression scheme is known here", {
      file: place.file,
      field: "compression_scheme",
      expected: schemes.map((candidate) => candidate.name).join(", "),
      found: name,
      hint: "The archive may need a newer version, or a scheme of its own that has to be passed in.",
    });
  }
  return scheme;
}

/** Throws unless `ordinal` is one of `count` kernels. */
export function checkOrdinal(
  ordinal: number,
  count: number,
  place: { readonly file: string; readonly id?: string | undefined },
): void {
  if (Number.isSafeInteger(ordinal) && ordinal >= 0 && ordinal < count) return;
  throw new FormatError("ORDINAL_OUT_OF_RANGE", "the archive has no kernel with this ordinal", {
    file: place.file,
    field: place.id === undefined ? "ordinal" : `ordinal of ${place.id}`,
    expected: count === 0 ? "none: there are no kernels" : `0 to ${count - 1}`,
    found: ordinal,
  });
}
