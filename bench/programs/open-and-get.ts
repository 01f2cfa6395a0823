/**
 * In one process, for many kernels: opening an archive and getting one, against reading the same bytes and decoding
 * one zstd frame. Prints medians of both in milliseconds, and the most bytes that one access read.
 */
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { openArchive, openFile, type ReadOptions, type Source } from "rocm-kpack/node";

const decompress = promisify(zstdDecompress);
const [path = "", roundsText = "200"] = process.argv.slice(2);
const rounds = Number(roundsText);

/** A source that counts what is read through it. */
function counted(source: Source, onRead: (offset: number, length: number) => void): Source {
  return {
    name: source.name,
    size: source.size,
    read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      onRead(offset, length);
      return source.read(offset, length, options);
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}

type Reads = readonly (readonly [number, number])[];

/** Opens the archive, gets the kernel; tells what was read. */
async function withLibrary(
  binaryKey: string,
  target: string,
  onRead: (offset: number, length: number) => void,
): Promise<Uint8Array> {
  await using archive = await openArchive(counted(await openFile(path), onRead));
  return await archive.readKernel(binaryKey, target);
}

/** Reads the same bytes and decodes the frame that the last of them end with. */
async function byHand(reads: Reads, size: number): Promise<Uint8Array> {
  const file = await open(path);
  let last = Buffer.alloc(0);
  for (const [offset, length] of reads) {
    last = Buffer.allocUnsafeSlow(length);
    await file.read(last, 0, length, offset);
  }
  await file.close();
  return await decompress(last.subarray(4), { chunkSize: size, maxOutputLength: size });
}

async function timed(task: () => Promise<Uint8Array>): Promise<number> {
  const start = performance.now();
  await task();
  return performance.now() - start;
}

const whole = await openArchive(await openFile(path));
const entries = [...whole.entries];
const ours: number[] = [];
const reference: number[] = [];
let mostExtraBytes = 0;
for (let round = -20; round < rounds; round++) {
  const entry = entries[((round + 20) * 7919) % entries.length];
  if (!entry) throw new RangeError("the archive is empty");
  const { binaryKey, target, ordinal } = entry;
  const reads: [number, number][] = [];
  const kernel = await withLibrary(binaryKey, target, (offset, length) => reads.push([offset, length]));
  if (!Buffer.from(kernel).equals(await byHand(reads, kernel.length)))
    throw new Error("the two ways disagree");
  const needed =
    (await whole.decompressor.storedExtents(ordinal)).reduce((sum, { size }) => sum + size, 0) +
    whole.source.size -
    whole.tocOffset;
  mostExtraBytes = Math.max(mostExtraBytes, reads.reduce((sum, [, length]) => sum + length, 0) - needed);
  const library = (): Promise<number> => timed(() => withLibrary(binaryKey, target, () => undefined));
  const hand = (): Promise<number> => timed(() => byHand(reads, kernel.length));
  // Whoever comes second finds the bytes in the processor's cache, so they take turns.
  const [first, second] = round % 2 === 0 ? [await library(), await hand()] : [await hand(), await library()];
  if (round < 0) continue; // warming up
  ours.push(round % 2 === 0 ? first : second);
  reference.push(round % 2 === 0 ? second : first);
}
await whole[Symbol.asyncDispose]();

const middle = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
console.log(
  JSON.stringify({
    ours: middle(ours),
    reference: middle(reference),
    ratio: middle(ours) / middle(reference),
    mostExtraBytes,
  }),
);
