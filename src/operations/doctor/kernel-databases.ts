import { targetInPath } from "../../target/target-in-path.ts";

/** Loose kernel files of libraries that bring their own databases: Tensile's, MIOpen's, AOTriton's. */
export interface DatabaseFile {
  /** `rocblas`, `hipblaslt`, `hipsparselt`, `aotriton`, `miopen`; `other` for a code object elsewhere. */
  readonly library: string;
  readonly kind: "code" | "index" | "kernel-database" | "find-database" | "model";
  /** The target in its name or its folder's; undefined for files for all of them. */
  readonly target: string | undefined;
  /** The database's own folder, which holds one library's files for all targets; undefined for `other`. */
  readonly folder: string | undefined;
}

/** How many files a database has for a target, by kind. */
export interface DatabaseCount {
  readonly library: string;
  /** Undefined for `other`. */
  readonly folder: string | undefined;
  /** `all` for files without a target. */
  readonly target: string;
  readonly files: number;
  readonly code: number;
  readonly index: number;
}

/** What a file is by its path (with `/`), or undefined when it is no part of a kernel database. */
export function classifyDatabaseFile(path: string): DatabaseFile | undefined {
  const folderBefore = (inside: string): string => path.slice(0, -inside.length - 1);
  const tensile = /\/(rocblas|hipblaslt|hipsparselt)\/library\/(.*)$/.exec(path);
  if (tensile) {
    const [, library = "", rest = ""] = tensile;
    const kind = /\.(?:co|hsaco)$/.test(rest) ? "code" : rest.endsWith(".dat") ? "index" : undefined;
    return kind && { library, kind, target: targetInPath(rest), folder: folderBefore(rest) };
  }
  const miopen = /\/miopen\/db\/([^/]+)$/.exec(path);
  if (miopen) {
    const [, name = ""] = miopen;
    const kind = MIOPEN_KINDS.find(([ending]) => name.endsWith(ending))?.[1];
    return kind && { library: "miopen", kind, target: targetInPath(name), folder: folderBefore(name) };
  }
  const aotriton = /\/aotriton[^/]*\/((?:.*\/)?kernels?\/(.*))$/.exec(path);
  if (aotriton) {
    const [, inside = "", name = ""] = aotriton;
    return { library: "aotriton", kind: "code", target: targetInPath(name), folder: folderBefore(inside) };
  }
  return /\.(?:co|hsaco)$/.test(path)
    ? { library: "other", kind: "code", target: targetInPath(path), folder: undefined }
    : undefined;
}

const MIOPEN_KINDS: readonly (readonly [string, DatabaseFile["kind"]])[] = [
  [".kdb", "kernel-database"],
  [".fdb.txt", "find-database"],
  [".db.txt", "find-database"],
  [".model", "model"],
];

/** Counts by library, folder and target, in the order of their names. */
export function countDatabases(files: readonly DatabaseFile[]): readonly DatabaseCount[] {
  const groups = Map.groupBy(files, ({ library, folder = "", target = ALL }) =>
    [library, folder, target].join("\0"),
  );
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, group]) => {
      const [first] = group;
      if (first === undefined) return [];
      const { library, folder, target = ALL } = first;
      const count = (kind: DatabaseFile["kind"]): number => group.filter((file) => file.kind === kind).length;
      return [{ library, folder, target, files: group.length, code: count("code"), index: count("index") }];
    });
}

/** The counts of each database: two copies of a library have one each. */
export function groupByDatabase(counts: readonly DatabaseCount[]): readonly (readonly DatabaseCount[])[] {
  return [...Map.groupBy(counts, ({ library, folder = "" }) => `${library}\0${folder}`).values()];
}

/** Stands for the target of files without one. */
export const ALL = "all";
const INDEXED = ["rocblas", "hipblaslt", "hipsparselt"];

/**
 * Targets of a Tensile library whose code objects no index leads to, or whose index leads to nothing. Tensile writes
 * one index for a processor, which serves the code objects of all its flag variants (`gfx90a-xnack+`).
 * @param counts of one database
 */
export function unpairedDatabases(
  counts: readonly DatabaseCount[],
): readonly (DatabaseCount & { readonly lacks: string })[] {
  const processorOf = ({ target }: DatabaseCount): string => target.split(":")[0] ?? "";
  return counts.flatMap((count) => {
    if (!INDEXED.includes(count.library) || count.target === ALL) return [];
    // A file without a target in its name may serve this one too.
    const related = counts.filter((other) => [ALL, processorOf(count)].includes(processorOf(other)));
    if (count.code > 0 && related.every(({ index }) => index === 0))
      return [{ ...count, lacks: "index (.dat)" }];
    if (count.index > 0 && related.every(({ code }) => code === 0))
      return [{ ...count, lacks: "code objects (.co, .hsaco)" }];
    return [];
  });
}
