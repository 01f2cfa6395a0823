import type { Bundle } from "../bundle/bundle.ts";
import type { Finding, OnFinding } from "../errors/finding.ts";
import type { Source } from "../source/source.ts";
import type { HostLayout, HostSection } from "./host-layout.ts";
import type { Wrapper } from "./wrappers.ts";

/** What is odd about a host binary's device code, though it can be read. */

/** A word that tells the parts of a -fgpu-rdc program of each other, and no container. */
const HANDLE_SECTION = ".hip_gpubin_handle";

export function reportOtherContainers(
  source: Source,
  layout: HostLayout,
  onFinding: OnFinding | undefined,
): void {
  for (const { name, fileOffset } of layout.sections) {
    const isOther = name.startsWith(".hip_gpubin_") && name !== HANDLE_SECTION;
    if (!isOther && name !== ".llvm.offloading") continue;
    onFinding?.({
      severity: "warning",
      code: "UNKNOWN_CONTAINER",
      message: "the section may hold device code, in a container that is not read",
      file: source.name,
      field: name,
      offset: fileOffset,
    });
  }
}

export function reportNoBytes(
  source: Source,
  sections: readonly HostSection[],
  onFinding: OnFinding | undefined,
): void {
  for (const { name, fileOffset } of sections) {
    onFinding?.({
      severity: "note",
      code: "NO_BYTES_IN_FILE",
      message: "the section has no bytes in the file: a debug companion",
      file: source.name,
      field: name,
      offset: fileOffset,
    });
  }
}

export function reportUnpaired(
  source: Source,
  wrappers: readonly Wrapper[],
  bundles: readonly Bundle[],
  onFinding: OnFinding | undefined,
): void {
  const report = (finding: Omit<Finding, "file">): void => onFinding?.({ ...finding, file: source.name });
  for (const { index, bundleIndex, fileOffset, pointsTo } of wrappers) {
    if (bundleIndex !== undefined) continue;
    const place = pointsTo === undefined ? "somewhere else" : `to 0x${pointsTo.toString(16)}`;
    report({
      severity: "error",
      code: "WRAPPER_WITHOUT_BUNDLE",
      message: `the wrapper points ${place}, where no bundle begins`,
      field: `wrapper[${index}].pointer`,
      offset: fileOffset,
    });
  }
  const pointedTo = new Set(wrappers.map(({ bundleIndex }) => bundleIndex));
  for (const { index, offset, contentOffset } of bundles) {
    if (pointedTo.has(index)) continue;
    report({
      severity: "warning",
      code: "BUNDLE_WITHOUT_WRAPPER",
      message:
        contentOffset > 0
          ? "no wrapper can point to the bundle: of a compressed container the runtime reads the first one only"
          : "no wrapper points to the bundle",
      field: `bundle[${index}]`,
      offset,
    });
  }
}

/** A converted wrapper should point to the metadata; ROCm's first converter lost some of these pointers. */
export function reportLostMetadata(
  source: Source,
  wrappers: readonly Wrapper[],
  addresses: ReadonlySet<number>,
  onFinding: OnFinding | undefined,
): void {
  for (const { index, fileOffset, pointsTo } of wrappers) {
    if (pointsTo !== undefined && addresses.has(pointsTo)) continue;
    onFinding?.({
      severity: "error",
      code: "OUT_OF_BOUNDS",
      message: "the converted wrapper points to no metadata",
      file: source.name,
      field: `wrapper[${index}].pointer`,
      offset: fileOffset,
    });
  }
}
