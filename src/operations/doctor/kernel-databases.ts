import { targetInPath } from "../../target/target-in-path.ts";

/** Loose kernel files of libraries that bring their own databases: Tensile's, MIOpen's, AOTriton's. */
export interface DatabaseFile {
  /** `rocblas`, `hipblaslt`, `hipsparselt`, `aotriton`, `miopen`; `other` for a code object elsewhere. */
  readonly library: string;
  readonly kind: "code" | "index" | "kernel-database" | "find-database" | "model";
  /** The target in its name or its folder's; undefined for files for all of them. */
  readonly target: string | undefined;
}

/** How many files a library has for a target, by kind. */
export interface DatabaseCount {
  readonly library: string;
  /** `all` for files without a target. */
  readonly target: string;
  readonly files: number;
  readonly code: number;
  readonly index: number;
}

/** What a file is by its path (with `/`), or undefined when it is no part of a kernel database. */
export function classifyDatabaseFile(path: string): DatabaseFile | undefined {
  const tensile = /\/(rocblas|hipblaslt|hipsparselt)\/library\/(.*)$/.exec(path);
  if (tensile) {
    const [, library = "", rest = ""] = tensile;
    const kind = /\.(?:co|hsaco)$/.test(rest) ? "code" : rest.endsWith(".dat") ? "index" : undefined;
    return kind && { library, kind, target: targetInPath(rest) };
  }
  const miopen = /\/miopen\/db\/([^/]+)$/.exec(path);
  if (miopen) {
    const [, name = ""] = miopen;
    const kind = MIOPEN_KINDS.find(([ending]) => name.endsWith(ending))?.[1];
    return kind && { library: "miopen", kind, target: targetInPath(name) };
  }
  const [, inside] = /\/aotriton[^/]*\/(?:.*\/)?kernels?\/(.*)$/.exec(path) ?? [];
  if (inside !== undefined) return { library: "aotriton", kind: "code", target: targetInPath(inside) };
  return /\.(?:co|hsaco)$/.test(path)
    ? { library: "other", kind: "code", target: targetInPath(path) }
    : undefined;
}

const MIOPEN_KINDS: readonly (readonly [string, DatabaseFile["kind"]])[] = [
  [".kdb", "kernel-database"],
  [".fdb.txt", "find-database"],
  [".db.txt", "find-database"],
  [".model", "model"],
];

/** Longest first, so that `gfx1030_36` is no `gfx103`, and `gfx90a68` (with the number of units) is gfx90a. */
/** Counts by library and target, in the order of their names. */
export function countDatabases(files: readonly DatabaseFile[]): readonly DatabaseCount[] {
  const groups = Map.groupBy(files, ({ library, target }) => `${library}\n${target ?? "all"}`);
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, group]) => {
      const [library = "", target = ""] = name.split("\n");
      const count = (kind: DatabaseFile["kind"]): number => group.filter((file) => file.kind === kind).length;
      return { library, target, files: group.length, code: count("code"), index: count("index") };
    });
}

const INDEXED = ["rocblas", "hipblaslt", "hipsparselt"];

/** Targets of Tensile's libraries whose code objects no index leads to, or whose index leads to nothing. */
export function unpairedDatabases(
  counts: readonly DatabaseCount[],
): readonly (DatabaseCount & { readonly lacks: string })[] {
  return counts.flatMap((count) => {
    if (!INDEXED.includes(count.library) || count.target === "all") return [];
    const forAll = counts.find(({ library, target }) => library === count.library && target === "all");
    // An index or code object without a target in its name may serve this one too.
    if (count.code > 0 && count.index === 0 && (forAll?.index ?? 0) === 0)
      return [{ ...count, lacks: "index (.dat)" }];
    if (count.index > 0 && count.code === 0 && (forAll?.code ?? 0) === 0) {
      return [{ ...count, lacks: "code objects (.co, .hsaco)" }];
    }
    return [];
  });
}
