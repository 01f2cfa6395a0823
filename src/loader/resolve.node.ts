import { readlink, realpath, stat } from "node:fs/promises";
import type { Archive } from "../archive/archive.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { FormatError, isKpackError } from "../errors/errors.ts";
import { builtInSchemes } from "../scheme/built-in-schemes.node.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { FilePool } from "../source/file-pool.node.ts";
import type { Source } from "../source/source.ts";
import type { LoaderBehaviour } from "./loader-behaviour.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { asRuntimeReads } from "./runtime-toc.ts";

/** Node's file system for the loader. Archives are opened once and closed with it; so is what it has looked up. */
export class NodeLoaderFileSystem implements LoaderFileSystem, AsyncDisposable {
  readonly #pool = new FilePool();
  readonly #archives = new Map<string, Promise<Archive>>();
  readonly #realPaths = new Map<string, Promise<string | undefined>>();
  readonly #kinds = new Map<string, ReturnType<LoaderFileSystem["kind"]>>();
  readonly #signal: AbortSignal | undefined;

  constructor(options: { readonly signal?: AbortSignal | undefined } = {}) {
    this.#signal = options.signal;
  }

  async kind(path: string): ReturnType<LoaderFileSystem["kind"]> {
    const known = this.#kinds.get(path) ?? kindOf(path);
    this.#kinds.set(path, known);
    return await known;
  }

  async realPath(path: string): Promise<string | undefined> {
    const known = this.#realPaths.get(path) ?? realpath(path).catch(() => undefined);
    this.#realPaths.set(path, known);
    return await known;
  }

  async linkTarget(path: string): Promise<string | undefined> {
    return await readlink(path).catch(() => undefined);
  }

  async openArchive(realPath: string, behaviour: LoaderBehaviour = "current"): Promise<Archive> {
    const place = `${behaviour === "hrx" ? "HRX" : "ROCm"} ${realPath}`;
    const known = this.#archives.get(place);
    if (known) return await known;
    const opening = this.#open(realPath, behaviour);
    this.#archives.set(place, opening);
    try {
      return await opening;
    } catch (error) {
      if (!isKpackError(error)) this.#archives.delete(place); // an abort says nothing about the file
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]();
  }

  async #open(path: string, behaviour: LoaderBehaviour): Promise<Archive> {
    const archive = await openAsRuntime(await this.#pool.source(path), this.#signal, behaviour);
    await frameWalkOf(archive)?.(this.#signal);
    return archive;
  }
}

async function kindOf(path: string): ReturnType<LoaderFileSystem["kind"]> {
  try {
    const info = await stat(path);
    return info.isFile() ? "file" : info.isDirectory() ? "folder" : "other";
  } catch {
    return "missing"; // nothing there, or nothing that may be looked at: the loader skips both
  }
}

/** What our reader refuses and a runtime may understand. */
const UNDERSTOOD: ReadonlySet<string> = new Set(["UNKNOWN_SCHEME", "WRONG_TYPE", "DUPLICATE_KEY"]);

/**
 * Opens an archive as a runtime does, which understands some tables of contents that are refused elsewhere, and opens
 * an archive also when its scheme is not known, to find no kernel in it.
 * @throws KpackError
 */
export async function openAsRuntime(
  source: Source,
  signal: AbortSignal | undefined,
  behaviour: LoaderBehaviour = "current",
): Promise<Archive> {
  try {
    return await openWithAnyScheme(source, signal);
  } catch (error) {
    if (!isKpackError(error) || !UNDERSTOOD.has(error.code)) throw error;
    let understood: Source;
    try {
      understood = await asRuntimeReads(source, behaviour, signal);
    } catch (other) {
      throw isKpackError(other) ? error : other; // what is wrong with it was said better before
    }
    return await openWithAnyScheme(understood, signal);
  }
}

/**
 * ROCm's readers walk all frames when they open an archive, and refuse it when one is out of bounds. Undefined where there
 * is nothing to walk.
 */
export function frameWalkOf(
  archive: Archive,
): ((signal: AbortSignal | undefined) => Promise<void>) | undefined {
  const { decompressor, schemeName } = archive;
  if (schemeName !== "zstd-per-kernel") return undefined;
  return async (signal) => await decompressor.verifyArea?.(() => undefined, { signal });
}

async function openWithAnyScheme(source: Source, signal: AbortSignal | undefined): Promise<Archive> {
  try {
    return await openArchive(source, { signal });
  } catch (error) {
    if (!isKpackError(error, "UNKNOWN_SCHEME") || typeof error.found !== "string") throw error;
    return await openArchive(source, { schemes: [...builtInSchemes, unreadable(error.found)], signal });
  }
}

function unreadable(name: string): CompressionScheme {
  const refuse = (): never => {
    throw new FormatError("UNKNOWN_SCHEME", "the scheme is not known", {
      field: "compression_scheme",
      found: name,
    });
  };
  return {
    name,
    fieldNames: [],
    createCompressor: refuse,
    openDecompressor: () => ({
      kernelCount: async () => 0,
      decompressKernel: async () => refuse(),
      storedExtents: async () => [],
    }),
  };
}
