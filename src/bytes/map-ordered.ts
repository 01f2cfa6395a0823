import { abortable } from "./abortable.ts";

/**
 * Applies `task` to each item, up to `jobs` at once, and yields the results in the items' order.
 * When the consumer stops or a task fails, tasks that run already are waited for and their results dropped; an abort
 * waits for nothing.
 */
export async function* mapOrdered<Item, Result>(
  items: Iterable<Item>,
  jobs: number,
  task: (item: Item) => Promise<Result>,
  signal?: AbortSignal,
): AsyncGenerator<Result> {
  if (!Number.isInteger(jobs) || jobs < 1)
    throw new RangeError(`jobs must be a positive integer, got ${jobs}`);
  const running: Promise<Result>[] = [];
  try {
    for (const item of items) {
      const promise = task(item);
      // A failure behind the head of the queue must not count as unhandled before its turn comes.
      promise.catch(() => undefined);
      running.push(promise);
      const head = running.length >= jobs ? running.shift() : undefined;
      if (head) yield await abortable(head, signal);
    }
    for (let head = running.shift(); head; head = running.shift()) yield await abortable(head, signal);
  } finally {
    if (!signal?.aborted) await Promise.allSettled(running);
  }
}
