import { isKpackError } from "../errors/errors.ts";
import type { FoundArchive } from "./archive-search.ts";
import { candidatesOf } from "./candidates.ts";
import { oncePerSearch, type RemedyContext } from "./remedy-context.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import { fileNameOf, isAbsolutePath, joinPath } from "./search-paths.ts";

/** An archive that a list of the environment names, but that it was split in. */
interface SplitArchive {
  readonly path: string;
  /** Undefined when it cannot be opened. */
  readonly found: FoundArchive | undefined;
}

/** A name with two flags of a target is split in three; names with many more colons are none of archives. */
const MOST_PARTS = 8;

const splitArchives = oncePerSearch(
  async ({ environment, workingFolder, search }, fileSystem): Promise<readonly SplitArchive[]> => {
    const parts = environment.override ?? environment.prefix;
    const archives: SplitArchive[] = [];
    for (let start = 0; start < parts.length; start++) {
      for (let end = start + 2; end <= Math.min(parts.length, start + MOST_PARTS); end++) {
        const joined = parts.slice(start, end).join(environment.separator);
        const path = isAbsolutePath(joined) ? joined : joinPath(workingFolder, joined);
        if ((await fileSystem.kind(path)) !== "file") continue;
        archives.push({ path, found: await open(path, search.behaviour, fileSystem) });
      }
    }
    return archives;
  },
);

async function open(
  path: string,
  behaviour: RemedyContext["search"]["behaviour"],
  fileSystem: LoaderFileSystem,
): Promise<FoundArchive | undefined> {
  const realPath = await fileSystem.realPath(path);
  if (realPath === undefined) return undefined;
  try {
    return { path, realPath, archive: await fileSystem.openArchive(realPath, behaviour) };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return undefined;
  }
}

/** What helps where a list of the environment was split inside the name of an archive that has what is missing. */
export async function remedyForSplitName(
  context: RemedyContext,
  fileSystem: LoaderFileSystem,
): Promise<string | undefined> {
  const { environment, search, answer } = context;
  const archives = await splitArchives(context, fileSystem);
  const wanted = answer.failure?.status.name === "KPACK_ERROR_KERNEL_NOT_FOUND" ? answer.key : undefined;
  const serving = archives.find(
    ({ found }) =>
      found &&
      candidatesOf({ ...search, archives: [found] }).some(
        ({ target }) => wanted === undefined || found.archive.find(wanted, target) !== undefined,
      ),
  );
  // Where nothing else is listed, a name that was split is the cause whatever is in the archive.
  const isAlone = environment.override !== undefined && search.archives.length === 0;
  const split = serving ?? (isAlone ? archives[0] : undefined);
  if (split === undefined) return undefined;
  const variable = environment.override ? "ROCM_KPACK_PATH" : "ROCM_KPACK_PATH_PREFIX";
  return (
    `${variable} splits at each "${environment.separator}", also inside the name ${fileNameOf(split.path)}: ` +
    "list a symbolic link whose name has none, or unset the variable and let the search find the archive."
  );
}
