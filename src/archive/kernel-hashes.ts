import type { OnFinding } from "../errors/finding.ts";
import type { NewSchemeFields, SchemeFields } from "../scheme/scheme.ts";

const ALGORITHM_FIELD = "kernel_hash_algorithm";
const HASHES_FIELD = "kernel_hashes";
const ALGORITHM = "xxh64";

/** Names of the archive's own extra fields, which a rewrite makes anew. */
export const HASH_FIELD_NAMES: readonly string[] = [ALGORITHM_FIELD, HASHES_FIELD];

/**
 * The optional TOC fields `kernel_hash_algorithm` (`"xxh64"`) and `kernel_hashes`: a MessagePack bin with, by ordinal,
 * the XXH64 (seed 0) of the kernel's uncompressed bytes as a little-endian u64. Readers that do not know them skip them.
 */
export class KernelHashes {
  readonly #view: DataView;

  private constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The hashes of an archive, or undefined where it has none that are understood. */
  static open(fields: SchemeFields, file: string, onFinding: OnFinding): KernelHashes | undefined {
    if (!fields.has(HASHES_FIELD)) return undefined;
    const algorithm = fields.get(ALGORITHM_FIELD);
    const hashes = fields.get(HASHES_FIELD);
    if (algorithm === ALGORITHM && hashes instanceof Uint8Array && hashes.length % 8 === 0)
      return new KernelHashes(hashes);
    onFinding({
      severity: "warning",
      code: "WRONG_HASH_FIELD",
      message: `the kernels' hashes are not in a form that is known here, so they are not checked`,
      file,
      field: HASHES_FIELD,
    });
    return undefined;
  }

  static fields(hashes: readonly bigint[]): NewSchemeFields {
    const bytes = new Uint8Array(hashes.length * 8);
    const view = new DataView(bytes.buffer);
    hashes.forEach((hash, ordinal) => view.setBigUint64(ordinal * 8, hash, true));
    return { [ALGORITHM_FIELD]: ALGORITHM, [HASHES_FIELD]: bytes };
  }

  get count(): number {
    return this.#view.byteLength / 8;
  }

  get(ordinal: number): bigint | undefined {
    return ordinal * 8 + 8 <= this.#view.byteLength ? this.#view.getBigUint64(ordinal * 8, true) : undefined;
  }
}
