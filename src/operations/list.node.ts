import type { Archive } from "../archive/archive.ts";
import type { ArchiveEntry } from "../archive/archive-entry.ts";
import { openArchive } from "../archive/open-archive.node.ts";
import { nodeCodecs } from "../codec/node-codecs.node.ts";
import type { PayloadKind } from "../code-object/code-object.ts";
import { type Finding, findingOrThrow, type OnFinding } from "../errors/finding.ts";
import { detectFile } from "../host/detect.ts";
import { readDeviceCode } from "../host/device-code.ts";
import { decodeValue, toJson } from "../msgpack/message-pack-decode.ts";
import type { FrameSlice } from "../scheme/scheme.ts";
import { openFile } from "../source/file-source.node.ts";
import { matchesAnySelection } from "../target/target-id.ts";
import { attributeFrames, framesOf } from "./graph.ts";
import { convertedFinding } from "./list-converted.ts";
import { StoredSizes } from "./stored-sizes.ts";

/** What is listed. */
export interface ListOptions {
  readonly targets?: readonly string[] | undefined;
  readonly onFinding?: OnFinding | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a file holds, by its kind. */
export type Listing = ArchiveListing | DeviceCodeListing;

/** The entries of an archive. */
export interface ArchiveListing {
  readonly file: string;
  readonly kind: "archive";
  readonly entries: readonly ListedEntry[];
  readonly findings: readonly Finding[];
}

/** One entry of an archive. */
export interface ListedEntry {
  readonly binaryKey: string;
  readonly target: string;
  readonly ordinal: number;
  /** In bytes; left out where the archive does not say. */
  readonly originalSize: number | undefined;
  /** Bytes in the archive that are read for this kernel alone. */
  readonly storedSize: number;
  /** Where the kernel stands; left out for schemes that store each kernel by itself. */
  readonly frames: EntryFrames | undefined;
  /** XXH64 of the kernel, where the archive holds it. */
  readonly hash: string | undefined;
  /** `type`, `metadata` and unknown keys; null where text in the value is not valid, which is a finding. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Where a kernel stands in an archive whose kernels share frames. */
export interface EntryFrames {
  /** The parts of decoded frames that make the kernel, in order. */
  readonly slices: readonly FrameSlice[];
  /** Frames that have to be decoded before those. */
  readonly dependsOn: readonly number[];
  /**
   * The kernel's part of all stored bytes, rounded: dictionaries and shared frames are divided among the kernels that
   * need them. Entries of one ordinal all have the whole part.
   */
  readonly attributedSize: number;
}

/** The payloads of a fat binary, bundle or code object. */
export interface DeviceCodeListing {
  readonly file: string;
  readonly kind: "fat-binary" | "bundle" | "code-object";
  readonly entries: readonly ListedPayload[];
  readonly findings: readonly Finding[];
}

/** One payload of a fat binary, bundle or code object. */
export interface ListedPayload {
  /** Index of the bundle in the file; left out for a bare code object. */
  readonly bundle: number | undefined;
  /** The indexes under which the runtime asks for it. */
  readonly indexes: readonly number[];
  readonly id: string;
  readonly target: string;
  readonly payload: PayloadKind;
  readonly size: number;
}

/** Lists what a file holds: an archive's entries, or the payloads of a fat binary, bundle or code object. */
export async function listFile(path: string, options: ListOptions = {}): Promise<Listing> {
  const findings: Finding[] = [];
  const onFinding: OnFinding = (finding) => {
    findings.push(finding);
    options.onFinding?.(finding);
  };
  const { signal } = options;
  const source = await openFile(path);
  await using owner = source;
  const kind = await detectFile(owner, { signal });
  const chosen = (target: string): boolean => matchesAnySelection(target, options.targets);
  if (kind === "kpack") {
    const archive = await openArchive(source, { onFinding, signal });
    const entries = await listEntries(archive, chosen, onFinding, signal);
    return { file: path, kind: "archive", entries, findings };
  }
  const code = await readDeviceCode(source, { codecs: nodeCodecs, onFinding, signal });
  const converted = code.items.length === 0 ? convertedFinding(code) : undefined;
  if (converted) onFinding(converted);
  return {
    file: path,
    kind: code.fatBinary ? "fat-binary" : kind === "code-object" ? "code-object" : "bundle",
    entries: code.items
      .filter(({ target }) => chosen(target))
      .map(({ bundleIndex, keyIndexes, id, target, payload, kernel }) => {
        return { bundle: bundleIndex, indexes: keyIndexes, id, target, payload, size: kernel.size };
      }),
    findings,
  };
}

async function listEntries(
  archive: Archive,
  chosen: (target: string) => boolean,
  onFinding: OnFinding,
  signal: AbortSignal | undefined,
): Promise<readonly ListedEntry[]> {
  const listed: ListedEntry[] = [];
  const sizes = new StoredSizes(archive, signal);
  const framesOfKernel = framesByOrdinal(archive);
  for (const entry of archive.entries) {
    if (!chosen(entry.target)) continue;
    listed.push({
      binaryKey: entry.binaryKey,
      target: entry.target,
      ordinal: entry.ordinal,
      originalSize: entry.originalSize,
      storedSize: await sizes.of(entry.ordinal),
      frames: framesOfKernel(entry.ordinal),
      hash: archive.kernelHash(entry.ordinal),
      fields: fieldsOf(archive, entry, onFinding),
    });
  }
  return listed;
}

/** Says where a kernel stands; entries of one ordinal get one object, which is made once. */
function framesByOrdinal(archive: Archive): (ordinal: number) => EntryFrames | undefined {
  const map = archive.decompressor.describeFrames?.();
  if (!map) return () => undefined;
  const attributed = attributeFrames(map).kernels;
  const known = new Map<number, EntryFrames>();
  return (ordinal) => {
    const frames = known.get(ordinal) ?? {
      slices: map.kernels[ordinal] ?? [],
      dependsOn: framesOf(map, ordinal).dictionaries,
      attributedSize: Math.round(attributed[ordinal] ?? 0),
    };
    known.set(ordinal, frames);
    return frames;
  };
}

/** The entry's other keys. What is wrong with one value must not cost the whole list. */
function fieldsOf(
  archive: Archive,
  entry: ArchiveEntry,
  onFinding: OnFinding,
): Readonly<Record<string, unknown>> {
  const { toc } = archive;
  const valueOf = (name: string, encoded: Uint8Array): unknown => {
    try {
      const reader = toc.readerAt(encoded.byteOffset - toc.bytes.byteOffset);
      return toJson(decodeValue(reader, `${name} of ${entry.id}`));
    } catch (error) {
      onFinding(findingOrThrow(error));
      return null;
    }
  };
  return Object.fromEntries(entry.encodedFields().map(({ name, value }) => [name, valueOf(name, value)]));
}
