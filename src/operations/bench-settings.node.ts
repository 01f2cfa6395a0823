import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { type Effort, EFFORTS } from "../scheme/cross-kernel/effort.ts";
import { zstdCrossKernel } from "../scheme/cross-kernel/zstd-cross-kernel.ts";
import type { CompressionScheme } from "../scheme/scheme.ts";
import { zstdPerKernel } from "../scheme/zstd-per-kernel.ts";

/** A scheme and how hard it tries. */
export type BenchSetting =
  | { readonly scheme: "zstd-per-kernel"; readonly level: number }
  | { readonly scheme: "zstd-cross-kernel"; readonly effort: Effort };

/** What everything is compared with: what ROCm's own tool writes. */
export const BASELINE: BenchSetting = { scheme: "zstd-per-kernel", level: 3 };

const LEVELS: readonly number[] = [3, 9, 19];

/** All that are compared unless others are chosen. */
export const BENCH_SETTINGS: readonly BenchSetting[] = [
  ...LEVELS.map((level): BenchSetting => ({ scheme: "zstd-per-kernel", level })),
  ...EFFORTS.map((effort): BenchSetting => ({ scheme: "zstd-cross-kernel", effort })),
];

/** `zstd-per-kernel:19`, `zstd-cross-kernel:max`: as {@link parseBenchSettings} takes it. */
export function benchSettingName(setting: BenchSetting): string {
  return `${setting.scheme}:${setting.scheme === "zstd-per-kernel" ? setting.level : setting.effort}`;
}

/** Whether it takes many times as long as the others: level 17 and up, effort max. */
export function isSlow(setting: BenchSetting): boolean {
  return setting.scheme === "zstd-per-kernel" ? setting.level > 16 : setting.effort === "max";
}

/**
 * `zstd-per-kernel:LEVEL`, `zstd-cross-kernel:EFFORT`, or a scheme's name alone for all that are usual.
 * @throws RangeError for other names
 */
export function parseBenchSettings(name: string): readonly BenchSetting[] {
  const usual = BENCH_SETTINGS.filter(({ scheme }) => scheme === name);
  if (usual.length > 0) return usual;
  const [scheme, parameter = ""] = name.split(":");
  const level = /^\d{1,2}$/.test(parameter) ? Number(parameter) : 0;
  if (scheme === "zstd-per-kernel" && level >= 1 && level <= 22) return [{ scheme, level }];
  const effort = EFFORTS.find((candidate) => candidate === parameter);
  if (scheme === "zstd-cross-kernel" && effort) return [{ scheme, effort }];
  throw new RangeError(
    `Expected zstd-per-kernel:LEVEL (1 to 22) or zstd-cross-kernel:EFFORT (${EFFORTS.join(", ")}), got ${name}`,
  );
}

/** A new scheme for the setting: with nothing in its caches. */
export function schemeOfSetting(setting: BenchSetting): CompressionScheme {
  if (setting.scheme === "zstd-per-kernel") {
    return zstdPerKernel({ codecs: nodeCodecs, level: setting.level });
  }
  return zstdCrossKernel({ codecs: nodeCodecs, effort: setting.effort });
}
