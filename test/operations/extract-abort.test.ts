import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { abortable } from "../../src/bytes/abortable.ts";

describe("a promise that is no longer waited for", () => {
  it("may fail unheard, also when the signal was aborted before", async (context) => {
    const unheard: unknown[] = [];
    const listen = (reason: unknown): void => void unheard.push(reason);
    process.on("unhandledRejection", listen);
    context.after(() => process.removeListener("unhandledRejection", listen));
    const early = AbortSignal.abort(new Error("enough"));
    await assert.rejects(abortable(Promise.reject(new Error("at once")), early), /enough/);
    const late = new AbortController();
    const { promise, reject } = Promise.withResolvers<never>();
    const waiting = abortable(promise, late.signal);
    late.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    reject(new Error("afterwards"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(unheard, []);
  });

  it("still gives its result or failure while nobody aborts", async () => {
    const { signal } = new AbortController();
    assert.equal(await abortable(Promise.resolve(3), signal), 3);
    await assert.rejects(abortable(Promise.reject(new Error("its own")), signal), /its own/);
  });
});
