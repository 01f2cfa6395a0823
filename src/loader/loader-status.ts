/** Names and numbers under which ROCm's loader fails; people search the web for the number. */

const NUMBERS = {
  KPACK_ERROR_INVALID_ARGUMENT: 1,
  KPACK_ERROR_FILE_NOT_FOUND: 2,
  KPACK_ERROR_INVALID_FORMAT: 3,
  KPACK_ERROR_UNSUPPORTED_VERSION: 4,
  KPACK_ERROR_KERNEL_NOT_FOUND: 5,
  KPACK_ERROR_DECOMPRESSION_FAILED: 6,
  KPACK_ERROR_OUT_OF_MEMORY: 7,
  KPACK_ERROR_NOT_IMPLEMENTED: 8,
  KPACK_ERROR_IO_ERROR: 9,
  KPACK_ERROR_MSGPACK_PARSE_FAILED: 10,
  KPACK_ERROR_PATH_DISCOVERY_FAILED: 11,
  KPACK_ERROR_INVALID_METADATA: 12,
  KPACK_ERROR_ARCHIVE_NOT_FOUND: 13,
  KPACK_ERROR_ARCH_NOT_FOUND: 14,
} as const;

export type RocmStatusName = keyof typeof NUMBERS;

/** How a load ended when it failed. */
export interface LoaderStatus {
  /**
   * `KPACK_ERROR_…`; or, without a number, `HRX_LIMIT` for a bound of HRX and `PROCESS_ENDS` where the loader does not
   * come to answer.
   */
  readonly name: RocmStatusName | "HRX_LIMIT" | "PROCESS_ENDS";
  /** What HIP logs: `kpack_load_code_object failed with error: N`. */
  readonly number: number | undefined;
}

export function loaderStatus(name: LoaderStatus["name"]): LoaderStatus {
  const isNumbered = name !== "HRX_LIMIT" && name !== "PROCESS_ENDS";
  return { name, number: isNumbered ? NUMBERS[name] : undefined };
}

/** `KPACK_ERROR_ARCHIVE_NOT_FOUND (13)`. */
export function formatStatus(status: LoaderStatus): string {
  return status.number === undefined ? status.name : `${status.name} (${status.number})`;
}
