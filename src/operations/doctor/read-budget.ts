/** Of each archive so many bytes may be read in any case. */
export const LEAST_BUDGET = 65536;
/** All archives together may have so many bytes read: enough to look at every kernel of a small install. */
const BUDGET_OF_ALL = 32 * 1024 * 1024;

/** What one of so many archives may have read. */
export function shareOfAll(archiveCount: number): number {
  return Math.max(LEAST_BUDGET, BUDGET_OF_ALL / Math.max(1, archiveCount));
}

/**
 * Archives without frame offsets are walked frame by frame, one small read each; with frames up to this size on
 * average the walk reads all bytes.
 */
export const SMALL_FRAME = 8192;
