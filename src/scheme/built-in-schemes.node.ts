import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { zstdCrossKernel } from "./cross-kernel/zstd-cross-kernel.ts";
import { none } from "./none.ts";
import type { CompressionScheme } from "./scheme.ts";
import { zstdPerKernel } from "./zstd-per-kernel.ts";

/** The schemes that come with the package, at their default settings. To add one, pass `[...builtInSchemes, yours]`. */
export const builtInSchemes: readonly CompressionScheme[] = [
  none,
  zstdPerKernel({ codecs: nodeCodecs }),
  zstdCrossKernel({ codecs: nodeCodecs }),
];
