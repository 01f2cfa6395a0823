import { Option } from "@commander-js/extra-typings";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { zstdCrossKernel } from "../scheme/cross-kernel/zstd-cross-kernel.ts";
import { none } from "../scheme/none.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { zstdPerKernel } from "../scheme/zstd-per-kernel.ts";
import { parseLevel } from "./arguments.ts";
import { UsageError } from "./report-error.ts";

const SCHEME_NAMES = ["none", "zstd-per-kernel", "zstd-cross-kernel"] as const;

export const schemeOption = new Option("-s, --scheme <name>", "compression scheme")
  .choices(SCHEME_NAMES)
  .default("zstd-per-kernel" as const);
/** For commands that keep the scheme of what they rewrite. */
export const newSchemeOption = new Option(
  "-s, --scheme <name>",
  "compression scheme (default: the archive's own)",
).choices(SCHEME_NAMES);
export const levelOption = new Option(
  "-l, --level <n>",
  "zstd level of zstd-per-kernel, 1 to 22 (default: 3)",
).argParser(parseLevel);
export const plannerOption = new Option(
  "--planner <name>",
  "what zstd-cross-kernel may store (default: auto)",
).choices(["auto", "dictionary", "siblings", "blocks"] as const);
export const effortOption = new Option(
  "--effort <name>",
  "time that zstd-cross-kernel takes (default: default)",
).choices(["fast", "default", "max"] as const);

type SchemeName = (typeof SCHEME_NAMES)[number];

export interface SchemeOptions {
  readonly scheme: SchemeName;
  readonly level?: number | undefined;
  readonly planner?: "auto" | "dictionary" | "siblings" | "blocks" | undefined;
  readonly effort?: "fast" | "default" | "max" | undefined;
}

/** The scheme that the options describe. @throws UsageError for options that do not belong to it */
export function schemeOf(options: SchemeOptions): CompressionScheme {
  const { scheme, level, planner, effort } = options;
  if (level !== undefined && scheme !== "zstd-per-kernel") {
    throw new UsageError("--level belongs to --scheme zstd-per-kernel; zstd-cross-kernel has --effort");
  }
  if ((planner !== undefined || effort !== undefined) && scheme !== "zstd-cross-kernel") {
    throw new UsageError("--planner and --effort belong to --scheme zstd-cross-kernel");
  }
  if (scheme === "none") return none;
  try {
    if (scheme === "zstd-cross-kernel") return zstdCrossKernel({ codecs: nodeCodecs, planner, effort });
    return zstdPerKernel({ codecs: nodeCodecs, level });
  } catch (error) {
    // Making a scheme does nothing but check its options.
    if (error instanceof RangeError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** The scheme that the options ask for, also by an option that belongs to just one; undefined when they ask for none. */
export function newSchemeOf(
  options: Omit<SchemeOptions, "scheme"> & { readonly scheme?: SchemeName | undefined },
): CompressionScheme | undefined {
  const { level, planner, effort } = options;
  const implied: SchemeName | undefined =
    level !== undefined
      ? "zstd-per-kernel"
      : planner !== undefined || effort !== undefined
        ? "zstd-cross-kernel"
        : undefined;
  const scheme = options.scheme ?? implied;
  return scheme && schemeOf({ ...options, scheme });
}
