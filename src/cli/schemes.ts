import { Option } from "@commander-js/extra-typings";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { none } from "../scheme/none.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { zstdPerKernel } from "../scheme/zstd-per-kernel.ts";
import { parseLevel } from "./arguments.ts";
import { UsageError } from "./report-error.ts";

export const schemeOption = new Option("-s, --scheme <name>", "compression scheme")
  .choices(["none", "zstd-per-kernel"] as const)
  .default("zstd-per-kernel" as const);
export const levelOption = new Option("-l, --level <n>", "zstd level, 1 to 22 (default: 3)").argParser(
  parseLevel,
);

export interface SchemeOptions {
  readonly scheme: "none" | "zstd-per-kernel";
  readonly level?: number | undefined;
}

/** The scheme that the options describe. @throws UsageError for options that do not belong to it */
export function schemeOf(options: SchemeOptions): CompressionScheme {
  if (options.scheme === "zstd-per-kernel")
    return zstdPerKernel({ codecs: nodeCodecs, level: options.level });
  if (options.level !== undefined) throw new UsageError("--level belongs to --scheme zstd-per-kernel");
  return none;
}
