import { parseLoaderEnvironment } from "../../loader/environment.ts";
import { compatibleTargets } from "../../loader/isa.ts";
import type { LoaderFileSystem } from "../../loader/loader-file-system.ts";
import { formatStatus } from "../../loader/loader-status.ts";
import { remedyFor } from "../../loader/remedy.ts";
import { fileNameOf } from "../../loader/search-paths.ts";
import { keysOf } from "../../archive/archive-keys.ts";
import type { CoverageAnswer } from "./coverage.ts";
import type { Reach } from "./doctor-facts.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";

/** GPUs that get no kernel of the binary at all. */
export async function emptyRowFindings(
  reach: Reach,
  rows: readonly CoverageAnswer[],
  fileSystem: LoaderFileSystem,
): Promise<readonly DoctorFinding[]> {
  const { host } = reach;
  const findings: DoctorFinding[] = [];
  for (const row of rows) {
    const { failed, search, missing, wrappers, isa } = row;
    if (missing.length < wrappers || failed?.failure === undefined || host.metadata === undefined) continue;
    const environment = parseLoaderEnvironment({}, host.format === "coff" ? "windows" : "posix");
    const context = { binaryPath: host.path, metadata: host.metadata, environment, workingFolder: "/" };
    const misnamed = misnamedArchive(reach, row);
    const remedy = misnamed?.remedy ?? (await remedyFor({ ...context, search, answer: failed }, fileSystem));
    const { status, reason } = failed.failure;
    const names = new Set([...row.statuses.values()].map(({ name }) => name));
    const who = names.size > 1 ? "no wrapper gets a kernel; the first gets" : "every wrapper gets";
    const evidence = [
      `for ${isa}: ${who} ${formatStatus(status)}: ${reason}`,
      ...(misnamed ? [misnamed.evidence] : []),
    ];
    const files = misnamed ? [host.path, misnamed.path] : [host.path];
    findings.push(doctorFinding("KP312", files, evidence, remedy));
  }
  return findings;
}

interface Misnamed {
  readonly path: string;
  readonly evidence: string;
  readonly remedy: string;
}

/** An archive has what is missing, and the loader looks for another name. */
function misnamedArchive({ host, archives }: Reach, { isas, search }: CoverageAnswer): Misnamed | undefined {
  const opened = new Set(search.archives.map(({ realPath }) => realPath));
  const wanted = isas.flatMap(compatibleTargets);
  for (const { path, archive } of archives) {
    if (archive === undefined || opened.has(path)) continue;
    const keys = keysOf(archive).get(host.metadata?.kernelName ?? "");
    const target = wanted.find((each) => keys?.has(each) === true && archive.targets.includes(each));
    const place = target && search.paths.find((step) => step.target === target)?.path;
    if (place === undefined || (host.format === "coff" && fileNameOf(place).includes(":"))) continue;
    return {
      path,
      evidence: `${fileNameOf(path)} has kernels for ${target}, and the loader looks for ${place}`,
      remedy: `Rename ${fileNameOf(path)}, or make a link to it: the loader looks for ${place}.`,
    };
  }
  return undefined;
}
