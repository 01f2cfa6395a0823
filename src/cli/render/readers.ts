import { printable } from "../../bytes/text.ts";
import type { Finding } from "../../errors/finding.ts";
import type { ReaderVerdict } from "../../operations/reader-acceptance.ts";
import { wrapText } from "./wrap.ts";

/** Text for people about who else reads an archive: readers of which the same is said share their lines. */
export function renderReaders(
  readers: readonly ReaderVerdict[],
  findings: readonly Finding[],
): readonly string[] {
  if (readers.length > 0 && readers.every(({ accepts }) => accepts)) {
    // Only the two versions of the runtime pass over targets, and both the same ones.
    const missed = readers.find(({ missedTargets }) => missedTargets.length > 0)?.missedTargets ?? [];
    const but = missed.length > 0 ? `, but the runtime finds no kernel for ${missed.join(", ")}` : "";
    const text = `Accepted by ROCm's Python tools, both versions of its runtime, and HRX${but}.`;
    return [wrapText(printable(text), "  ")];
  }
  const groups = Map.groupBy(readers, (reader) => judgement(reader, findings));
  return [...groups].flatMap(([text, group]) => {
    if (text === undefined) return [];
    const titles = group.map(({ title }) => title).join(", ");
    return [wrapText(printable(`${titles}: ${text}`), "  ")];
  });
}

/** Undefined where there is nothing to say against it. */
function judgement(reader: ReaderVerdict, findings: readonly Finding[]): string | undefined {
  const { reasons, unknown, missedTargets } = reader;
  const shown = (texts: readonly string[]): string =>
    texts.map((text) => withoutMessage(text, findings)).join("; ");
  if (reasons.length > 0) return `would refuse it: ${shown(reasons)}`;
  if (unknown.length > 0) return `not known: ${shown(unknown)}`;
  if (missedTargets.length > 0) return `would accept it, but finds no kernel for ${missedTargets.join(", ")}`;
  return undefined;
}

/** What is said above as a finding is named by its code alone. */
function withoutMessage(text: string, findings: readonly Finding[]): string {
  const finding = findings.find(({ message }) => text.endsWith(`: ${message}`));
  return finding ? `${text.slice(0, -finding.message.length - 2)} [${finding.code}]` : text;
}
