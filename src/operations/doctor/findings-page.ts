import { FINDING_KINDS, type FindingKind } from "./finding-codes.ts";

const GROUPS: readonly (readonly [string, string])[] = [
  ["KP1", "Host binaries"],
  ["KP2", "Pairs of binaries and archives"],
  ["KP3", "Archives"],
  ["KP4", "Program headers"],
  ["KP5", "Python packages"],
  ["KP6", "Kernel databases"],
  ["KP7", "Access"],
];

/** The text of docs/findings.md, from the table of codes. */
export function renderFindingsPage(): string {
  const parts = [
    "# Findings of kpack doctor",
    "Each finding has a code that stays the same across versions. `kpack explain KP101` prints what stands here. " +
      "An error means that a program fails or gets a wrong kernel, a warning that it may; a note is worth knowing. " +
      "`kpack doctor` ends with exit status 1 when there is an error.",
    "This page is made from the table in `src/operations/doctor/finding-codes.ts`; a test compares the two.",
  ];
  for (const [prefix, title] of GROUPS) {
    parts.push(`## ${title}`);
    for (const kind of FINDING_KINDS.filter(({ code }) => code.startsWith(prefix)))
      parts.push(renderKind(kind));
  }
  return `${parts.join("\n\n")}\n`;
}

function renderKind({ code, title, severity, meaning, cause, remedy }: FindingKind): string {
  return [
    `### ${code}: ${title}`,
    `Severity: ${severity}.`,
    meaning,
    `Usual cause: ${cause}`,
    `What to do: ${remedy}`,
  ].join("\n\n");
}
