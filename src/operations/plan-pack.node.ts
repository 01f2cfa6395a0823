import type { EntryToWrite, KernelToWrite } from "../archive/kernel-to-write.ts";
import { binaryKeyPath } from "../archive/naming.ts";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import { bytesEqual } from "../bytes/extent.ts";
import { mapOrdered } from "../bytes/map-ordered.ts";
import { FormatError, isKpackError, LimitError, NotFoundError } from "../errors/errors.ts";
import { type Finding, findingOfError, type OnFinding } from "../errors/finding.ts";
import { type DeviceCode, type DeviceItem, readDeviceCode } from "../host/device-code.ts";
import type { Limits } from "../bytes/limits.ts";
import type { FilePool } from "../source/file-pool.node.ts";
import { matchesSelection } from "../target/target-id.ts";
import { convertedFinding } from "./list-converted.ts";
import { findInputs, type InputFile, keyPathOf, LOOKED_AT_TOGETHER } from "./find-inputs.node.ts";

export interface PlanPackOptions {
  /** Files and folders. */
  readonly inputs: readonly string[];
  /** Folder that binary keys are relative to. */
  readonly root?: string | undefined;
  /** Targets or entry ids to take; without it, all HIP code objects. */
  readonly targets?: readonly string[] | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly onFinding: OnFinding;
  readonly signal?: AbortSignal | undefined;
}

/** A kernel that will be packed. */
export interface PlannedKernel extends KernelToWrite {
  readonly target: string;
  readonly item: DeviceItem;
}

export interface PackPlan {
  readonly kernels: readonly PlannedKernel[];
  /** What was not chosen, and what no key leads to: no wrapper points to its bundle. */
  readonly left: readonly DeviceItem[];
  /** Targets of all HIP code objects that the inputs have, chosen or not. */
  readonly availableTargets: readonly string[];
}

/** More do not fit into a table of contents of the usual limit. Many wrappers of a bundle with many entries give them. */
const MOST_ENTRIES = 1 << 22;

interface LookedAt {
  readonly file: InputFile;
  readonly items: readonly DeviceItem[];
  readonly findings: readonly Finding[];
}

/**
 * Finds what there is to pack and under which keys. Reads headers; kernels are read when they are packed.
 *
 * @throws NotFoundError `NOTHING_FOUND` when nothing is to be packed
 */
export async function planPack(pool: FilePool, options: PlanPackOptions): Promise<PackPlan> {
  const kernels: PlannedKernel[] = [];
  const left: DeviceItem[] = [];
  const available = new Set<string>();
  let entryCount = 0;
  const files: InputFile[] = [];
  for await (const file of findInputs(options.inputs)) files.push(file);
  // Files are looked at several at a time; what is said about them comes in their order.
  const look = async (file: InputFile): Promise<LookedAt> => {
    const findings: Finding[] = [];
    const onFinding: OnFinding = (finding) => void findings.push(finding);
    return { file, items: await readItems(pool, file, { ...options, onFinding }), findings };
  };
  for await (const { file, items, findings } of mapOrdered(files, LOOKED_AT_TOGETHER, look, options.signal)) {
    options.signal?.throwIfAborted();
    for (const finding of findings) options.onFinding(finding);
    const chosen = new Map<string, DeviceItem>();
    for (const item of items) {
      if (item.isHipCodeObject) available.add(item.target);
      // Without a key nothing could ask for it in an archive: the bundle's finding says so.
      if (!isChosen(item, options.targets) || item.keyIndexes.length === 0) left.push(item);
      else if (await isRepeated(item, chosen, options.signal)) continue;
      else {
        entryCount += item.keyIndexes.length;
        if (entryCount > MOST_ENTRIES) throw tooManyEntries(item.file);
        kernels.push(plan(item, keyPathOf(file, options.root)));
      }
    }
  }
  if (kernels.length === 0) {
    const isWithoutKey = left.some((item) => item.keyIndexes.length === 0 && isChosen(item, options.targets));
    throw nothingFound(options, [...available], isWithoutKey);
  }
  return { kernels, left, availableTargets: [...available] };
}

