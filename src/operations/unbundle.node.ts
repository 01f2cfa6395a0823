import { basename } from "node:path";
import { safeRelativePath, targetFolderName } from "../archive/safe-path.ts";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import type { PayloadKind } from "../code-object/code-object.ts";
import { NotFoundError } from "../errors/errors.ts";
import type { OnFinding } from "../errors/finding.ts";
import type { OnProgress } from "../errors/progress.ts";
import { type DeviceItem, readDeviceCode } from "../host/device-code.ts";
import { FilePool } from "../source/file-pool.node.ts";
import { matchesSelection } from "../target/target-id.ts";
import { FolderWriter } from "./extract.node.ts";
import { CONVERTED_HINT, convertedFinding, foundInstead } from "./list-converted.ts";

/** Which payloads are taken out, and how. */
export interface UnbundleOptions {
  /** Targets, or entry ids, also of host entries. @default all that is for devices */
  readonly targets?: readonly string[] | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly onProgress?: OnProgress | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A payload that was written to a file. */
export interface UnbundledFile {
  readonly input: string;
  readonly id: string;
  readonly target: string;
  readonly payload: PayloadKind;
  readonly path: string;
  /** In bytes. */
  readonly size: number;
}

const EXTENSIONS: Readonly<Partial<Record<PayloadKind, string>>> = {
  "code-object": "hsaco",
  spirv: "spv",
  bitcode: "bc",
};

/**
 * Writes the payloads of fat binaries, bundles and code objects into a folder, as `TARGET/NAME.BUNDLE.EXT`.
 * @throws NotFoundError `NOTHING_FOUND` when there is none
 */
export async function unbundle(
  inputs: readonly string[],
  folder: string,
  options: UnbundleOptions = {},
): Promise<readonly UnbundledFile[]> {
  const { signal, onFinding } = options;
  await using pool = new FilePool();
  const chosen: DeviceItem[] = [];
  const found = new Set<string>();
  const instead = new Set<string>();
  for (const input of inputs) {
    const code = await readDeviceCode(await pool.source(input), { codecs: nodeCodecs, onFinding, signal });
    const converted = code.items.length === 0 ? convertedFinding(code) : undefined;
    if (converted) {
      onFinding?.(converted);
      instead.add(foundInstead(code));
    }
    for (const item of code.items) {
      found.add(item.target);
      if (isChosen(item, options.targets)) chosen.push(item);
    }
  }
  if (chosen.length === 0) {
    throw new NotFoundError("NOTHING_FOUND", "there is nothing to take out", {
      file: inputs.join(", "),
      expected: options.targets?.join(", "),
      found: [...found, ...instead].join(", ") || "no device code",
      hint: instead.size > 0 ? CONVERTED_HINT : undefined,
    });
  }
  const writer = await FolderWriter.create(folder);
  const names = new Set<string>();
  const files: UnbundledFile[] = [];
  for (const item of chosen) {
    const bytes = await item.kernel.read({ signal });
    const relative = distinct(names, outputPath(item));
    const path = await writer.write(relative, bytes);
    files.push({
      input: item.file,
      id: item.id,
      target: item.target,
      payload: item.payload,
      path,
      size: bytes.length,
    });
    options.onProgress?.({ stage: "unbundle", done: files.length, total: chosen.length, unit: "files" });
  }
  return files;
}

/** What is for the host has to be named by its whole id. */
function isChosen(item: DeviceItem, targets: readonly string[] | undefined): boolean {
  if (targets === undefined) return !item.isHost;
  return targets.some(
    (target) => item.id === target || (!item.isHost && matchesSelection(item.target, target)),
  );
}

function outputPath(item: DeviceItem): string {
  const name = basename(item.file).replace(/\.(?:hsaco|co)$/i, "");
  const bundle = item.bundleIndex === undefined ? "" : `.${item.bundleIndex}`;
  const extension = EXTENSIONS[item.payload] ?? "bin";
  return `${targetFolderName(item.target)}/${safeRelativePath(name + bundle)}.${extension}`;
}

/** Two payloads of one bundle may have one target (HIP and OpenMP), two inputs one name: the later ones get a number. */
function distinct(names: Set<string>, path: string): string {
  let name = path;
  for (let count = 1; names.has(name); count++) name = path.replace(/(\.[^./]+)$/, `-${count}$1`);
  names.add(name);
  return name;
}
