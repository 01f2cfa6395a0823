import type { Archive } from "../archive/archive.ts";
import type { LoaderBehaviour } from "./loader-behaviour.ts";

/**
 * What the loader asks of a file system. Paths must reach the system as they are: `a/link/../b` is not `a/b` where
 * `link` is a symbolic link.
 */
export interface LoaderFileSystem {
  /** Follows symbolic links; a link that leads nowhere is missing. */
  kind(path: string): Promise<"file" | "folder" | "other" | "missing">;
  /**
   * Where a symbolic link at the path leads, as it says itself; undefined when there is none. Only explains what is
   * missing, so that a file system without links need not have it.
   */
  linkTarget?(path: string): Promise<string | undefined>;
  /** The path without symbolic links and `..`, or undefined when it leads to nothing. */
  realPath(path: string): Promise<string | undefined>;
  /**
   * Opens the archive at a real path as that loader understands it, each only once. The file system owns it.
   * @throws KpackError
   */
  openArchive(realPath: string, behaviour?: LoaderBehaviour): Promise<Archive>;
}
