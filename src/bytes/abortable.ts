/**
 * The promise's result, or the signal's reason as soon as it aborts. What the promise does goes on: its result is
 * dropped, and so is its failure.
 */
export async function abortable<Result>(
  promise: Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  if (!signal) return await promise;
  // Before anything throws: nobody else may look at a promise whose result is dropped.
  promise.catch(() => undefined);
  signal.throwIfAborted();
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (stop) signal.removeEventListener("abort", stop);
  }
}
