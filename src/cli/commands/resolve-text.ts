import { printable } from "../../bytes/text.ts";
import type { PathStep } from "../../loader/archive-search.ts";
import { formatStatus } from "../../loader/loader-status.ts";
import type { CandidateStep } from "../../loader/resolve.ts";
import { fileNameOf } from "../../loader/search-paths.ts";
import type { ResolveReport, WrapperAnswer } from "../../operations/resolve.node.ts";
import { formatCount, formatSize } from "../render/numbers.ts";
import { renderTable } from "../render/table.ts";
import { wrapText } from "../render/wrap.ts";

/** The report as text: every step for one wrapper, or a table of all. */
export function renderResolution(report: ResolveReport, oneWrapper: boolean): string {
  const [first] = report.wrappers;
  const sections = oneWrapper && first ? renderOne(report, first) : renderAll(report);
  return sections.join("\n\n");
}

function renderOne(report: ResolveReport, { wrapper, answer, remedy }: WrapperAnswer): readonly string[] {
  const candidates = answer.candidates.map((candidate, number) => renderCandidate(candidate, number + 1));
  const sections = [
    ...renderRequest(report, `wrapper ${wrapper}, key ${printable(answer.key)}`),
    ["Candidates, in the order in which they are tried", ...orNone(candidates)].join("\n"),
  ];
  const { kernel, failure } = answer;
  if (kernel) {
    const note = answer.candidates.find(({ outcome }) => outcome === "found")?.reason;
    const lines = [
      `Found: ordinal ${kernel.ordinal}, ${formatSize(kernel.size)}, for ${printable(kernel.target)}`,
      `  ${printable(kernel.archive)}`,
      `  XXH64    ${kernel.xxh64 ?? ""}${kernel.hashMatches === true ? ", as the archive says" : ""}`,
      `  SHA-256  ${kernel.sha256 ?? ""}`,
    ];
    sections.push(
      [...lines, ...(note === undefined ? [] : [wrapText(`  Note: ${note}`, "    ")])].join("\n"),
    );
  }
  if (failure) {
    const lines = [
      wrapText(`Not found: ${formatStatus(failure.status)}: ${printable(failure.reason)}`, "  "),
      ...(remedy === undefined ? [] : [wrapText(`  What to do: ${printable(remedy)}`, "  ")]),
      ...(failure.status.name === "PROCESS_ENDS"
        ? []
        : ["  HIP says hipErrorInvalidImage: device kernel image is invalid."]),
    ];
    sections.push(lines.join("\n"));
  }
  return sections;
}

function renderAll(report: ResolveReport): readonly string[] {
  const { wrappers } = report;
  const rows = wrappers.map(({ wrapper, answer }) => [
    String(wrapper),
    `#${answer.index}`,
    answer.kernel?.target ?? "-",
    answer.kernel ? formatSize(answer.kernel.size) : "-",
    answer.kernel
      ? fileNameOf(answer.kernel.archive)
      : answer.failure
        ? formatStatus(answer.failure.status)
        : "",
  ]);
  const columns = [
    { title: "WRAPPER", align: "right" },
    { title: "INDEX", align: "right" },
    { title: "TARGET" },
    { title: "SIZE", align: "right" },
    { title: "ARCHIVE OR FAILURE" },
  ] as const;
  const sections = [
    ...renderRequest(report, formatCount(wrappers.length, "wrapper")),
    renderTable(columns, rows),
  ];
  const failures = Map.groupBy(
    wrappers.filter(({ answer }) => answer.failure !== undefined),
    ({ answer, remedy }) => `${answer.failure?.status.name} ${remedy}`,
  );
  for (const [, group] of failures) {
    const [first] = group;
    if (!first?.answer.failure) continue;
    const { status, reason } = first.answer.failure;
    const which = formatCount(group.length, "wrapper");
    const lines = [wrapText(`${which}: ${formatStatus(status)}: ${printable(reason)}`, "  ")];
    if (first.remedy !== undefined) lines.push(wrapText(`  What to do: ${printable(first.remedy)}`, "  "));
    sections.push(lines.join("\n"));
  }
  const found = wrappers.filter(({ answer }) => answer.kernel !== undefined).length;
  sections.push(`${found} of ${formatCount(wrappers.length, "wrapper")} found`);
  return sections;
}

function renderRequest(report: ResolveReport, what: string): readonly string[] {
  const { binary, metadata, environment, search, isas, behaviour, notes } = report;
  const head = [
    printable(binary),
    `  ${what}`,
    wrapText(`  for ${printable(isas.join(", then "))}; loader: ${behaviour}`, "    "),
    ...notes.map((note) => wrapText(`  Note: ${printable(note)}`, "    ")),
  ];
  const facts = metadata
    ? [
        `  kernel_name  ${printable(metadata.kernelName)}`,
        ...metadata.searchPaths.map((path) => `  search path  ${printable(path)}`),
      ]
    : ["  cannot be read"];
  const variables = Object.entries(environment.variables).map(
    ([name, value]) => `  ${name}=${printable(value)}`,
  );
  const paths = (search?.paths ?? []).map((path, index) => renderPath(path, index + 1));
  return [
    head.join("\n"),
    ["HIPK metadata", ...facts].join("\n"),
    ["Environment (only what --env gives)", ...orNone(variables)].join("\n"),
    ["Paths, in the order in which they are looked at", ...orNone(paths)].join("\n"),
  ];
}

const FATES = {
  opened: "opened",
  missing: "missing",
  "no-regular-file": "skipped",
  "cannot-be-opened": "BROKEN",
} as const;

function renderPath(step: PathStep, number: number): string {
  const { fate, path, reason, status, openedBefore } = step;
  const origin =
    step.origin === "embedded" ? "" : `, ${step.origin === "override" ? "ROCM_KPACK_PATH" : "prefix"}`;
  const line = `  ${String(number).padStart(2)}  ${FATES[fate].padEnd(8)}${printable(path)}`;
  const more = [
    openedBefore ? "opened before" : undefined,
    status ? formatStatus(status) : undefined,
    reason,
  ].filter((part) => part !== undefined);
  const text = printable(more.join(": ") + origin).replace(/^, /, "");
  return text === "" ? line : `${line}\n${wrapText(`              (${text})`, "               ")}`;
}

function renderCandidate(step: CandidateStep, number: number): string {
  const { target, archive, outcome, status, reason } = step;
  const result = outcome === "not-tried" ? "not tried" : status ? formatStatus(status) : "found";
  const line = `  ${String(number).padStart(2)}  ${printable(target)}: ${result}, ${printable(fileNameOf(archive))}`;
  return wrapText(reason === undefined ? line : `${line}: ${printable(reason)}`, "      ");
}

function orNone(lines: readonly string[]): readonly string[] {
  return lines.length > 0 ? lines : ["  none"];
}
