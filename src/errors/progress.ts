/** How far a long job is. */
export interface Progress {
  /** What is going on, for example `pack`. */
  readonly stage: string;
  /** Units done so far; the unit is the stage's own: bytes or kernels. */
  readonly done: number;
  /** Units in all, where that is known. */
  readonly total?: number | undefined;
  readonly unit: "bytes" | "kernels" | "files";
}

/** The one callback type through which long work reports how far it is. */
export type OnProgress = (progress: Progress) => void;
