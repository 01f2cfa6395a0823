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

const entries = [...(await openArchive(await openFile(path))).entries];
const ours: number[] = [];
const reference: number[] = [];
let mostExtraBytes = 0;
for (let round = 0; round < rounds + 20; round++) {
  const entry = entries[(round * 7919) % entries.length];
  if (!entry) throw new RangeError("the archive is empty");
  const reads: [number, number][] = [];
  const start = performance.now();
  const archive = await openArchive(
    counted(await openFile(path), (offset, length) => reads.push([offset, length])),
  );
  const kernel = await archive.readKernel(entry.binaryKey, entry.target);
  await archive[Symbol.asyncDispose]();
  const ownTime = performance.now() - start;
  const total = reads.reduce((sum, [, length]) => sum + length, 0);
  const stored = (await extentSize(path, entry.ordinal)) + archive.source.size - archive.tocOffset;
  mostExtraBytes = Math.max(mostExtraBytes, total - stored);

  // The reference reads the same extents and decodes the frame, which the last read ends with.
  const again = performance.now();
  const file = await open(path);
  let last = Buffer.alloc(0);
  for (const [offset, length] of reads) {
    last = Buffer.allocUnsafeSlow(length);
    await file.read(last, 0, length, offset);
  }
  const frame = last.subarray(last.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd])));
  const decoded = await decompress(frame, { chunkSize: kernel.length, maxOutputLength: kernel.length });
  await file.close();
  const referenceTime = performance.now() - again;
  if (!decoded.equals(kernel)) throw new Error("the two ways disagree");
  if (round < 20) continue; // warming up
  ours.push(ownTime);
  reference.push(referenceTime);
}

async function extentSize(archivePath: string, ordinal: number): Promise<number> {
  await using archive = await openArchive(await openFile(archivePath));
  const extents = await archive.decompressor.storedExtents(ordinal);
  return extents.reduce((sum, { size }) => sum + size, 0);
}

const middle = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const ratios = ours.map((value, index) => value / (reference[index] ?? 1));
console.log(
  JSON.stringify({ ours: middle(ours), reference: middle(reference), ratio: middle(ratios), mostExtraBytes }),
);
