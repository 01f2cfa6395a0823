import { AccessError } from "../../src/errors/errors.ts";
import type { ReadOptions, Source } from "../../src/source/source.ts";

export interface RecordedRead {
  readonly offset: number;
  readonly length: number;
}

/** Passes reads on and remembers them, and whether the source was disposed of. */
export class CountingSource implements Source {
  readonly name: string;
  readonly size: number;
  reads: RecordedRead[] = [];
  disposals = 0;
  readonly #inner: Source;

  constructor(inner: Source) {
    this.#inner = inner;
    this.name = inner.name;
    this.size = inner.size;
  }

  async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
    this.reads.push({ offset, length });
    return await this.#inner.read(offset, length, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disposals += 1;
    await this.#inner[Symbol.asyncDispose]();
  }

  /** The reads since the last call. */
  take(): readonly RecordedRead[] {
    const reads = this.reads;
    this.reads = [];
    return reads;
  }
}

/** A source whose reads fail at will: `failAt` counts down from the moment when it is set. */
export class FaultySource implements Source {
  readonly name: string;
  readonly size: number;
  /** The error that the next fault throws. */
  fault: Error = new AccessError("READ_FAILED", "the disk is gone", { file: "faulty" });
  /** 1: the next read fails. 0: none does. */
  failAt = 0;
  readCount = 0;
  disposals = 0;
  readonly #inner: Source;

  constructor(inner: Source) {
    this.#inner = inner;
    this.name = inner.name;
    this.size = inner.size;
  }

  async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
    this.readCount += 1;
    if (this.failAt > 0) {
      this.failAt -= 1;
      if (this.failAt === 0) {
        await new Promise((resolve) => setImmediate(resolve));
        throw this.fault;
      }
    }
    return await this.#inner.read(offset, length, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disposals += 1;
  }
}

/** The bytes of a real source, but answered later and out of order: what reads at the same time must survive. */
export function slowSource(inner: Source): Source {
  let turn = 0;
  return {
    name: inner.name,
    size: inner.size,
    async read(offset, length, options): Promise<Uint8Array> {
      turn += 1;
      for (let wait = turn % 4; wait > 0; wait--) await new Promise((resolve) => setImmediate(resolve));
      return await inner.read(offset, length, options);
    },
    async [Symbol.asyncDispose](): Promise<void> {},
  };
}
