/**
 * A reporter for Node's test runner: prints what failed and what was skipped, and last one line that counts all,
 * `N passed, N failed, N skipped`. Suites are not counted, the tests in them are.
 */
interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name?: string;
    readonly file?: string;
    readonly nesting?: number;
    readonly skip?: string | boolean;
    readonly todo?: string | boolean;
    readonly details?: { readonly type?: string; readonly error?: Error & { readonly cause?: unknown } };
    readonly message?: string;
  };
}

export default async function* countReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for await (const { type, data } of source) {
    if (type === "test:stderr" || type === "test:stdout") {
      if (process.env["KPACK_TEST_OUTPUT"]) yield data.message ?? "";
      continue;
    }
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    if (type === "test:fail") {
      failed += 1;
      const { error } = data.details ?? {};
      const cause =
        error?.cause instanceof Error
          ? (error.cause.stack ?? error.cause.message)
          : String(error?.message ?? "");
      yield `FAILED ${data.file ?? ""}: ${data.name ?? ""}\n${cause}\n\n`;
    } else if (data.skip !== undefined && data.skip !== false) {
      skipped += 1;
      yield `skipped ${data.name ?? ""}${typeof data.skip === "string" && data.skip !== "" ? `: ${data.skip}` : ""}\n`;
    } else passed += 1;
  }
  // In CI everything that tests need is installed, so a skipped test is a fault of CI's own.
  if (process.env["CI"] && skipped > 0) process.exitCode = 1;
  yield `${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}
