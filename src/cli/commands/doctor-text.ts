import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { printable } from "../../bytes/text.ts";
import type { DoctorFinding } from "../../operations/doctor/doctor-finding.ts";
import type { DoctorReport } from "../../operations/doctor/doctor-report.ts";
import type { IsaVerdict } from "../../operations/doctor/verdict.ts";
import { formatCount, formatRatio, formatSize } from "../render/numbers.ts";
import { type Column, renderTable } from "../render/table.ts";
import { wrapText } from "../render/wrap.ts";

/** Rows of a table and findings of one kind that are printed; the rest is counted. */
const SHOWN_ROWS = 20;
const SHOWN_FINDINGS = 5;

/** What `--report` does otherwise: nothing is left out. */
interface Detail {
  readonly rows: number;
  readonly findings: number;
}

/** The report for a terminal. */
export function renderDoctor(report: DoctorReport): string {
  return render(report, { rows: SHOWN_ROWS, findings: SHOWN_FINDINGS });
}

/** The whole report, with the user's home folder taken out of paths, between fences of Markdown. */
export function renderReport(report: DoctorReport): string {
  const machine = `kpack doctor on ${process.platform} ${process.arch}, Node ${process.versions.node}`;
  const asked = report.isas.length > 0 ? report.isas.join(", ") : "all";
  const head = [
    machine,
    `Paths: ${report.paths.join(", ")}`,
    `GPUs: ${asked}${report.deep ? "; --deep" : ""}`,
  ];
  const text = render(report, { rows: Number.POSITIVE_INFINITY, findings: Number.POSITIVE_INFINITY });
  const body = `${head.map(printable).join("\n")}\n\n${text}`.replaceAll(homedir(), "~");
  return `\`\`\`text\n${body}\n\`\`\``;
}

