import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { printable } from "../bytes/text.ts";
import {
  CODE_OBJECT_HEADER_SIZE,
  identifyPayload,
  readCodeObjectHeader,
} from "../code-object/code-object.ts";
import { type Finding, type FindingSeverity, findingOrThrow } from "../errors/finding.ts";
import type { CanDecompress } from "../scheme/kernel-readers.ts";
import { targetDisagreement } from "../target/target-agreement.ts";

export interface CheckedKernel {
  readonly ordinal: number;
  /** Undefined when the kernel could not be read. */
  readonly size: number | undefined;
  readonly hashChecked: boolean;
  /** The finding that says why the kernel could not be read. */
  readonly failure: Finding | undefined;
  readonly findings: readonly Finding[];
}

/** Ids longer than that are cut in findings: one long key with many targets would fill all memory. */
const LONGEST_ID = 1024;

/** Binary key and target, for a finding. */
export function shortId({ binaryKey, target }: ArchiveEntry): string {
  const parts = [binaryKey, target].map((name) =>
    name.length > LONGEST_ID ? `${name.slice(0, LONGEST_ID)}…` : name,
  );
  return parts.join(" ");
}

/** Checks one stored kernel and the entries that point to it. */
export class KernelCheck {
  readonly #archive: Archive;
  readonly #ordinal: number;
  readonly #entries: readonly ArchiveEntry[];
  readonly #signal: AbortSignal | undefined;
  readonly #reader: CanDecompress;
  readonly #findings: Finding[] = [];
  #hashChecked = false;
  #failure: Finding | undefined;

  constructor(
    archive: Archive,
    ordinal: number,
    entries: readonly ArchiveEntry[],
    signal: AbortSignal | undefined,
    reader: CanDecompress,
  ) {
    this.#archive = archive;
    this.#ordinal = ordinal;
    this.#entries = entries;
    this.#signal = signal;
    this.#reader = reader;
  }

  async run(): Promise<CheckedKernel> {
    const bytes = await this.#read();
    if (bytes) {
      await this.#checkHash(bytes);
      const head = bytes.subarray(0, CODE_OBJECT_HEADER_SIZE);
      for (const entry of this.#entries) this.#checkEntry(entry, bytes.length, head);
    }
    return {
      ordinal: this.#ordinal,
      size: bytes?.length,
      hashChecked: this.#hashChecked,
      failure: this.#failure,
      findings: this.#findings,
    };
  }

  get #id(): string {
    const [first] = this.#entries;
    return first ? shortId(first) : `stored kernel ${this.#ordinal}`;
  }

  async #read(): Promise<Uint8Array | undefined> {
    const options = {
      expectedSize: this.#entries[0]?.originalSize,
      id: this.#id,
      signal: this.#signal,
      onFinding: (finding: Finding) => void this.#findings.push(finding),
    };
    try {
      return await this.#reader.decompressKernel(this.#ordinal, options);
    } catch (error) {
      this.#failure = findingOrThrow(error);
      this.#findings.push(this.#failure);
      return undefined;
    }
  }

  async #checkHash(bytes: Uint8Array): Promise<void> {
    const matches = await this.#archive.hashMatches(this.#ordinal, bytes);
    this.#hashChecked = matches !== undefined;
    if (matches === false)
      this.#report("error", "HASH_MISMATCH", this.#id, "the bytes are not those that were packed");
  }

  #checkEntry(entry: ArchiveEntry, size: number, head: Uint8Array): void {
    const id = shortId(entry);
    if (entry.originalSize === undefined) {
      this.#report("warning", "MISSING_ORIGINAL_SIZE", id, "the entry has no original_size");
    } else if (entry.originalSize !== size) {
      const message = `original_size is ${entry.originalSize}, the kernel has ${size} bytes`;
      this.#report("error", "SIZE_MISMATCH", id, message, `${id} original_size`);
    }
    const payload = identifyPayload(head);
    if (payload !== "code-object" || size < CODE_OBJECT_HEADER_SIZE) {
      const what =
        size === 0
          ? "it has 0 bytes"
          : payload === "code-object"
            ? "it is cut short"
            : `its bytes are: ${payload}`;
      this.#report("warning", "NOT_A_CODE_OBJECT", id, `no code object (${what})`);
      return;
    }
    const { target } = readCodeObjectHeader(head, { file: this.#archive.source.name });
    const disagreement = targetDisagreement(target, entry.target);
    if (disagreement) this.#report("error", "TARGET_MISMATCH", id, disagreement);
  }

  #report(
    severity: FindingSeverity,
    code: Finding["code"],
    id: string,
    message: string,
    field: string = id,
  ): void {
    const file = this.#archive.source.name;
    this.#findings.push({ severity, code, message: `${printable(id)}: ${message}`, file, field });
  }
}
