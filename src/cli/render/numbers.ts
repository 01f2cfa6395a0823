const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** A size for people, in powers of 1000: `1 byte`, `812 bytes`, `68.4 MB`. */
export function formatSize(bytes: number): string {
  if (bytes === 1) return "1 byte";
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 999.95 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 99.95 ? 1 : 0)} ${UNITS[unit] ?? ""}`;
}

/** A part of a whole as a percentage: `15.8%`; nothing of nothing is `-`. */
export function formatRatio(part: number, whole: number): string {
  return whole === 0 ? "-" : `${((100 * part) / whole).toFixed(1)}%`;
}

/** `1 kernel`, `777 kernels`. */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  // By hand: the first use of Intl takes longer than many a command.
  return `${String(count).replace(/\B(?=(?:\d{3})+$)/g, ",")} ${count === 1 ? noun : plural}`;
}
