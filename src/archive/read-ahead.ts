import { mapOrdered } from "../bytes/map-ordered.ts";
import { KernelReaders } from "../scheme/kernel-readers.ts";
import type { KernelDecompressor, KernelReader } from "../scheme/scheme.ts";
import type { ArchiveEntry } from "./archive-entry.ts";

/** An entry and its kernel. */
export interface KernelRead {
  readonly entry: ArchiveEntry;
  readonly bytes: Uint8Array;
}

type Read = (entry: ArchiveEntry, reader?: KernelReader) => Promise<Uint8Array>;
type EntryBatch = [ArchiveEntry, ...ArchiveEntry[]];

/** Reading ahead reaches at most so many times further because kernels share frames. */
const MOST_SHARING = 3;
const DEFAULT_JOBS = 4;
/** Where several decodings run at once on large memory, more of them only push each other out of the processor's cache. */
const JOBS_ON_LARGE_MEMORY = 3;

/** Reads kernels in the order of their entries, some of them ahead. */
export async function* readAhead(
  decompressor: KernelDecompressor,
  entries: Iterable<ArchiveEntry>,
  read: Read,
  options: {
    readonly jobs?: number | undefined;
    readonly reuseMemory?: boolean | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): AsyncGenerator<KernelRead> {
  const { jobs, signal } = options;
  const batches = options.reuseMemory ? batchesOf(decompressor, entries) : undefined;
  if (batches) {
    yield* readBatches(decompressor, batches, read, jobs ?? JOBS_ON_LARGE_MEMORY, signal);
    return;
  }
  const sharing = Math.min(MOST_SHARING, Math.max(1, Math.ceil(decompressor.kernelsPerFrame ?? 1)));
  const ahead = (jobs ?? (sharing > 1 ? JOBS_ON_LARGE_MEMORY : DEFAULT_JOBS)) * sharing;
  const readOne = async (entry: ArchiveEntry): Promise<KernelRead> => ({ entry, bytes: await read(entry) });
  yield* mapOrdered(entries, ahead, readOne, signal);
}

/** Each batch by one reader, whose memory it has until all its kernels were looked at. */
async function* readBatches(
  decompressor: KernelDecompressor,
  batches: Iterable<EntryBatch>,
  read: Read,
  jobs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<KernelRead> {
  using readers = new KernelReaders(decompressor);
  const readFirst = async ([entry, ...others]: EntryBatch): Promise<
    KernelRead & { readonly others: readonly ArchiveEntry[]; readonly reader: KernelReader }
  > => {
    const reader = readers.take();
    return { entry, bytes: await read(entry, reader), others, reader };
  };
  for await (const { entry, bytes, others, reader } of mapOrdered(batches, jobs, readFirst, signal)) {
    yield { entry, bytes };
    for (const other of others) yield { entry: other, bytes: await read(other, reader) };
    readers.give(reader);
  }
}

/**
 * Entries that one reader should read one after another, so that it decodes their frame once. Undefined where frames
 * would be met again later: then it is better to decode them for all and to keep them.
 */
function batchesOf(
  decompressor: KernelDecompressor,
  entries: Iterable<ArchiveEntry>,
): Iterable<EntryBatch> | undefined {
  if (!decompressor.frameOf) return singles(entries);
  const batches: EntryBatch[] = [];
  const met = new Set<number>();
  let last: number | undefined;
  for (const entry of entries) {
    const frame = decompressor.frameOf(entry.ordinal);
    const batch = frame === undefined || frame !== last ? undefined : batches.at(-1);
    if (batch) batch.push(entry);
    else {
      if (frame !== undefined && met.has(frame)) return undefined;
      if (frame !== undefined) met.add(frame);
      batches.push([entry]);
    }
    last = frame;
  }
  return batches;
}

function* singles(entries: Iterable<ArchiveEntry>): Generator<EntryBatch> {
  for (const entry of entries) yield [entry];
}
