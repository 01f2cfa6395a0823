/** Whose loader: ROCm's of today, ROCm's up to 7.14, or HRX's. */
export type LoaderBehaviour = "current" | "before-2026-08" | "hrx";

export const LOADER_BEHAVIOURS: readonly LoaderBehaviour[] = ["current", "before-2026-08", "hrx"];
