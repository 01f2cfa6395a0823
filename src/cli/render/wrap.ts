/** Text output fits so many columns; only what cannot be broken, such as a path, may be longer. */
export const TEXT_WIDTH = 100;

/**
 * Breaks text at spaces so that lines fit. The first line keeps the spaces that the text begins with; `indent` stands
 * in front of the others.
 */
export function wrapText(text: string, indent = "", width: number = TEXT_WIDTH): string {
  const start = /^ */.exec(text)?.[0] ?? "";
  const [first = "", ...words] = text.slice(start.length).split(" ");
  const lines: string[] = [];
  let line = start + first;
  for (const word of words) {
    if (line.length + 1 + word.length <= width) {
      line += ` ${word}`;
      continue;
    }
    lines.push(line);
    line = indent + word;
  }
  return [...lines, line].join("\n");
}
