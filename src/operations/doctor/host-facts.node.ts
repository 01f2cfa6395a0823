import { append } from "../../bytes/append.ts";
import { extentEnd, type Extent } from "../../bytes/extent.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import { nodeCodecs } from "../../codec/node-codecs.node.ts";
import { readElfFile } from "../../elf/elf-file.ts";
import { isKpackError, type KpackError, LimitError } from "../../errors/errors.ts";
import type { Finding } from "../../errors/finding.ts";
import { readCoffLayout } from "../../host/coff-layout.ts";
import { detectFile } from "../../host/detect.ts";
import { readElfLayout } from "../../host/elf-layout.ts";
import { type FatBinary, readFatBinary } from "../../host/fat-binary.ts";
import { type HipkMetadata, readHipkMetadata } from "../../host/hipk-metadata.ts";
import { WRAPPER_SIZE, type Wrapper } from "../../host/wrappers.ts";
import type { ReadOptions, Source } from "../../source/source.ts";
import type { HostFacts } from "./doctor-facts.ts";
import { type DoctorFinding, doctorFinding } from "./doctor-finding.ts";
import { judgeProgramHeaders } from "./program-headers.ts";

export interface HostOptions {
  /** Look into compressed bundles, which means to decompress them. */
  readonly deep: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Reads what matters of a host binary; undefined when it has nothing to do with device code. */
export async function readHostFacts(source: Source, options: HostOptions): Promise<HostFacts | undefined> {
  const { signal } = options;
  let format: HostFacts["format"] = "elf";
  try {
    const kind = await detectFile(source, { signal });
    if (kind !== "elf-host" && kind !== "coff-host") return undefined;
    format = kind === "elf-host" ? "elf" : "coff";
    const layout =
      format === "elf" ? await readElfLayout(source, { signal }) : await readCoffLayout(source, { signal });
    if (layout.isObject || !layout.sections.some(({ name }) => isDeviceSection(name))) return undefined;
    const bundles = layout.sections.filter(({ name }) => name === ".hip_fatbin" || name === ".hip_fat");
    const extents = bundles.map(({ fileOffset, fileSize }) => ({ offset: fileOffset, size: fileSize }));
    const wrapperBytes = layout.sections
      .filter(({ name }) => name === ".hipFatBinSegment" || name === ".hipFatB")
      .reduce((sum, { fileSize }) => sum + fileSize, 0);
    return await read(
      source,
      { format, extents, wrapperCount: Math.floor(wrapperBytes / WRAPPER_SIZE) },
      options,
    );
  } catch (error) {
    if (!isKpackError(error)) throw error;
    return damaged(source, format, error);
  }
}

/** What is known of a binary that was not looked into. */
const NOTHING_KNOWN = {
  wrappers: [],
  lost: new Set<number>(),
  metadata: undefined,
  targets: undefined,
  wrapperTargets: [],
} as const;

function targetsOf({ entries }: Bundle): readonly string[] {
  const targets = entries.filter(({ size }) => size > 0).map(({ id }) => id.target);
  return [...new Set(targets.filter((target) => target !== undefined))];
}

/** As findings name the pointer of a wrapper. */
function pointerField(position: number): string {
  return `wrapper[${position}].pointer`;
}

/** Positions of wrappers that are reported to point to no metadata. */
function lostWrappers(wrappers: readonly Wrapper[], oddities: readonly Finding[]): ReadonlySet<number> {
  const fields = new Set(
    oddities
      .filter(({ severity, code }) => severity === "error" && code === "OUT_OF_BOUNDS")
      .map(({ field }) => field),
  );
  return new Set(wrappers.map(({ index }) => index).filter((index) => fields.has(pointerField(index))));
}

function isDeviceSection(name: string): boolean {
  return /^\.hip_?fat/i.test(name) || name === ".rocm_kpack_ref" || name === ".kpackrf";
}

interface Outline {
  readonly format: HostFacts["format"];
  readonly extents: readonly Extent[];
  readonly wrapperCount: number;
}

async function read(source: Source, outline: Outline, options: HostOptions): Promise<HostFacts | undefined> {
  const { signal } = options;
  const oddities: Finding[] = [];
  const onFinding = (finding: Finding): void => void oddities.push(finding);
  const path = source.name;
  const common = { path, format: outline.format };
  const guarded = options.deep ? source : withoutPayloads(source, outline.extents);
  let binary: FatBinary;
  try {
    binary = await readFatBinary(guarded, { codecs: nodeCodecs, onFinding, signal });
  } catch (error) {
    if (!(error instanceof PayloadNeeded)) throw error;
    const evidence = [
      `${outline.wrapperCount} wrapper(s); the bundles are compressed and were not looked into`,
    ];
    const findings = [doctorFinding("KP101", [path], evidence)];
    return {
      ...common,
      state: "fat",
      wrapperCount: outline.wrapperCount,
      ...NOTHING_KNOWN,
      findings,
    };
  }
  if (binary.state === "fat") {
    const byBundle = new Map(binary.bundles.map((bundle) => [bundle.index, targetsOf(bundle)]));
    const targets = [...new Set([...byBundle.values()].flat())].toSorted();
    const { length } = binary.wrappers;
    const evidence = [
      `${length} wrapper(s), ${binary.bundles.length} bundle(s) for ${targets.join(", ") || "no target"}`,
    ];
    const findings = [doctorFinding("KP101", [path], evidence)];
    return {
      ...common,
      state: "fat",
      wrapperCount: length,
      ...NOTHING_KNOWN,
      targets,
      // Where only the loader knows the bundle, it may be any.
      wrapperTargets: binary.wrappers.map(({ bundleIndex, pointsTo }) =>
        bundleIndex === undefined
          ? pointsTo === undefined
            ? targets
            : []
          : (byBundle.get(bundleIndex) ?? []),
      ),
      findings,
    };
  }
  if (binary.state !== "converted") return undefined;
  const { wrappers } = binary;
  const lost = lostWrappers(wrappers, oddities);
  const { metadata, findings } = await readConverted(source, binary, lost, outline.format, signal);
  return {
    ...common,
    state: "converted",
    wrapperCount: wrappers.length,
    wrappers,
    lost,
    metadata,
    targets: [],
    wrapperTargets: [],
    findings,
  };
}

async function readConverted(
  source: Source,
  binary: FatBinary,
  lost: ReadonlySet<number>,
  format: HostFacts["format"],
  signal: AbortSignal | undefined,
): Promise<{ readonly metadata: HipkMetadata | undefined; readonly findings: readonly DoctorFinding[] }> {
  const findings: DoctorFinding[] = [];
  const path = [source.name];
  if (lost.size > 0) findings.push(doctorFinding("KP104", path, [...lost].slice(0, 5).map(pointerField)));
  append(findings, indexFindings(source.name, binary.wrappers));
  if (format === "elf") append(findings, await headerFindings(source, signal));
  try {
    return { metadata: await readHipkMetadata(source, binary, { signal }), findings };
  } catch (error) {
    if (!isKpackError(error)) throw error;
    findings.push(doctorFinding("KP103", path, [error.summary]));
    return { metadata: undefined, findings };
  }
}

function indexFindings(path: string, wrappers: readonly Wrapper[]): readonly DoctorFinding[] {
  const moved = wrappers.filter(({ index, reserved1 }) => index !== reserved1);
  if (moved.length === 0) return [];
  const lines = moved.slice(0, 5).map(({ index, reserved1 }) => `wrapper ${index} asks for #${reserved1}`);
  const used = Map.groupBy(wrappers, ({ reserved1 }) => reserved1);
  const twice = [...used].filter(([, group]) => group.length > 1).map(([index]) => `#${index}`);
  if (twice.length > 0) lines.push(`asked for more than once: ${twice.slice(0, 5).join(", ")}`);
  return [doctorFinding("KP204", [path], lines)];
}

async function headerFindings(
  source: Source,
  signal: AbortSignal | undefined,
): Promise<readonly DoctorFinding[]> {
  const faults = judgeProgramHeaders(await readElfFile(source, { signal }), source.size);
  const path = [source.name];
  return [
    ...(faults.damage.length > 0 ? [doctorFinding("KP401", path, faults.damage.slice(0, 5))] : []),
    ...(faults.misplaced === undefined ? [] : [doctorFinding("KP402", path, [faults.misplaced])]),
    ...(faults.sharedOffsets.length > 0
      ? [doctorFinding("KP403", path, faults.sharedOffsets.slice(0, 5))]
      : []),
  ];
}

function damaged(source: Source, format: HostFacts["format"], error: KpackError): HostFacts {
  const code = error.code === "HALF_CONVERTED" ? "KP102" : error.name === "AccessError" ? "KP701" : "KP105";
  const finding = doctorFinding(code, [source.name], [`${error.message} [${error.code}]`]);
  return {
    path: source.name,
    format,
    state: "damaged",
    wrapperCount: 0,
    ...NOTHING_KNOWN,
    findings: [finding],
  };
}

/** Tables of bundles are smaller than this; what is larger is a payload, or padding that is not worth reading. */
const LARGEST_TABLE = 65536;

/** A bundle wants to be decompressed, which a survey leaves alone. */
class PayloadNeeded extends LimitError {}

/** The source, except that large reads inside the bundles are refused. */
function withoutPayloads(source: Source, extents: readonly Extent[]): Source {
  return {
    name: source.name,
    size: source.size,
    async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      const isInside = extents.some((extent) => offset >= extent.offset && offset < extentEnd(extent));
      if (isInside && length > LARGEST_TABLE) {
        throw new PayloadNeeded("LIMIT_EXCEEDED", "a survey does not read payloads", {
          file: source.name,
          offset,
        });
      }
      return await source.read(offset, length, options);
    },
    async [Symbol.asyncDispose](): Promise<void> {},
  };
}
