import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseRecord, type PythonPackage } from "./python-packages.ts";
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
 * @param binaries paths of binaries with device code, whose packages are of interest
 */
export async function readPythonPackages(
  folders: readonly string[],
  binaries: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<PythonPackages> {
  const packages: PythonPackage[] = [];
  let bytesRead = 0;
  for (const folder of folders) {
    signal?.throwIfAborted();
    const record = await readText(join(folder, "RECORD"));
    bytesRead += record.length;
    const files = parseRecord(record, dirname(folder)).filter(
      ({ path }) => path.endsWith(".kpack") || binaries.has(path),
    );
    if (files.length === 0) continue;
    const metadata = await readText(join(folder, "METADATA"));
    bytesRead += metadata.length;
    const field = (name: string): string =>
      new RegExp(`^${name}: *(.*)$`, "m").exec(metadata)?.[1]?.trim() ?? "";
    packages.push({ name: field("Name") || folder, version: field("Version"), folder, files });
  }
  return { packages, findings: await packageFindings(packages), bytesRead };
}

async function packageFindings(packages: readonly PythonPackage[]): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  const owners = new Map<string, PythonPackage[]>();
  for (const owner of packages) {
    for (const { path, size } of owner.files) {
      if (!path.endsWith(".kpack")) continue;
      owners.set(path, [...(owners.get(path) ?? []), owner]);
      const info = await stat(path).catch(() => undefined);
      const title = `${owner.name} ${owner.version}`;
      const reinstall = `pip install --force-reinstall "${owner.name}==${owner.version}"`;
      if (info === undefined) {
        findings.push(doctorFinding("KP501", [path], [`${title} lists it`], reinstall));
      } else if (size !== undefined && info.size !== size) {
        const evidence = [`${title} lists ${size} bytes, the file has ${info.size}`];
        findings.push(doctorFinding("KP502", [path], evidence, reinstall));
      }
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
