import type { Archive } from "../../archive/archive.ts";
import { isKpackError } from "../../errors/errors.ts";
import type { LoaderFileSystem } from "../../loader/loader-file-system.ts";
import { frameWalkOf, NodeLoaderFileSystem, openAsRuntime } from "../../loader/resolve.node.ts";
import type { ShelvedArchive } from "./doctor-facts.ts";
import { shareOfAll, SMALL_FRAME } from "./read-budget.ts";
import type { CountedFiles } from "./counted-files.node.ts";

export interface ShelfOptions {
  /** Walk the frames of every archive, whatever has to be read for it. */
  readonly deep: boolean;
  readonly signal: AbortSignal | undefined;
}

/** All archives of an installation, each opened once; the loader's file system over them. */
export class ArchiveShelf implements LoaderFileSystem {
  /** How many archives are going to be opened, which share what may be read of them. */
  expectedCount = 1;
  readonly #files: CountedFiles;
  readonly #system: NodeLoaderFileSystem;
  readonly #options: ShelfOptions;
  readonly #archives = new Map<string, Promise<ShelvedArchive>>();

  constructor(files: CountedFiles, system: NodeLoaderFileSystem, options: ShelfOptions) {
    this.#files = files;
    this.#system = system;
    this.#options = options;
  }

  async kind(path: string): ReturnType<LoaderFileSystem["kind"]> {
    return await this.#system.kind(path);
  }

  async realPath(path: string): Promise<string | undefined> {
    return await this.#system.realPath(path);
  }

  async linkTarget(path: string): Promise<string | undefined> {
    return await this.#system.linkTarget(path);
  }

  /** Opens the archive, or says why that fails. */
  async take(realPath: string): Promise<ShelvedArchive> {
    const known = this.#archives.get(realPath) ?? this.#open(realPath);
    this.#archives.set(realPath, known);
    return await known;
  }

  async openArchive(realPath: string): Promise<Archive> {
    const { archive, error } = await this.take(realPath);
    if (archive) return archive;
    throw error ?? new Error(`${realPath} is neither open nor broken`);
  }

  /** All that were opened so far, in the order of their paths. */
  async all(): Promise<readonly ShelvedArchive[]> {
    const archives = await Promise.all(this.#archives.values());
    return archives.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }

  async #open(path: string): Promise<ShelvedArchive> {
    let size = 0;
    try {
      const source = await this.#files.source(path);
      ({ size } = source);
      const archive = await openAsRuntime(source, this.#options.signal);
      return { path, size, archive, error: undefined, walked: await this.#walk(archive) };
    } catch (error) {
      if (!isKpackError(error)) throw error;
      return { path, size, archive: undefined, error, walked: true };
    }
  }

  /** Walks the frames as ROCm's readers do. False where that would read more than a survey may. */
  async #walk(archive: Archive): Promise<boolean> {
    const { decompressor, tocOffset } = archive;
    const walk = frameWalkOf(archive);
    if (!walk) return true;
    const { deep, signal } = this.#options;
    const count = await decompressor.kernelCount({ signal });
    const isSmall = tocOffset <= count * SMALL_FRAME;
    if (!deep && isSmall && tocOffset > shareOfAll(this.expectedCount)) return false;
    await walk(signal);
    return true;
  }
}
