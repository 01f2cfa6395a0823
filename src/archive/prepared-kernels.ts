import { abortable } from "../bytes/abortable.ts";
import { BufferPool } from "../bytes/buffer-pool.ts";
import { bytesEqual } from "../bytes/extent.ts";
import type { Limits } from "../bytes/limits.ts";
import { AccessError, LimitError } from "../errors/errors.ts";
import type { OnProgress } from "../errors/progress.ts";
import { loadXxh64, type Xxh64 } from "../hash/xxh64.ts";
import type { KernelCompressor, KernelInput } from "../scheme/scheme.ts";
import type { KernelBytes, KernelToWrite } from "./kernel-to-write.ts";

export interface PrepareOptions {
  readonly jobs: number;
  readonly limits: Limits;
  readonly shareIdentical: boolean;
  readonly withHashes: boolean;
  /** Told of each kernel and the ordinal under which it is stored, in the order in which the kernels come. */
  readonly onEntries: (kernel: KernelToWrite, ordinal: number) => void;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The map phase: reads kernels in order, leaves identical ones out, runs `prepareKernel` on up to `jobs` of them at
 * once and yields the results in ordinal order. It goes on only while its consumer asks for more, and never has
 * more than `2 × jobs` kernels between reading and writing.
 */
export class PreparedKernels<Input> implements AsyncIterable<Input> {
  readonly hashes: bigint[] = [];
  readonly #kernels: Iterable<KernelToWrite> | AsyncIterable<KernelToWrite>;
  readonly #compressor: KernelCompressor<Input>;
  readonly #options: PrepareOptions;
  readonly #buffers: BufferPool;
  readonly #stored: StoredKernels;
  #bytesDone = 0;
  #state: "waiting" | "running" | "finished" = "waiting";

  constructor(
    kernels: Iterable<KernelToWrite> | AsyncIterable<KernelToWrite>,
    compressor: KernelCompressor<Input>,
    options: PrepareOptions,
  ) {
    this.#kernels = kernels;
    this.#compressor = compressor;
    this.#options = options;
    this.#buffers = new BufferPool(options.jobs + 1);
    this.#stored = new StoredKernels();
  }

  /** Kernels stored so far. */
  get kernelCount(): number {
    return this.#stored.count;
  }

  /** To be called after `finalize`: a scheme that left kernels unread would write an archive that lacks them. */
  async finish(): Promise<void> {
    if (this.#state !== "finished") throw new TypeError("the scheme's finalize did not take all its inputs");
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Input> {
    if (this.#state !== "waiting")
      throw new TypeError("a scheme's finalize may go through its inputs only once");
    this.#state = "running";
    const { jobs, signal } = this.#options;
    const xxh64 = await loadXxh64();
    const queue: Promise<Input>[] = [];
    const slots = new Slots(jobs);
    try {
      for await (const item of this.#kernels) {
        signal?.throwIfAborted();
        const prepare = await this.#read(item, xxh64);
        if (prepare) {
          await abortable(slots.take(), signal);
          const promise = prepare().finally(() => slots.give());
          // A failure behind the head of the queue must not count as unhandled before its turn comes.
          promise.catch(() => undefined);
          queue.push(promise);
        }
        while (queue.length >= 2 * jobs) {
          const head = queue.shift();
          if (head) yield await abortable(head, signal);
        }
      }
      for (let head = queue.shift(); head; head = queue.shift()) yield await abortable(head, signal);
      this.#state = "finished";
    } finally {
      if (!signal?.aborted) await Promise.allSettled(queue); // an abort waits for nothing
    }
  }

  /** Reads one kernel and enters it; returns what is left to do for it, or undefined when it is stored already. */
  async #read(item: KernelToWrite, xxh64: Xxh64): Promise<(() => Promise<Input>) | undefined> {
    const { limits, shareIdentical, withHashes, signal } = this.#options;
    const { kernel } = item;
    const first = item.entries[0];
    if (!first) throw new TypeError("a kernel without entries cannot be written");
    const id = `${first.binaryKey} ${first.target}`;
    if (kernel.size > limits.kernelSize) {
      throw new LimitError("LIMIT_EXCEEDED", "the kernel is larger than the limit for one kernel", {
        field: id,
        expected: `at most ${limits.kernelSize} bytes`,
        found: kernel.size,
        hint: "Raise the limit (option limits.kernelSize) if the input is trusted.",
      });
    }
    const buffer = this.#buffers.take(kernel.size);
    let handedOver = false;
    try {
      const bytes = await kernel.read({ signal, buffer });
      checkSize(bytes, kernel, id);
      const hash = shareIdentical || withHashes ? xxh64(bytes) : 0n;
      const twin = shareIdentical ? await this.#stored.findTwin(hash, bytes, signal) : undefined;
      this.#options.onEntries(item, twin ?? this.#stored.count);
      this.#report(kernel.size);
      if (twin !== undefined) return undefined;
      this.#stored.add(hash, kernel);
      if (withHashes) this.hashes.push(hash);
      const input: KernelInput = {
        id,
        target: first.target,
        binaryKey: first.binaryKey,
        bytes,
        isStable: bytes.buffer !== buffer.buffer && bytes.buffer.byteLength <= 2 * bytes.length,
        read: async (options) => {
          const again = await kernel.read(options);
          checkSize(again, kernel, id);
          return again;
        },
      };
      handedOver = true;
      return async () => {
        try {
          return await this.#compressor.prepareKernel(input, { signal });
        } finally {
          this.#buffers.give(buffer);
        }
      };
    } finally {
      if (!handedOver) this.#buffers.give(buffer);
    }
  }

  #report(size: number): void {
    this.#bytesDone += size;
    this.#options.onProgress?.({ stage: "pack", done: this.#bytesDone, unit: "bytes" });
  }
}

function checkSize(bytes: Uint8Array, kernel: KernelBytes, id: string): void {
  if (bytes.length === kernel.size) return;
  throw new AccessError("SOURCE_CHANGED", "the kernel's size is not what it was", {
    field: id,
    expected: kernel.size,
    found: bytes.length,
  });
}

/** Finds a stored kernel with the same bytes: by size and hash, then by comparing every byte. */
class StoredKernels {
  readonly #byHash = new Map<string, { readonly ordinal: number; readonly kernel: KernelBytes }[]>();
  count = 0;

  add(hash: bigint, kernel: KernelBytes): void {
    const key = `${kernel.size}:${hash}`;
    const others = this.#byHash.get(key) ?? [];
    others.push({ ordinal: this.count, kernel });
    this.#byHash.set(key, others);
    this.count += 1;
  }

  async findTwin(
    hash: bigint,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<number | undefined> {
    for (const { ordinal, kernel } of this.#byHash.get(`${bytes.length}:${hash}`) ?? []) {
      if (bytesEqual(await kernel.read({ signal }), bytes)) return ordinal;
    }
    return undefined;
  }
}

/** At most `count` at once. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
