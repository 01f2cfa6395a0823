import { type KpackError, isKpackError, type KpackErrorCode } from "./errors.ts";

/** `error`: something contradicts itself or cannot be read. `warning`: odd, but every byte can be read. */
export type FindingSeverity = "error" | "warning" | "note";

/** Something about a file that a caller should know, without stopping the work. */
export interface Finding {
  readonly severity: FindingSeverity;
  /** Stable name of the kind of finding; for severity `error` often the code of the error behind it. */
  readonly code: FindingCode;
  readonly message: string;
  readonly file?: string | undefined;
  /** The field or structure. */
  readonly field?: string | undefined;
  /** Absolute byte offset in the file. */
  readonly offset?: number | undefined;
}

/** Kinds of findings that are no errors. */
export type OddityCode =
  | "TRAILING_BYTES"
  | "MISSING_FIELD"
  | "FORMAT_VERSION_FIELD"
  | "AREA_BEFORE_64"
  | "UNKNOWN_FIELD"
  | "EXTENTS_OVERLAP"
  | "UNUSED_BYTES"
  | "UNREFERENCED_KERNEL"
  | "MISSING_ORIGINAL_SIZE"
  | "UNSAFE_PATH"
  | "TARGET_NOT_LISTED"
  | "TARGET_WITHOUT_KERNELS"
  | "NOT_A_CODE_OBJECT"
  | "TARGET_MISMATCH"
  | "UNKNOWN_TARGET_NAME"
  | "NO_CONTENT_SIZE"
  | "SKIPPABLE_FRAME"
  | "HASH_MISMATCH"
  | "WRONG_HASH_FIELD"
  | "EMPTY_ENTRY"
  | "DUPLICATE_ENTRY_ID"
  | "BUNDLE_HASH_MISMATCH"
  | "UNKNOWN_CONTAINER"
  | "WRAPPER_REMAINDER"
  | "EMPTY_WRAPPER"
  | "WRAPPER_WITHOUT_BUNDLE"
  | "BUNDLE_WITHOUT_WRAPPER"
  | "NO_BYTES_IN_FILE"
  | "SKIPPED_ENTRY"
  | "SKIPPED_FILE"
  | "ALREADY_CONVERTED"
  | "UNKNOWN_BYTES";

/** The stable name of a kind of finding. */
export type FindingCode = OddityCode | KpackErrorCode;

/** Receives findings as they are made. */
export type OnFinding = (finding: Finding) => void;

/** The finding that says what an error says. */
export function findingOfError(error: KpackError): Finding {
  return {
    severity: "error",
    code: error.code,
    message: error.message,
    file: error.file,
    field: error.field,
    offset: error.offset,
  };
}

/** Rethrows everything that is not about the file's content: aborts, failed reads, faults of the program. */
export function findingOrThrow(error: unknown): Finding {
  if (isKpackError(error) && error.name !== "AccessError") return findingOfError(error);
  throw error;
}
