import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { AccessError } from "../errors/errors.ts";
import { isTemporaryName } from "../sink/file-sink.node.ts";

/** Files are looked at so many at a time: one after the other, a thousand of them take longer to open than to pack. */
export const LOOKED_AT_TOGETHER = 8;

/** A file to be looked at, and whether the user named it or it was met in a folder. */
export interface InputFile {
  readonly path: string;
  readonly named: boolean;
  /** The path that was named: the file itself or the folder that it was met in. */
  readonly input: string;
}

/**
 * The regular files behind paths: files as they are, folders with everything below them, in the order of their names.
 * Symbolic links are followed; a folder that was visited already is not visited again. Files that this package is
 * just writing into a folder are passed over.
 *
 * @throws AccessError `READ_FAILED` for a path that cannot be looked at
 */
export async function* findInputs(paths: readonly string[]): AsyncGenerator<InputFile> {
  const named = new Set<string>();
  for (const path of paths) {
    if (named.has(resolve(path))) continue; // given twice is given once
    named.add(resolve(path));
    const info = await stat(path).catch((cause: unknown) => {
      throw unreadable(path, cause);
    });
    if (info.isDirectory()) yield* filesBelow(path, path, new Set());
    else yield { path, named: true, input: path };
  }
}

async function* filesBelow(folder: string, input: string, visited: Set<string>): AsyncGenerator<InputFile> {
  const real = await realpath(folder).catch((cause: unknown) => {
    throw unreadable(folder, cause);
  });
  if (visited.has(real)) return;
  visited.add(real);
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw unreadable(folder, cause);
  });
  entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  for (const entry of entries) {
    if (isTemporaryName(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path, input, visited);
    else if (entry.isFile()) yield { path, named: false, input };
    else if (entry.isSymbolicLink()) {
      const info = await stat(path).catch(() => undefined); // a dangling link names no file
      if (info?.isDirectory()) yield* filesBelow(path, input, visited);
      else if (info?.isFile()) yield { path, named: false, input };
    }
  }
}

/** Whether two paths lead to one file; false when one of them does not exist. */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map(identityOf));
  return first !== undefined && first === second;
}

/** What all paths to one file have in common; undefined where there is none. */
export async function identityOf(path: string): Promise<string | undefined> {
  const info = await stat(path).catch(() => undefined);
  return info && `${info.dev} ${info.ino}`;
}

/**
 * The path of an input as binary keys have it: relative to `root`, with `/`. Without a root: relative to the current
 * folder when the input lies in it, else to the named input's own folder (for a folder: to itself).
 *
 * @throws AccessError `READ_FAILED` when `root` is given and the file does not lie below it
 */
export function keyPathOf(file: InputFile, root: string | undefined): string {
  const path = resolve(file.path);
  if (root !== undefined) {
    const inside = pathInside(resolve(root), path);
    if (inside !== undefined) return inside;
    throw new AccessError("READ_FAILED", "the file does not lie below the root that was given", {
      file: file.path,
      field: "root",
      expected: `a path below ${root}`,
      found: path,
      hint: "Choose a root (--root) that holds all inputs, or leave it out.",
    });
  }
  const ownFolder = file.named ? dirname(path) : resolve(file.input);
  return pathInside(process.cwd(), path) ?? pathInside(ownFolder, path) ?? path.split(sep).join("/");
}

/** `path` relative to `folder`, with `/`; undefined when it lies elsewhere. Both are absolute. */
export function pathInside(folder: string, path: string): string | undefined {
  const inside = relative(folder, path);
  if (inside === "" || isAbsolute(inside) || inside === ".." || inside.startsWith(`..${sep}`))
    return undefined;
  return inside.split(sep).join("/");
}

function unreadable(path: string, cause: unknown): AccessError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AccessError("READ_FAILED", `cannot be read: ${reason}`, { file: path, cause });
}
