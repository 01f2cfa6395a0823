import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { append } from "../../bytes/append.ts";
import { mapOrdered } from "../../bytes/map-ordered.ts";
import { isKpackError } from "../../errors/errors.ts";
import { formatXxh64, loadXxh64 } from "../../hash/xxh64.ts";
import type { OnProgress } from "../../errors/progress.ts";
import { compatibleTargets } from "../../loader/isa.ts";
import { agentIsas, isaNotes } from "../../loader/remedy.ts";
import type { FindOptions } from "../../loader/resolve.ts";
import { NodeLoaderFileSystem } from "../../loader/resolve.node.ts";
import { checkArchive } from "./archive-findings.node.ts";
import { ArchiveShelf } from "./archive-shelf.node.ts";
import { CountedFiles } from "./counted-files.node.ts";
import { type CoverageAnswer, coverBinary } from "./coverage.ts";
import type { ArchiveReport, HostFacts, Reach } from "./doctor-facts.ts";
import { describeArchive, describeBinary, describeRow, type DoctorReport } from "./doctor-report.ts";
import { type DoctorFinding, doctorFinding, sortFindings } from "./doctor-finding.ts";
import { emptyRowFindings } from "./empty-rows.ts";
import { fatBinaryFindings } from "./fat-coverage.ts";
import { readHostFacts } from "./host-facts.node.ts";
import { classifyDatabaseFile, countDatabases, type DatabaseCount } from "./kernel-databases.ts";
import { coverageFindings, gatherKeys, hasCommonIndex, pairingFindings } from "./pairing-findings.ts";
import { numberingFindings } from "./numbering.ts";
import { readPythonPackages, comparablePaths } from "./python-packages.node.ts";
import type { PythonPackage } from "./python-packages.ts";
import { findReach } from "./reach.node.ts";
import { type Survey, surveyTree } from "./survey.node.ts";
import {
  brokenLinkFindings,
  colonFindings,
  databaseFindings,
  type Fingerprint,
  mislabelledFindings,
  sameNameFindings,
  unreachedFindings,
} from "./tree-findings.ts";
import { judgeIsa } from "./verdict.ts";

/** What {@link diagnose} looks at, and how deep. */
export interface DiagnoseOptions {
  /** ISAs of one machine's GPUs; each is judged, together with its generic targets. @default all targets found */
  readonly isas?: readonly string[] | undefined;
  /** Decode every kernel and every compressed bundle. @default false */
  readonly deep?: boolean | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Files that are worked on at once. */
const TOGETHER = 8;

/**
 * Looks at install trees, Python environments or single libraries, pairs binaries with archives, and reports what is
 * wrong. Reads headers, tables and the first bytes of some kernels, unless `deep` is set. Archives that a binary
 * reaches outside of the paths are looked at too.
 *
 * @throws AccessError `READ_FAILED` for a path that cannot be looked at
 */
export async function diagnose(
  paths: readonly string[],
  options: DiagnoseOptions = {},
): Promise<DoctorReport> {
  await using files = new CountedFiles();
  await using system = new NodeLoaderFileSystem({ signal: options.signal });
  return await new Diagnosis(paths, files, system, options).run();
}

interface Agent {
  readonly isa: string;
  readonly isas: readonly string[];
}

class Diagnosis {
  readonly #paths: readonly string[];
  readonly #options: DiagnoseOptions;
  readonly #files: CountedFiles;
  readonly #shelf: ArchiveShelf;
  readonly #agents: readonly Agent[];
  readonly #findings: DoctorFinding[] = [];
  /** By the archive's path. */
  readonly #reports = new Map<string, ArchiveReport>();

  constructor(
    paths: readonly string[],
    files: CountedFiles,
    system: NodeLoaderFileSystem,
    options: DiagnoseOptions,
  ) {
    this.#paths = paths;
    this.#options = options;
    this.#files = files;
    this.#shelf = new ArchiveShelf(files, system, { deep: options.deep ?? false, signal: options.signal });
    this.#agents = (options.isas ?? []).map((isa) => ({ isa, isas: agentIsas(isa) }));
  }

