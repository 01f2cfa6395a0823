import { availableParallelism } from "node:os";

/** One more than there are processors, since now and then a job waits for the disk. */
export function defaultJobs(): number {
  return availableParallelism() + 1;
}
