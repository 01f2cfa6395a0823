/** The only place that turns 64-bit integers of a file into numbers. */

/** A u64 or i64 as a number, or undefined where a number cannot hold it exactly. */
export function safeNumber(value: bigint): number | undefined {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : undefined;
}

/** A 64-bit value as it should stand in a message: decimal when small, else hexadecimal. */
export function describeUint64(value: bigint): string {
  return safeNumber(value) === undefined ? `0x${BigInt.asUintN(64, value).toString(16)}` : value.toString();
}
