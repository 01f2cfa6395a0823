import type { HipkMetadata } from "../host/hipk-metadata.ts";
import type { ArchiveSearch } from "./archive-search.ts";
import type { LoaderEnvironment } from "./environment.ts";
import type { LoaderFileSystem } from "./loader-file-system.ts";
import type { KernelAnswer } from "./resolve.ts";

export interface RemedyContext {
  readonly binaryPath: string;
  readonly metadata: HipkMetadata;
  readonly environment: LoaderEnvironment;
  readonly workingFolder: string;
  readonly search: ArchiveSearch;
  readonly answer: KernelAnswer;
}

type Work<Result> = (context: RemedyContext, fileSystem: LoaderFileSystem) => Promise<Result>;

/** For what does not depend on the kernel: many thousands may fail in one search, all for the same cause. */
export function oncePerSearch<Result>(work: Work<Result>): Work<Result> {
  const known = new WeakMap<ArchiveSearch, Promise<Result>>();
  return async (context, fileSystem) => {
    const result = known.get(context.search) ?? work(context, fileSystem);
    known.set(context.search, result);
    return await result;
  };
}
