import { memorySink, type Sink, type Source } from "../../src/node.ts";

/** A sink into memory whose call number `failAt` (of write and patch, from 1) rejects with `fault`. */
export class FaultySink implements Sink {
  readonly name = "faulty";
  readonly fault: Error = new Error("the disk is full");
  failAt: number;
  callCount = 0;
  readonly #inner = memorySink();

  constructor(failAt: number) {
    this.failAt = failAt;
  }

  get position(): number {
    return this.#inner.position;
  }

  bytes(): Uint8Array {
    return this.#inner.bytes();
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#count();
    await this.#inner.write(bytes);
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    await this.#count();
    await this.#inner.patch(offset, bytes);
  }

  async reopen(): Promise<Source> {
    return await this.#inner.reopen();
  }

  async commit(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}

  async #count(): Promise<void> {
    this.callCount += 1;
    await new Promise((resolve) => setImmediate(resolve));
    if (this.callCount === this.failAt) throw this.fault;
  }
}

/** Counts bytes and keeps none, to write archives that no memory holds. */
export class CountingSink implements Sink {
  readonly name = "counting";
  position = 0;

  async write(bytes: Uint8Array): Promise<void> {
    this.position += bytes.length;
  }

  async patch(): Promise<void> {}

  async reopen(): Promise<Source> {
    return await Promise.reject(new Error("nothing was kept"));
  }

  async commit(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
