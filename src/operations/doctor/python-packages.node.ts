import { readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { append } from "../../bytes/append.ts";
import { parseRecord, type PackageFile, type PythonPackage } from "./python-packages.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";

export interface PythonPackages {
  /** Those that brought an archive, or a binary with device code. */
  readonly packages: readonly PythonPackage[];
  readonly findings: readonly DoctorFinding[];
  readonly bytesRead: number;
}

/** RECORD of the largest packages has a few megabytes. */
const LARGEST_RECORD = 64 * 1024 * 1024;

/**
 * Reads `RECORD` and `METADATA` of packages.
 * @param binaries comparable paths of binaries with device code, whose packages are of interest
 */
export async function readPythonPackages(
  folders: readonly string[],
  binaries: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<PythonPackages> {
  const packages: PythonPackage[] = [];
  const findings: DoctorFinding[] = [];
  let bytesRead = 0;
  // A folder may be met under several names: lib64 is a link to lib in most environments.
  for (const folder of await comparablePaths(folders)) {
    signal?.throwIfAborted();
    const record = await readText(join(folder, "RECORD"));
    bytesRead += record.length;
    const listed = parseRecord(record, dirname(folder));
    const files = listed.filter(({ path }) => isArchive(path) || binaries.has(path));
    if (files.length === 0) continue;
    const metadata = await readText(join(folder, "METADATA"));
    bytesRead += metadata.length;
    const field = (name: string): string =>
      new RegExp(`^${name}: *(.*)$`, "m").exec(metadata)?.[1]?.trim() ?? "";
    const brought = { name: field("Name") || folder, version: field("Version"), folder, files };
    packages.push(brought);
    append(findings, await fileFindings(brought, listed));
  }
  return { packages, findings: [...findings, ...sharedFindings(packages)], bytesRead };
}

/**
 * The paths with their folders' symbolic links followed and with `/`, as they can be compared with those of RECORD;
 * each once. A file that is itself a link, as some installers make them, keeps the name that RECORD has.
 */
export async function comparablePaths(paths: readonly string[]): Promise<ReadonlySet<string>> {
  const resolved = paths.map(async (path) => {
    const folder = dirname(path);
    const real = await realpath(folder).catch(() => resolve(folder));
    return join(real, basename(path)).replaceAll(sep, "/");
  });
  return new Set(await Promise.all(resolved));
}

function isArchive(path: string): boolean {
  return path.endsWith(".kpack");
}

/** Whether a library that is gone was a converted one cannot be told: all of such a package are looked for. */
const SHARED_LIBRARY = /\.(?:so(?:\.\d+)*|pyd|dll)$/;

/** Files that a package lists and that are gone, or archives that are others. */
async function fileFindings(
  { name, version }: PythonPackage,
  listed: readonly PackageFile[],
): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  const title = `${name} ${version}`;
  const reinstall = `pip install --force-reinstall "${name}==${version}"`;
  for (const { path, size } of listed) {
    if (!isArchive(path) && !SHARED_LIBRARY.test(path)) continue;
    const info = await stat(path).catch(() => undefined);
    if (info === undefined) {
      findings.push(doctorFinding("KP501", [path], [`${title} lists it`], reinstall));
    } else if (isArchive(path) && size !== undefined && info.size !== size) {
      const evidence = [`${title} lists ${size} bytes, the file has ${info.size}`];
      findings.push(doctorFinding("KP502", [path], evidence, reinstall));
    }
  }
  return findings;
}

/** Archives that several packages list. */
function sharedFindings(packages: readonly PythonPackage[]): readonly DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  const owners = new Map<string, PythonPackage[]>();
  for (const owner of packages) {
    for (const { path } of owner.files) {
      if (isArchive(path)) owners.set(path, [...(owners.get(path) ?? []), owner]);
    }
  }
  for (const [path, several] of owners) {
    if (several.length < 2) continue;
    const evidence = several.map(({ name, version }) => `${name} ${version} lists it`);
    findings.push(doctorFinding("KP503", [path], evidence));
  }
  return findings;
}

async function readText(path: string): Promise<string> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined || info.size > LARGEST_RECORD) return "";
  return await readFile(path, "utf8").catch(() => "");
}
