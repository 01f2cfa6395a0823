import type { Archive } from "../../archive/archive.ts";
import { isKpackError } from "../../errors/errors.ts";
import type { LoaderFileSystem } from "../../loader/loader-file-system.ts";
import { NodeLoaderFileSystem, openAsRuntime } from "../../loader/resolve.node.ts";
import type { ShelvedArchive } from "./doctor-facts.ts";
import type { CountedFiles } from "./counted-files.node.ts";

/** All archives of an installation, each opened once; the loader's file system over them. */
export class ArchiveShelf implements LoaderFileSystem {
  readonly #files: CountedFiles;
  readonly #system: NodeLoaderFileSystem;
  readonly #signal: AbortSignal | undefined;
  readonly #archives = new Map<string, Promise<ShelvedArchive>>();

  constructor(files: CountedFiles, system: NodeLoaderFileSystem, signal: AbortSignal | undefined) {
    this.#files = files;
    this.#system = system;
    this.#signal = signal;
  }

  async kind(path: string): ReturnType<LoaderFileSystem["kind"]> {
    return await this.#system.kind(path);
  }

  async realPath(path: string): Promise<string | undefined> {
    return await this.#system.realPath(path);
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
      return { path, size, archive: await openAsRuntime(source, this.#signal), error: undefined };
    } catch (error) {
      if (!isKpackError(error)) throw error;
      return { path, size, archive: undefined, error };
    }
  }
}
