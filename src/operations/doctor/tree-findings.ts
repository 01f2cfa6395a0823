import type { ArchiveReport, HostFacts, Reach } from "./doctor-facts.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";
import { ALL, type DatabaseCount, groupByDatabase, unpairedDatabases } from "./kernel-databases.ts";
import { fileNameOf } from "../../loader/search-paths.ts";
import { brokenLink } from "../../loader/archive-search.ts";
import { compatibleTargets } from "../../loader/isa.ts";
import { heldInstead } from "../../loader/mislabelled.ts";

/** Archives of the tree that no converted binary reaches; nothing when there is no such binary. */
export function unreachedFindings(
  inTree: readonly string[],
  reaches: readonly Reach[],
): readonly DoctorFinding[] {
  if (reaches.length === 0) return [];
  const reached = new Set(reaches.flatMap(({ archives }) => archives.map(({ path }) => path)));
  return inTree
    .filter((path) => !reached.has(path))
    .map((path) =>
      doctorFinding("KP304", [path], [`${reaches.length} converted binary(ies) were looked at`]),
    );
}

/** Archives that binaries look into for a target, and that hold nothing for it. Each file is named once. */
export function mislabelledFindings(reaches: readonly Reach[]): readonly DoctorFinding[] {
  const findings = new Map<string, DoctorFinding>();
  for (const { path, target, archive: shelved } of reaches.flatMap(({ named }) => named)) {
    const held = shelved.archive && heldInstead(shelved.archive, target);
    if (held === undefined || findings.has(path)) continue;
    const evidence = [`its name is for ${target}, and it holds ${held.join(", ")} only`];
    findings.set(path, doctorFinding("KP314", [path], evidence));
  }
  return [...findings.values()];
}

/** Symbolic links where binaries look for archives that lead to no file. Each is named once. */
export function brokenLinkFindings(reaches: readonly Reach[]): readonly DoctorFinding[] {
  const links = new Map(
    reaches.flatMap(({ brokenLinks }) => brokenLinks).map(({ path, leadsTo }) => [path, leadsTo]),
  );
  return Array.from(links, ([path, leadsTo]) => doctorFinding("KP315", [path], [brokenLink(leadsTo)]));
}

/** Names that Windows does not allow, where the archive is for Windows. */
export function colonFindings(
  inTree: readonly string[],
  reaches: readonly Reach[],
  hosts: readonly HostFacts[],
): readonly DoctorFinding[] {
  const forWindows = new Set(
    reaches
      .filter(({ host }) => host.format === "coff")
      .flatMap(({ archives }) => archives.map(({ path }) => path)),
  );
  const isWindowsTree = hosts.length > 0 && hosts.every(({ format }) => format === "coff");
  const paths = new Set([...forWindows, ...(isWindowsTree ? inTree : [])]);
  return [...paths]
    .filter((path) => fileNameOf(path).includes(":"))
    .map((path) => doctorFinding("KP308", [path], ["the libraries that use it are for Windows"]));
}

/** An archive and something by which its content is known. */
export interface Fingerprint {
  readonly path: string;
  readonly fingerprint: string;
}

export function sameNameFindings(
  fingerprints: readonly Fingerprint[],
  reports: readonly ArchiveReport[],
): readonly DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  for (const [, group] of Map.groupBy(fingerprints, ({ path }) => fileNameOf(path))) {
    if (new Set(group.map(({ fingerprint }) => fingerprint)).size < 2) continue;
    const evidence = group.map(({ path }) => {
      const report = reports.find((candidate) => candidate.path === path);
      return `${report?.kernels ?? 0} kernel(s), ${report?.size ?? 0} bytes: ${path}`;
    });
    findings.push(
      doctorFinding(
        "KP310",
        group.map(({ path }) => path),
        evidence,
      ),
    );
  }
  return findings;
}

/** Kernel databases that are incomplete, or lack a GPU that was asked about. */
export function databaseFindings(
  counts: readonly DatabaseCount[],
  agents: readonly { readonly isa: string; readonly isas: readonly string[] }[],
): readonly DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  for (const group of groupByDatabase(counts)) {
    const [first] = group;
    if (first?.folder === undefined) continue; // code objects of no library that is known
    const { library, folder } = first;
    for (const { target, code, index, lacks } of unpairedDatabases(group)) {
      const has = `${code} code object(s), ${index} index(es)`;
      findings.push(
        doctorFinding("KP601", [folder], [`${library} for ${target}: ${has}; it lacks the ${lacks}`]),
      );
    }
    const targets = group.map(({ target }) => target).filter((target) => target !== ALL);
    for (const { isa, isas } of agents) {
      const wanted = isas.flatMap(compatibleTargets);
      if (targets.length === 0 || targets.some((target) => wanted.includes(target))) continue;
      const evidence = [`${library} has files for ${targets.join(", ")}, none for ${isa}`];
      findings.push(doctorFinding("KP602", [folder], evidence));
    }
  }
  return findings;
}
