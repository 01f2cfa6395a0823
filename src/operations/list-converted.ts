import type { Finding } from "../errors/finding.ts";
import type { DeviceCode } from "../host/device-code.ts";

/** What to do with a converted binary, for hints. */
export const CONVERTED_HINT = '"kpack resolve" finds them for a GPU.';

/** Says of a host binary whose kernels went into archives why it holds none itself; undefined for all else. */
export function convertedFinding({ source, fatBinary }: DeviceCode): Finding | undefined {
  if (fatBinary?.state !== "converted") return undefined;
  return {
    severity: "warning",
    code: "ALREADY_CONVERTED",
    message: `the binary is converted already: its kernels are in archives; ${CONVERTED_HINT.slice(0, -1)}`,
    file: source.name,
  };
}

/** What {@link DeviceCode} without kernels holds, as an error's `found`. */
export function foundInstead(code: DeviceCode): string {
  return convertedFinding(code) ? "a converted binary, its kernels in archives" : "no device code";
}
