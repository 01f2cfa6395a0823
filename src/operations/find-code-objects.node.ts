import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { NotFoundError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import { detectFile } from "../host/detect.ts";
import { type DeviceCode, type DeviceItem, readDeviceCode } from "../host/device-code.ts";
import { openFile } from "../source/file-source.node.ts";
import { memorySource } from "../source/memory-source.ts";
import { sliceSource } from "../source/slice-source.ts";
import type { Source } from "../source/source.ts";
import { matchesAnySelection } from "../target/target-id.ts";
import { CONVERTED_HINT, convertedFinding, foundInstead } from "./list-converted.ts";

export interface FindCodeObjectsOptions {
  /** A binary key of an archive; in a fat binary or bundle the index under which the runtime asks: `3` or `#3`. */
  readonly key?: string | undefined;
  /** The target that goes with the key, spelled as in the file. */
  readonly target?: string | undefined;
  /** Targets to look at: `gfx90a` takes every flag variant of it. @default all */
  readonly targets?: readonly string[] | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A code object that was found and not read yet. */
export interface CodeObjectPlace {
  readonly id: string;
  readonly binaryKey: string | undefined;
  readonly bundle: number | undefined;
  readonly indexes: readonly number[];
  readonly target: string;
  /** In bytes, as the file states it; undefined where it does not. */
  readonly size: number | undefined;
  open(): Promise<Source>;
}

/** A file whose code objects are known. The places are of use until it is disposed of. */
export class CodeObjectFile implements AsyncDisposable {
  readonly kind: "archive" | "fat-binary" | "bundle" | "code-object";
  readonly places: readonly CodeObjectPlace[];
  readonly #source: Source;

  constructor(kind: CodeObjectFile["kind"], places: readonly CodeObjectPlace[], source: Source) {
    this.kind = kind;
    this.places = places;
    this.#source = source;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }
}

/** Finds the code objects that the options choose, without reading them. */
export async function findCodeObjects(
  path: string,
  options: FindCodeObjectsOptions,
): Promise<CodeObjectFile> {
  const { onFinding, signal } = options;
  const source = await openFile(path);
  try {
    const detected = await detectFile(source, { signal });
    if (detected === "kpack") {
      const archive = await openArchive(source, { onFinding, signal });
      const entries = [...archive.entries].filter((entry) =>
        isChosen(options, entry.target, [entry.binaryKey]),
      );
      if (entries.length === 0) throw nothingChosen(path, options, archive.toc.entries.targetNames);
      return new CodeObjectFile(
        "archive",
        entries.map((entry) => placeOfEntry(archive, entry, signal)),
        source,
      );
    }
    const code = await readDeviceCode(source, { codecs: nodeCodecs, onFinding, signal });
    const items = code.items.filter((item) => isChosen(options, item.target, keysOf(item)));
    if (items.length === 0) {
      if (convertedFinding(code) && code.items.length === 0) throw converted(path, code);
      throw nothingChosen(path, options, [...new Set(code.items.map(({ target }) => target))]);
    }
    const kind = code.fatBinary ? "fat-binary" : detected === "code-object" ? "code-object" : "bundle";
    return new CodeObjectFile(
      kind,
      items.map((item) => placeOfItem(source, item, signal)),
      source,
    );
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}

function isChosen(options: FindCodeObjectsOptions, target: string, keys: readonly string[]): boolean {
  if (options.key !== undefined && !keys.includes(options.key)) return false;
  if (options.target !== undefined && target !== options.target) return false;
  return matchesAnySelection(target, options.targets);
}

function keysOf(item: DeviceItem): readonly string[] {
  return item.keyIndexes.flatMap((index) => [`#${index}`, String(index)]);
}

function placeOfEntry(
  archive: Archive,
  entry: ArchiveEntry,
  signal: AbortSignal | undefined,
): CodeObjectPlace {
  const { id, binaryKey, target, ordinal, originalSize } = entry;
  const name = `${archive.source.name}: ${id}`;
  return {
    id,
    binaryKey,
    bundle: undefined,
    indexes: [],
    target,
    size: originalSize,
    open: async () => {
      if (archive.schemeName !== "none")
        return memorySource(await archive.readKernel(entry, { signal }), name);
      // Uncompressed kernels need not be read as a whole.
      const [extent = { offset: 0, size: 0 }] = await archive.decompressor.storedExtents(ordinal, { signal });
      return sliceSource(archive.source, extent.offset, extent.size, name);
    },
  };
}

function placeOfItem(source: Source, item: DeviceItem, signal: AbortSignal | undefined): CodeObjectPlace {
  const { bundleIndex, keyIndexes, id, target, extent, kernel } = item;
  const place = bundleIndex === undefined ? id : `bundle ${bundleIndex}, ${id}`;
  const name = bundleIndex === undefined ? item.file : `${item.file}: ${place}`;
  return {
    id: place,
    binaryKey: undefined,
    bundle: bundleIndex,
    indexes: keyIndexes,
    target,
    size: kernel.size,
    open: async () =>
      extent
        ? sliceSource(source, extent.offset, extent.size, name)
        : memorySource(await kernel.read({ signal }), name),
  };
}

function converted(file: string, code: DeviceCode): NotFoundError {
  return new NotFoundError("NOTHING_FOUND", "there is nothing to inspect", {
    file,
    found: foundInstead(code),
    hint: CONVERTED_HINT,
  });
}

function nothingChosen(
  file: string,
  options: FindCodeObjectsOptions,
  targets: readonly string[],
): NotFoundError {
  const { key, target } = options;
  const found = targets.join(", ") || "no device code";
  if (key === undefined) {
    return new NotFoundError("NOTHING_FOUND", "there is nothing to inspect", {
      file,
      expected: options.targets?.join(", "),
      found,
    });
  }
  return new NotFoundError("KERNEL_NOT_FOUND", "the file has no such kernel", {
    file,
    field: target === undefined ? key : `${key} for ${target}`,
    found: `targets ${found}`,
    hint: '"kpack list FILE" shows keys, indexes and targets.',
  });
}