/** A file that the user named must hold device code; files met in a folder that hold none are passed over. */
async function readItems(
  pool: FilePool,
  file: InputFile,
  options: PlanPackOptions,
): Promise<readonly DeviceItem[]> {
  const { limits, signal, onFinding } = options;
  const source = await pool.source(file.path);
  try {
    const code = await readDeviceCode(source, { codecs: nodeCodecs, limits, signal, onFinding });
    if (file.named && code.items.length === 0) reportEmpty(code, onFinding);
    return code.items;
  } catch (error) {
    if (file.named || !isKpackError(error, "NO_DEVICE_CODE")) throw error;
    if (/\.(?:hsaco|co)$/i.test(file.path)) {
      onFinding({ ...findingOfError(error), severity: "warning", code: "SKIPPED_FILE" });
    }
    return [];
  }
}

function reportEmpty(code: DeviceCode, onFinding: OnFinding): void {
  const converted = convertedFinding(code);
  if (converted) return onFinding(converted);
  if (!code.fatBinary) return;
  const { state } = code.fatBinary;
  const reasons: Record<string, string> = {
    "debug-companion": "the file holds debug information for a binary, not its kernels",
    none: "the binary has no device code",
  };
  onFinding({
    severity: "warning",
    code: "SKIPPED_FILE",
    message: reasons[state] ?? "the binary has no kernels",
    file: code.source.name,
  });
}

/** Whether the bundle had the item's id before, with the same bytes. @throws FormatError where the bytes differ */
async function isRepeated(
  item: DeviceItem,
  seen: Map<string, DeviceItem>,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const name = `${item.bundleIndex} ${item.id}`;
  const first = seen.get(name);
  if (first === undefined) {
    seen.set(name, item);
    return false;
  }
  const isSame =
    first.kernel.size === item.kernel.size &&
    bytesEqual(await first.kernel.read({ signal }), await item.kernel.read({ signal }));
  if (isSame) return true;
  throw new FormatError(
    "CONFLICTING_KERNELS",
    "one bundle has two different code objects under one entry id",
    { file: item.file, field: `bundle ${item.bundleIndex}, ${item.id}` },
  );
}

function isChosen(item: DeviceItem, targets: readonly string[] | undefined): boolean {
  if (targets === undefined) return item.isHipCodeObject;
  return targets.some(
    (target) => item.id === target || (isHipId(item) && matchesSelection(item.target, target)),
  );
}

/** Entries of other kinds (OpenMP) may have the same target and have to be named by their whole id. */
function isHipId(item: DeviceItem): boolean {
  return item.bundleIndex === undefined || /^hip(?:v4)?-/.test(item.id);
}

/** A host binary has one name for all its targets, so nothing is taken out of that. */
function plan(item: DeviceItem, path: string): PlannedKernel {
  const keyPath = item.isInHostBinary ? path : binaryKeyPath(path, item.target);
  const entries: readonly EntryToWrite[] = item.keyIndexes.map((index) => ({
    binaryKey: `${keyPath}#${index}`,
    target: item.target,
  }));
  return { kernel: item.kernel, entries, target: item.target, item };
}

function tooManyEntries(file: string): LimitError {
  return new LimitError("LIMIT_EXCEEDED", "there are more entries than an archive can have", {
    file,
    expected: `at most ${MOST_ENTRIES}`,
  });
}

function nothingFound(
  options: PlanPackOptions,
  available: readonly string[],
  isWithoutKey: boolean,
): NotFoundError {
  const wanted = options.targets?.join(", ");
  return new NotFoundError("NOTHING_FOUND", "there is no kernel to pack", {
    file: options.inputs.join(", "),
    field: wanted === undefined ? undefined : "--targets",
    expected: wanted === undefined ? "HIP code objects" : `code objects for ${wanted}`,
    found: available.length > 0 ? `code objects for ${available.join(", ")}` : "none",
    hint: isWithoutKey
      ? 'No wrapper points to these code objects, so nothing would ask for them. "kpack unbundle" takes them out.'
      : available.length > 0
        ? "Choose from the targets that were found."
        : '"kpack list FILE" shows what a file holds.',
  });
}
