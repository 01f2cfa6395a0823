import { splitTriple } from "../target/target-id.ts";

/**
 * The id of a bundle's entry: `KIND-TRIPLE[-TARGETID]`.
 *
 * - `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`
 * - `hip-amdgcn-amd-amdhsa-gfx906`
 * - `hipv4-amdgcn-amd-amdhsa-unknown-gfx906`
 * - `hipv4-amdgpu12.5-amd-amdhsa--gfx1250:gfx1250-b0-specific+`
 * - `hip-spirv64-amd-amdhsa--amdgcnspirv`
 * - `host-x86_64-unknown-linux-gnu-`
 */
export interface EntryId {
  /** The id as it stands in the bundle. */
  readonly text: string;
  /** Who the entry is for: `host`, `hip`, `hipv4`, `openmp` and whatever else a compiler writes. */
  readonly kind: string;
  /** The target triple, without trailing dashes: `amdgcn-amd-amdhsa`. */
  readonly triple: string;
  /** The target id, or undefined where the entry names none: `gfx90a:xnack-`. */
  readonly target: string | undefined;
  /** Whether HIP's runtime looks at the entry: kinds `hip` and `hipv4`. */
  readonly isHip: boolean;
  readonly isHost: boolean;
}

/** Takes an entry id apart. Every text has an answer: unknown kinds and processors are kept as they are. */
export function parseEntryId(text: string): EntryId {
  const dash = text.indexOf("-");
  const kind = dash < 0 ? text : text.slice(0, dash);
  const { triple, target } = splitTriple(dash < 0 ? "" : text.slice(dash + 1));
  return { text, kind, triple, target, isHip: kind === "hip" || kind === "hipv4", isHost: kind === "host" };
}