function render(report: DoctorReport, detail: Detail): string {
  const name = shortNames(report.paths);
  const sections = [
    summary(report),
    binaryTable(report, name, detail),
    archiveTable(report, name, detail),
    coverageTable(report, name, detail),
    packageTable(report, detail),
    databaseTable(report, name, detail),
    ...renderFindings(report.findings, name, detail),
    ...report.verdicts.map((verdict) => renderVerdict(verdict, name)),
    total(report),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

function summary(report: DoctorReport): string {
  const { files, links, totalSize, bytesRead, binaries, archives } = report;
  const more = links > 0 ? `, ${formatCount(links, "link")} to them` : "";
  return wrapText(
    `Looked at ${formatCount(files, "file")} of ${formatSize(totalSize)}${more}, and read ${formatSize(bytesRead)} of ` +
      `them: ${formatCount(binaries.length, "host binary", "host binaries")} of GPU programs and libraries, ` +
      `${formatCount(archives.length, "archive")}.`,
  );
}

type Name = (path: string) => string;

/** Paths below the one that was named are shown from there. */
function shortNames(paths: readonly string[]): Name {
  const [root] = paths;
  if (root === undefined || paths.length > 1) return (path) => path;
  const roots = [root.replace(/\/+$/, ""), realPathOf(root)];
  return (path) => {
    const inside = roots.find((each) => path.startsWith(`${each}/`));
    return inside === undefined ? path : path.slice(inside.length + 1);
  };
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // it was there a moment ago; then its name stays long
  }
}

function table(
  title: string,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  detail: Detail,
): string {
  if (rows.length === 0) return "";
  const more =
    rows.length > detail.rows
      ? `\n… and ${rows.length - detail.rows} more (--json and --report list all)`
      : "";
  return `${title}\n${renderTable(columns, rows.slice(0, detail.rows))}${more}`;
}

const right = (title: string): Column => ({ title, align: "right" });

function binaryTable(report: DoctorReport, name: Name, detail: Detail): string {
  const columns = [right("WRAPPERS"), { title: "STATE" }, right("ARCHIVES"), { title: "BINARY" }];
  const rows = report.binaries.map(({ path, state, wrappers, archives }) => [
    String(wrappers),
    state,
    state === "converted" ? String(archives.length) : "-",
    name(path),
  ]);
  return table("Binaries", columns, rows, detail);
}

const UNWALKED = wrapText(
  "Not walked frame by frame, as the runtime does on opening, since it would read most of the archive (--deep does):",
);

function archiveTable(report: DoctorReport, name: Name, detail: Detail): string {
  const columns = [
    right("SIZE"),
    right("KERNELS"),
    right("CHECKED"),
    { title: "SCHEME" },
    { title: "ARCHIVE" },
  ];
  const rows = report.archives.map(({ path, size, kernels, kernelsChecked, scheme }) => [
    formatSize(size),
    String(kernels),
    String(kernelsChecked),
    scheme ?? "?",
    name(path),
  ]);
  const unwalked = report.archives
    .filter(({ walked }) => !walked)
    .map(({ path }) => `  ${printable(name(path))}`);
  if (unwalked.length === 0) return table("Archives", columns, rows, detail);
  const shown = unwalked.slice(0, detail.rows);
  const more = unwalked.length > shown.length ? [`  … and ${unwalked.length - shown.length} more`] : [];
  return [table("Archives", columns, rows, detail), UNWALKED, ...shown, ...more].join("\n");
}

function coverageTable(report: DoctorReport, name: Name, detail: Detail): string {
  const columns = [{ title: "GPU" }, right("FOUND"), right("UP TO 7.14"), right("OF"), { title: "BINARY" }];
  const rows = report.coverage.map(({ isa, wrappers, missing, missingBefore, binary }) => [
    isa,
    String(wrappers - missing.length),
    String(wrappers - missingBefore.length),
    String(wrappers),
    name(binary),
  ]);
  return table(
    "Wrappers that get a kernel, by the loader of today and that of ROCm up to 7.14",
    columns,
    rows,
    detail,
  );
}

function packageTable(report: DoctorReport, detail: Detail): string {
  const columns = [right("FILES"), right("SIZE"), { title: "PACKAGE" }];
  const rows = report.packages.map(({ name, version, files }) => [
    String(files.length),
    formatSize(files.reduce((sum, { size }) => sum + (size ?? 0), 0)),
    `${name} ${version}`,
  ]);
  return table("Python packages with archives or device libraries", columns, rows, detail);
}

function databaseTable(report: DoctorReport, name: Name, detail: Detail): string {
  const columns = [
    { title: "LIBRARY" },
    { title: "TARGET" },
    right("FILES"),
    right("CODE"),
    right("INDEX"),
    { title: "FOLDER" },
  ];
  const rows = report.databases.map(({ library, folder, target, files, code, index }) => [
    library,
    target,
    String(files),
    String(code),
    String(index),
    folder === undefined ? "-" : name(folder),
  ]);
  return table("Kernel databases", columns, rows, detail);
}

function renderFindings(findings: readonly DoctorFinding[], name: Name, detail: Detail): readonly string[] {
  return [...Map.groupBy(findings, ({ code }) => code)].map(([, group]) => {
    const shown = group.slice(0, detail.findings);
    const [first] = group;
    const lines = [`${first?.severity} ${first?.code}: ${first?.title}`];
    for (const finding of shown) lines.push(renderFinding(finding, name));
    const remedies = new Set(shown.map(({ remedy }) => remedy));
    for (const remedy of remedies) lines.push(wrapText(`  What to do: ${printable(remedy)}`, "  "));
    if (group.length > shown.length) lines.push(`  … and ${group.length - shown.length} more of this kind`);
    return lines.join("\n");
  });
}

function renderFinding({ files, evidence }: DoctorFinding, name: Name): string {
  const paths = files.map((path) => `  ${printable(name(path))}`);
  return [...paths, ...evidence.map((line) => wrapText(`    ${printable(line)}`, "      "))].join("\n");
}

const ANSWERS = {
  yes: "loads every kernel",
  partly: "gets some kernels and lacks others",
  no: "gets no kernel",
  unknown: "cannot be judged: there is no binary whose kernels are known",
} as const;

function renderVerdict(verdict: IsaVerdict, name: Name): string {
  const { isa, isas, loads, wrappers, found, foundBefore, lacking, notJudged } = verdict;
  const others = isas.filter((each) => each !== isa);
  const taken = others.length > 0 ? `, taken to run ${others.join(", ")} too` : "";
  const lines = [wrapText(`${isa}${taken}: ${ANSWERS[loads]}`, "  ")];
  if (wrappers > 0) {
    const before = foundBefore === found ? "" : `; with ROCm up to 7.14: ${foundBefore}`;
    lines.push(
      `  ${found} of ${formatCount(wrappers, "wrapper")} (${formatRatio(found, wrappers)})${before}`,
    );
  }
  for (const path of lacking.slice(0, SHOWN_FINDINGS))
    lines.push(`  lacks kernels: ${printable(name(path))}`);
  if (lacking.length > SHOWN_FINDINGS) lines.push(`  … and ${lacking.length - SHOWN_FINDINGS} more`);
  if (notJudged.length > 0) {
    lines.push(
      `  not judged: ${formatCount(notJudged.length, "binary", "binaries")} with compressed bundles (--deep)`,
    );
  }
  return lines.join("\n");
}

function total(report: DoctorReport): string {
  const count = (severity: DoctorFinding["severity"]): number =>
    report.findings.filter((finding) => finding.severity === severity).length;
  const parts = [
    formatCount(count("error"), "error"),
    formatCount(count("warning"), "warning"),
    formatCount(count("note"), "note"),
  ];
  const more = report.findings.length > 0 ? '; "kpack explain CODE" says more' : "";
  return `${parts.join(", ")}${more}`;
}
