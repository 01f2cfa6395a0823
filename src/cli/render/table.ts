import { printable } from "../../bytes/text.ts";

export interface Column {
  readonly title: string;
  /** Numbers stand at the right. @default "left" */
  readonly align?: "left" | "right" | undefined;
}

/**
 * A plain table: columns two spaces apart, a line for the titles. The last column is not padded, so that long names
 * at the end cost nothing; text from files is made safe for a terminal.
 */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => row.map(printable))];
  const widths = columns.map((_, column) =>
    cells.reduce((width, row) => Math.max(width, (row[column] ?? "").length), 0),
  );
  const lines = cells.map((row) =>
    columns
      .map(({ align }, column) => {
        const text = row[column] ?? "";
        const width = widths[column] ?? 0;
        return align === "right" ? text.padStart(width) : text.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
  return lines.join("\n");
}
