import { close, closeSync, fstat, fstatSync, open, openSync, read, readSync, type Stats } from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { mapOrdered } from "../../bytes/map-ordered.ts";
import { findInputs, type InputFile } from "../find-inputs.node.ts";

/** What a file may be, by its first bytes. */
export type SurveyedKind = "host" | "archive" | "other";

/** A regular file, met under one or more names. */
export interface SurveyedFile {
  /** The first name under which it was met. */
  readonly path: string;
  readonly kind: SurveyedKind;
  /** In bytes. */
  readonly size: number;
}

export interface Survey {
  /** Each file once, however many links lead to it. */
  readonly files: readonly SurveyedFile[];
  /** Names of files that were met before under another name. */
  readonly linkCount: number;
  /** Folders `NAME.dist-info` of Python packages. */
  readonly distInfoFolders: readonly string[];
  /** Files that cannot be opened, and why. */
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
  /** Bytes of all files. */
  readonly totalSize: number;
  readonly bytesRead: number;
}

/** Files that are looked at together: enough for a slow disk, few enough for the limit of open files. */
const TOGETHER = 64;
const HEAD_SIZE = 20;

const openAsync = promisify(open);
const closeAsync = promisify(close);
const fstatAsync: (handle: number) => Promise<Stats> = promisify(fstat);

/**
 * Finds all files below some paths and tells what they may be with one small read each.
 * @throws AccessError `READ_FAILED` for a path that cannot be looked at
 */
export async function surveyTree(
  paths: readonly string[],
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<Survey> {
  const inputs: InputFile[] = [];
  for await (const input of findInputs(paths)) {
    options.signal?.throwIfAborted();
    inputs.push(input);
  }
  const files: SurveyedFile[] = [];
  const failed: { path: string; reason: string }[] = [];
  const distInfoFolders = new Set<string>();
  const met = new Set<string>();
  let totalSize = 0;
  let bytesRead = 0;
  for await (const look of lookAtAll(inputs)) {
    options.signal?.throwIfAborted();
    if ("reason" in look) {
      failed.push(look);
      continue;
    }
    const { path, identity, size, head } = look;
    if (basename(path) === "RECORD" && dirname(path).endsWith(".dist-info"))
      distInfoFolders.add(dirname(path));
    if (met.has(identity)) continue;
    met.add(identity);
    totalSize += size;
    bytesRead += head.length;
    files.push({ path, kind: kindOf(head), size });
  }
  const linkCount = inputs.length - failed.length - files.length;
  return {
    files,
    linkCount,
    distInfoFolders: [...distInfoFolders],
    unreadable: failed,
    totalSize,
    bytesRead,
  };
}

type Look =
  | { readonly path: string; readonly identity: string; readonly size: number; readonly head: Uint8Array }
  | { readonly path: string; readonly reason: string };

/** A local disk answers sooner than a thread is woken for the question; a slower one is asked many at once. */
const SLOW_MILLISECONDS = 1;

async function* lookAtAll(inputs: readonly InputFile[]): AsyncGenerator<Look> {
  let isFast = true;
  for (let start = 0; start < inputs.length; start += TOGETHER) {
    const batch = inputs.slice(start, start + TOGETHER);
    if (isFast) {
      const begin = performance.now();
      yield* batch.map(lookAtNow);
      isFast = performance.now() - begin < SLOW_MILLISECONDS * batch.length;
      await nextTurn(); // so that an interruption is noticed
    } else {
      yield* mapOrdered(batch, TOGETHER, lookAt);
    }
  }
}

function lookAtNow({ path }: InputFile): Look {
  let handle: number | undefined;
  try {
    handle = openSync(path, "r");
    const info = fstatSync(handle);
    const head = new Uint8Array(Math.min(HEAD_SIZE, info.size));
    const length = head.length === 0 ? 0 : readSync(handle, head, 0, head.length, 0);
    return seen(path, info, head.subarray(0, length));
  } catch (cause) {
    return unreadable(path, cause);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** With the callbacks of node:fs: its promises cost three times as much. */
async function lookAt({ path }: InputFile): Promise<Look> {
  let handle: number | undefined;
  try {
    handle = await openAsync(path, "r");
    const info = await fstatAsync(handle);
    const head = new Uint8Array(Math.min(HEAD_SIZE, info.size));
    const length = head.length === 0 ? 0 : await readHead(handle, head);
    return seen(path, info, head.subarray(0, length));
  } catch (cause) {
    return unreadable(path, cause);
  } finally {
    if (handle !== undefined) await closeAsync(handle);
  }
}

function seen(path: string, info: Stats, head: Uint8Array): Look {
  return { path, identity: `${info.dev}:${info.ino}`, size: info.size, head };
}

function unreadable(path: string, cause: unknown): Look {
  return { path, reason: cause instanceof Error ? cause.message : String(cause) };
}

function readHead(handle: number, buffer: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    read(handle, buffer, 0, buffer.length, 0, (error, length) => (error ? reject(error) : resolve(length)));
  });
}

const ELF_MACHINE_X86_64 = 62;

/** Only what may matter: 64-bit ELF files for x86-64, PE images, archives. */
function kindOf(head: Uint8Array): SurveyedKind {
  const magic = String.fromCharCode(...head.subarray(0, 4));
  if (magic === "KPAK") return "archive";
  if (magic.startsWith("MZ")) return "host";
  const isElf = magic === "\u007fELF" && head[4] === 2 && head[5] === 1;
  return isElf && head[18] === ELF_MACHINE_X86_64 && head[19] === 0 ? "host" : "other";
}
