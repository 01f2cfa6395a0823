/** A small writer of scatter plots as SVG: points in series, logarithmic axes, labels beside the points. */

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly label: string;
}

export interface Series {
  readonly name: string;
  readonly colour: string;
  readonly shape: "circle" | "square";
  readonly points: readonly Point[];
}

export interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
}

export interface PlotOptions {
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
}

interface Range {
  readonly least: number;
  readonly most: number;
}

const PANEL_WIDTH = 340;
const PANEL_HEIGHT = 300;
const LEFT = 56;
const TOP = 56;
const GAP = 28;
const BOTTOM = 76;

/** Panels side by side with the same axes. */
export function scatterPlot(panels: readonly Panel[], options: PlotOptions): string {
  const points = panels.flatMap(({ series }) => series.flatMap(({ points: own }) => own));
  const x = rangeOf(points.map((point) => point.x));
  const y: Range = { least: 0, most: Math.max(1.05, ...points.map((point) => point.y)) };
  const width = LEFT + panels.length * (PANEL_WIDTH + GAP);
  const height = TOP + PANEL_HEIGHT + BOTTOM;
  const parts = panels.map((panel, index) =>
    renderPanel(panel, LEFT + index * (PANEL_WIDTH + GAP), x, y, index === 0),
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escape(options.title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(LEFT, 20, options.title, { size: 15, weight: "bold" }),
    ...parts,
    text(width / 2, TOP + PANEL_HEIGHT + 38, options.xTitle, { anchor: "middle" }),
    `<text x="14" y="${TOP + PANEL_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 ${TOP + PANEL_HEIGHT / 2})">${escape(options.yTitle)}</text>`,
    legend(panels[0]?.series ?? [], height - 14),
    "</svg>",
  ].join("\n")}\n`;
}

function renderPanel(panel: Panel, left: number, x: Range, y: Range, withLabels: boolean): string {
  const placeX = (value: number): number =>
    left + (PANEL_WIDTH * Math.log(value / x.least)) / Math.log(x.most / x.least);
  const placeY = (value: number): number =>
    TOP + PANEL_HEIGHT * (1 - (value - y.least) / (y.most - y.least));
  const parts = [
    text(left + PANEL_WIDTH / 2, TOP - 10, panel.title, { anchor: "middle", weight: "bold" }),
    `<rect x="${left}" y="${TOP}" width="${PANEL_WIDTH}" height="${PANEL_HEIGHT}" fill="none" stroke="#888888"/>`,
  ];
  for (const value of ticksOf(x)) {
    parts.push(line(placeX(value), TOP, placeX(value), TOP + PANEL_HEIGHT));
    parts.push(text(placeX(value), TOP + PANEL_HEIGHT + 16, String(value), { anchor: "middle", size: 11 }));
  }
  for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    parts.push(line(left, placeY(value), left + PANEL_WIDTH, placeY(value)));
    if (withLabels) {
      parts.push(text(left - 6, placeY(value) + 4, value.toFixed(1), { anchor: "end", size: 11 }));
    }
  }
  for (const { points, colour, shape } of panel.series) {
    for (const point of points) {
      const [atX, atY] = [placeX(point.x), placeY(point.y)];
      parts.push(marker(atX, atY, colour, shape));
      const isRight = atX > left + PANEL_WIDTH - 60;
      const anchor = isRight ? "end" : "start";
      parts.push(text(atX + (isRight ? -8 : 8), atY + 4, point.label, { anchor, size: 11 }));
    }
  }
  return parts.join("\n");
}

function legend(series: readonly Series[], y: number): string {
  return series
    .map(({ name, colour, shape }, index) => {
      const x = LEFT + 8 + index * 220;
      return `${marker(x, y - 4, colour, shape)}\n${text(x + 10, y, name)}`;
    })
    .join("\n");
}

function marker(x: number, y: number, colour: string, shape: Series["shape"]): string {
  return shape === "circle"
    ? `<circle cx="${round(x)}" cy="${round(y)}" r="5" fill="${colour}"/>`
    : `<rect x="${round(x - 4.5)}" y="${round(y - 4.5)}" width="9" height="9" fill="${colour}"/>`;
}

function line(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="#e4e4e4"/>`;
}

function text(
  x: number,
  y: number,
  content: string,
  style: {
    readonly anchor?: "start" | "middle" | "end";
    readonly size?: number;
    readonly weight?: "bold";
  } = {},
): string {
  const attributes = [
    style.anchor ? ` text-anchor="${style.anchor}"` : "",
    style.size ? ` font-size="${style.size}"` : "",
    style.weight ? ` font-weight="${style.weight}"` : "",
  ].join("");
  return `<text x="${round(x)}" y="${round(y)}"${attributes}>${escape(content)}</text>`;
}

/** The range of a logarithmic axis, with room at both ends. */
function rangeOf(values: readonly number[]): Range {
  return { least: Math.min(...values) / 1.3, most: Math.max(...values) * 1.3 };
}

/** 1, 2 and 5 times powers of ten. */
function ticksOf({ least, most }: Range): readonly number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    for (const digit of [1, 2, 5]) {
      const value = Number(`${digit}e${power}`);
      if (value >= least && value <= most) ticks.push(value);
    }
  }
  return ticks;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
