import { createHash } from "node:crypto";
import { constants, deflateSync, zstdCompressSync } from "node:zlib";
import { alignUp } from "../../src/bytes/extent.ts";
import { ByteWriter } from "../../src/bytes/byte-writer.ts";
import { encodeUtf8 } from "../../src/bytes/text.ts";
import type { Bundle } from "../../src/bundle/bundle.ts";
import { type ScanBundlesOptions, scanBundles } from "../../src/bundle/bundle-scanner.ts";
import { nodeCodecs } from "../../src/codec/node-codecs.node.ts";
import type { Finding } from "../../src/errors/finding.ts";
import { memorySource } from "../../src/source/memory-source.ts";

/** Writes bundles as LLVM's tools do, and in ways that they do not. */

export interface BuiltEntry {
  readonly id: string;
  readonly content?: Uint8Array | string;
  /** Instead of the right one. */
  readonly offset?: number | bigint;
  readonly size?: number | bigint;
}

export function buildBundle(
  entries: readonly BuiltEntry[],
  options: { readonly alignment?: number; readonly count?: bigint } = {},
): Uint8Array {
  const alignment = options.alignment ?? 1;
  const contents = entries.map(({ content = "" }) =>
    typeof content === "string" ? encodeUtf8(content) : content,
  );
  const tableSize = 32 + entries.reduce((sum, { id }) => sum + 24 + id.length, 0);
  const table = new ByteWriter();
  table.append(encodeUtf8("__CLANG_OFFLOAD_BUNDLE__"));
  table.u64(options.count ?? entries.length);
  let offset = alignUp(tableSize, alignment);
  const payload = new ByteWriter();
  payload.append(new Uint8Array(offset - tableSize));
  for (const [index, entry] of entries.entries()) {
    const content = contents[index] ?? new Uint8Array();
    table.u64(entry.offset ?? offset);
    table.u64(entry.size ?? content.length);
    table.u64(entry.id.length);
    table.append(encodeUtf8(entry.id));
    const isLast = index === entries.length - 1;
    const end = isLast ? offset + content.length : alignUp(offset + content.length, alignment);
    payload.append(content);
    payload.append(new Uint8Array(end - offset - content.length));
    offset = end;
  }
  return concat(table.finish(), payload.finish());
}

export interface BuiltCompression {
  readonly version: 1 | 2 | 3;
  readonly method?: "zlib" | "zstd";
  readonly totalSize?: number | bigint;
  readonly uncompressedSize?: number | bigint;
  readonly withoutContentSize?: boolean;
}

export function compressBundle(content: Uint8Array, options: BuiltCompression): Uint8Array {
  const { version, method = "zstd" } = options;
  const params = { [constants.ZSTD_c_contentSizeFlag]: options.withoutContentSize ? 0 : 1 };
  const stream = method === "zstd" ? zstdCompressSync(content, { params }) : deflateSync(content);
  const hash = createHash("md5").update(content).digest().readBigUInt64LE(0);
  const headerSize = version === 1 ? 20 : version === 2 ? 24 : 32;
  const writer = new ByteWriter();
  writer.append(encodeUtf8("CCOB"));
  writer.u16(version);
  writer.u16(method === "zlib" ? 0 : 1);
  const size = (value: number | bigint): void =>
    version === 3 ? writer.u64(value) : writer.u32(Number(value));
  if (version > 1) size(options.totalSize ?? headerSize + stream.length);
  size(options.uncompressedSize ?? content.length);
  writer.u64(hash);
  writer.append(stream);
  return writer.finish();
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const writer = new ByteWriter();
  for (const part of parts) writer.append(part);
  return writer.finish().slice();
}

export function padded(bytes: Uint8Array, alignment = 4096): Uint8Array {
  return concat(bytes, new Uint8Array(alignUp(bytes.length, alignment) - bytes.length));
}

export interface Scanned {
  readonly bundles: readonly Bundle[];
  readonly findings: readonly Finding[];
}

export async function scanAll(
  bytes: Uint8Array,
  options: Partial<ScanBundlesOptions> = {},
): Promise<Scanned> {
  const findings: Finding[] = [];
  const bundles: Bundle[] = [];
  const onFinding = (finding: Finding): number => findings.push(finding);
  const extent = { offset: 0, size: bytes.length };
  for await (const bundle of scanBundles(memorySource(bytes), extent, {
    codecs: nodeCodecs,
    onFinding,
    ...options,
  })) {
    bundles.push(bundle);
  }
  return { bundles, findings };
}

/** Every entry's id and content, bundle after bundle. */
export async function contentsOf(bundles: readonly Bundle[]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const bundle of bundles) {
    for (const entry of bundle.entries) {
      texts.push(
        `${bundle.index} ${entry.id.text} ${new TextDecoder().decode(await bundle.readEntry(entry))}`,
      );
    }
  }
  return texts;
}
