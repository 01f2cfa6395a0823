import assert from "node:assert/strict";
import { isKpackError, type KpackError, type KpackErrorCode } from "../../src/index.ts";

/** The library's error that `action` must reject with; any other outcome fails the test. */
export async function kpackError(
  action: () => Promise<unknown>,
  code?: KpackErrorCode,
  field?: RegExp,
): Promise<KpackError> {
  let result: unknown;
  try {
    result = await action();
  } catch (error) {
    if (!isKpackError(error)) throw error;
    if (code !== undefined) assert.equal(error.code, code, error.message);
    if (field !== undefined) assert.match(error.field ?? "(no field)", field, error.message);
    return error;
  }
  assert.fail(`expected ${code ?? "an error"}, but it succeeded with ${String(result)}`);
}
