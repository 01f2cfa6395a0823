import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { memorySource, nodeCodecs, none, openArchive, zstdPerKernel } from "../../src/node.ts";
import { encodeValue } from "../../src/msgpack/message-pack-writer.ts";
import { expectedArchives, fixtureBytes } from "../support/archive-fixtures.ts";
import {
  boundedCodecs,
  fuzzArchives,
  type FuzzBase,
  KERNEL_LIMIT,
  readableKernels,
  refused,
} from "../support/archive-fuzz.ts";
import { kernelToWrite, sampleKernel, sha256, writeToMemory } from "../support/kernels.ts";

const LARGEST_FILE = 100_000;

interface Base extends FuzzBase {
  /** By ordinal, where the archive holds hashes of its kernels. */
  readonly hashes: ReadonlySet<string>;
  readonly kernels: ReadonlyMap<string, string>;
}

const schemes = [none, zstdPerKernel({ codecs: boundedCodecs })];

async function baseOf(name: string, bytes: Uint8Array): Promise<Base> {
  const archive = await openArchive(memorySource(bytes), { schemes });
  const kernels = new Map<string, string>();
  const hashes = new Set<string>();
  for await (const { entry, bytes: kernel } of archive.readKernels()) {
    kernels.set(entry.id, sha256(kernel));
    const hash = archive.kernelHash(entry.ordinal);
    if (hash !== undefined) hashes.add(hash);
  }
  return { name, bytes, tocOffset: archive.tocOffset, hashes, kernels };
}

async function bases(): Promise<readonly Base[]> {
  const found: Base[] = [];
  for (const [path, { expect, size }] of expectedArchives)
    if (expect === "ok" && size < LARGEST_FILE) found.push(await baseOf(path, fixtureBytes(path)));
  const kernels = [300, 0, 2000, 20, 5000].map((size, index) =>
    kernelToWrite(
      sampleKernel(index, size),
      {
        binaryKey: `lib/k${index}.so#0`,
        target: "gfx942",
        fields: [{ name: "metadata", value: encodeValue({ a: [1, 2.5, "x"], b: new Uint8Array(9) }) }],
      },
      { binaryKey: `lib/k${index}.so#0`, target: "gfx90a:xnack-" },
    ),
  );
  for (const scheme of [none, zstdPerKernel({ codecs: nodeCodecs })])
    for (const extraFields of [true, false]) {
      const { bytes } = await writeToMemory(kernels, { scheme, extraFields });
      const name = `own ${scheme.name}${extraFields ? " with extra fields" : ""}`;
      // The own ones as often as the fixtures: only with hashes can wrong bytes be told from right ones.
      for (let copy = 0; copy < 4; copy++) found.push(await baseOf(name, bytes));
    }
  return found;
}

/** Opens and reads everything there is. What is refused must be refused by an error of the library. */
async function readEverything(bytes: Uint8Array, base: Base, onlyArea: boolean): Promise<number> {
  const limits = { kernelSize: KERNEL_LIMIT, tocSize: KERNEL_LIMIT };
  const archive = await openArchive(memorySource(bytes), { schemes, limits }).catch(refused);
  if (!archive) return 0;
  for (const entry of archive.entries) {
    entry.encodedFields();
    try {
      entry.fields();
    } catch (error) {
      refused(error);
    }
    assert.equal(archive.find(entry.binaryKey, entry.target)?.index, entry.index);
  }
  let read = 0;
  for await (const { entry, kernel } of readableKernels(archive)) {
    read += 1;
    const hash = archive.kernelHash(entry.ordinal);
    if (hash === undefined || !base.hashes.has(hash)) continue;
    const digest = sha256(kernel);
    if (onlyArea) assert.equal(digest, base.kernels.get(entry.id), "other bytes than were packed");
    else assert.ok([...base.kernels.values()].includes(digest), "bytes that were never packed");
  }
  await archive.decompressor.verifyArea?.(() => undefined)?.catch(refused);
  return read;
}

describe("mutated archives", () => {
  it("give a typed error or right bytes: no other exception, no hang, no huge allocation", async (context) => {
    await fuzzArchives(
      context,
      await bases(),
      ({ bytes, tocOffset }, random) => [random() < 0.7 ? tocOffset : 0, bytes.length],
      readEverything,
    );
  });
});
