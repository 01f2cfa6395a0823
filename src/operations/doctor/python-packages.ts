/** A Python package of a site-packages folder, and which archives and libraries it brought. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
  /** Its `.dist-info` folder. */
  readonly folder: string;
  /** The files of it that matter here. */
  readonly files: readonly PackageFile[];
}

export interface PackageFile {
  readonly path: string;
  /** In bytes, as RECORD says; undefined where it does not. */
  readonly size: number | undefined;
}

/** The lines `path,hash,size` of a RECORD; a path with a comma or quote is quoted. */
export function parseRecord(text: string, folder: string): readonly PackageFile[] {
  return text.split(/\r?\n/).flatMap((line): readonly PackageFile[] => {
    const match = /^(?:"((?:[^"]|"")*)"|([^,]*)),([^,]*),(\d*)$/.exec(line);
    if (!match) return [];
    const relative = match[1]?.replaceAll('""', '"') ?? match[2] ?? "";
    const size = match[4] ? Number(match[4]) : undefined;
    return relative === "" ? [] : [{ path: joinInside(folder, relative), size }];
  });
}

/** RECORD names scripts by `../../bin/x`; its paths have no links, so that text is enough. */
function joinInside(folder: string, relative: string): string {
  const parts = folder.split("/");
  for (const part of relative.split("/")) {
    if (part === "..") parts.splice(Math.max(1, parts.length - 1));
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}