  async run(): Promise<DoctorReport> {
    const { signal, deep = false } = this.#options;
    const survey = await surveyTree(this.#paths, { signal });
    for (const { path, reason } of survey.unreadable)
      this.#findings.push(doctorFinding("KP701", [path], [reason]));
    const hosts = await this.#readHosts(survey);
    const inTree = await this.#openArchives(survey);
    const reaches: Reach[] = [];
    for (const host of hosts) {
      if (host.state === "converted" && host.metadata) reaches.push(await findReach(host, this.#shelf));
    }
    // Before wrappers are counted: a kernel that is known to be damaged serves none.
    await this.#checkArchives();
    const rows: CoverageAnswer[] = [];
    for (const reach of reaches) append(rows, await this.#pair(reach));
    const archives = await this.#checkArchives(); // those that only the loader's search has met
    const { packages, bytesRead } = await this.#readPackages(survey, hosts);
    const databases = this.#countDatabases(survey);
    this.#findings.push(
      ...fatBinaryFindings(hosts, this.#agents),
      ...mislabelledFindings(reaches),
      ...brokenLinkFindings(reaches),
      ...unreachedFindings(inTree, reaches),
      ...colonFindings(inTree, reaches, hosts),
      ...sameNameFindings(await this.#fingerprints(), archives),
    );
    const { isas = [] } = this.#options;
    return {
      paths: this.#paths,
      isas,
      deep,
      files: survey.files.length,
      links: survey.linkCount,
      totalSize: survey.totalSize,
      bytesRead: survey.bytesRead + this.#files.bytesRead + bytesRead,
      binaries: hosts.map((host) => describeBinary(host, reaches)),
      archives: archives.map(describeArchive),
      coverage: rows.map(describeRow),
      packages,
      databases,
      findings: sortFindings(this.#findings),
      verdicts: this.#agents.map((agent) => judgeIsa(agent, rows, hosts)),
      notes: isaNotes(isas),
    };
  }

  async #readHosts(survey: Survey): Promise<readonly HostFacts[]> {
    const { signal, deep = false } = this.#options;
    const candidates = survey.files.filter(({ kind }) => kind === "host");
    const hosts: HostFacts[] = [];
    const read = async ({ path }: { readonly path: string }): Promise<HostFacts | undefined> => {
      try {
        return await readHostFacts(await this.#files.source(path), { deep, signal });
      } catch (error) {
        if (!isKpackError(error)) throw error;
        this.#findings.push(doctorFinding("KP701", [path], [error.summary]));
        return undefined;
      }
    };
    for await (const host of mapOrdered(candidates, TOGETHER, read)) {
      if (host === undefined) continue;
      hosts.push(host);
      append(this.#findings, host.findings);
    }
    return hosts;
  }

  /** Puts the archives of the tree on the shelf, and returns their real paths. */
  async #openArchives(survey: Survey): Promise<readonly string[]> {
    const paths: string[] = [];
    const candidates = survey.files.filter(({ kind, path }) => kind === "archive" || path.endsWith(".kpack"));
    this.#shelf.expectedCount = candidates.length;
    const open = async ({ path }: { readonly path: string }): Promise<string> => {
      const real = await realpath(path);
      await this.#shelf.take(real);
      return real;
    };
    for await (const path of mapOrdered(candidates, TOGETHER, open)) paths.push(path);
    return paths;
  }

  async #pair(reach: Reach): Promise<readonly CoverageAnswer[]> {
    const { signal, deep = false } = this.#options;
    const keys = gatherKeys(reach);
    const pairing = pairingFindings(reach, keys);
    const isAsked = this.#agents.length > 0;
    const agents = isAsked
      ? this.#agents
      : [...keys.targets.keys()].map((target) => ({ isa: target, isas: [target] }));
    const unreadable = new Map(
      (await this.#shelf.all()).map(({ path, archive }) => [archive, this.#reports.get(path)?.unreadable]),
    );
    const knownFailure: FindOptions["knownFailure"] = (archive, { ordinal }) =>
      unreadable.get(archive)?.get(ordinal);
    const rows: CoverageAnswer[] = [];
    for (const agent of agents) {
      const row = await coverBinary(reach.host, agent, this.#shelf, { knownFailure, signal });
      if (row) rows.push(row);
    }
    const wanted = isAsked
      ? new Set(agents.flatMap(({ isas }) => isas.flatMap(compatibleTargets)))
      : undefined;
    const empty = await emptyRowFindings(reach, rows, this.#shelf);
    const isExplained =
      pairing.some(({ code }) => ["KP303", "KP206", "KP207"].includes(code)) ||
      (!isAsked && !hasCommonIndex(reach, keys));
    // Which package or folder is missing is known once it is known for which GPU.
    const remedy = empty[0]?.remedy;
    const known = pairing.map((one) =>
      one.code === "KP303" && remedy !== undefined ? { ...one, remedy } : one,
    );
    append(this.#findings, known);
    append(this.#findings, coverageFindings(reach, keys, rows));
    append(this.#findings, await numberingFindings(reach, keys, { deep, wanted, signal }));
    if (!isExplained) append(this.#findings, empty);
    return rows;
  }

  /** Looks at the archives that were not looked at before; returns what is known of all. */
  async #checkArchives(): Promise<readonly ArchiveReport[]> {
    const { signal, deep = false, onProgress } = this.#options;
    const shelved = await this.#shelf.all();
    const reports = this.#reports;
    const unchecked = shelved.filter(({ path }) => !reports.has(path));
    const check = async (archive: (typeof shelved)[number]): Promise<ArchiveReport> =>
      await checkArchive(archive, { deep, archiveCount: shelved.length, signal });
    for await (const report of mapOrdered(unchecked, deep ? 1 : TOGETHER, check)) {
      reports.set(report.path, report);
      append(this.#findings, report.findings);
      onProgress?.({ stage: "doctor", done: reports.size, total: shelved.length, unit: "files" });
    }
    return shelved.flatMap(({ path }) => reports.get(path) ?? []);
  }

  async #readPackages(
    survey: Survey,
    hosts: readonly HostFacts[],
  ): Promise<{ readonly packages: readonly PythonPackage[]; readonly bytesRead: number }> {
    const binaries = await comparablePaths(hosts.map(({ path }) => path));
    const result = await readPythonPackages(survey.distInfoFolders, binaries, this.#options.signal);
    append(this.#findings, result.findings);
    return result;
  }

  #countDatabases(survey: Survey): readonly DatabaseCount[] {
    const files = survey.files.flatMap(
      ({ path }) => classifyDatabaseFile(resolve(path).replaceAll(sep, "/")) ?? [],
    );
    const counts = countDatabases(files);
    append(this.#findings, databaseFindings(counts, this.#agents));
    return counts;
  }

  /** The TOC stands for the content: it has all sizes, and where our tool wrote it, all hashes. */
  async #fingerprints(): Promise<readonly Fingerprint[]> {
    const hash = await loadXxh64();
    return (await this.#shelf.all()).flatMap(({ path, size, archive }) => {
      if (archive === undefined) return [];
      return [{ path, fingerprint: `${size} ${formatXxh64(hash(archive.toc.bytes))}` }];
    });
  }
}
