import cliProgress from "cli-progress";
import type { OnProgress, Progress } from "../errors/progress.ts";
import { formatSize } from "./render/numbers.ts";

/** Without a terminal: a line after so many milliseconds at the earliest, so that short work prints nothing. */
const LINE_INTERVAL = 10_000;

/** A bar on a terminal, a plain line now and then elsewhere. Closing it leaves the terminal clean. */
export function progressReporter(stream: NodeJS.WriteStream): {
  readonly onProgress: OnProgress;
  readonly close: () => void;
} {
  return stream.isTTY ? barReporter(stream) : lineReporter(stream);
}

function barReporter(stream: NodeJS.WriteStream): {
  readonly onProgress: OnProgress;
  readonly close: () => void;
} {
  const bar = new cliProgress.SingleBar({
    stream,
    format: "{stage} [{bar}] {percentage}% {amount} {eta_formatted} left",
    barCompleteChar: "#",
    barIncompleteChar: "-",
    hideCursor: true,
    clearOnComplete: true,
    fps: 8,
  });
  let started = false;
  return {
    onProgress: (progress) => {
      const total = progress.total ?? 0;
      if (total === 0) return;
      const payload = { stage: progress.stage, amount: amount(progress) };
      if (started) bar.update(Math.min(progress.done, total), payload);
      else bar.start(total, progress.done, payload);
      started = true;
    },
    close: () => bar.stop(),
  };
}

function lineReporter(stream: NodeJS.WriteStream): {
  readonly onProgress: OnProgress;
  readonly close: () => void;
} {
  let next = Date.now() + LINE_INTERVAL;
  return {
    onProgress: (progress) => {
      if (Date.now() < next || progress.total === undefined) return;
      next = Date.now() + LINE_INTERVAL;
      const percent = Math.floor((100 * progress.done) / Math.max(1, progress.total));
      stream.write(`${progress.stage}: ${percent}% (${amount(progress)})\n`);
    },
    close: () => undefined,
  };
}

function amount(progress: Progress): string {
  const total = progress.total ?? progress.done;
  if (progress.unit === "bytes") return `${formatSize(progress.done)} of ${formatSize(total)}`;
  return `${progress.done} of ${total} ${progress.unit}`;
}
