import { decodeHeader, HEADER_SIZE } from "../archive/header.ts";
import { encodeUtf8 } from "../bytes/text.ts";
import { MessagePackReader } from "../msgpack/message-pack-reader.ts";
import { MessagePackWriter } from "../msgpack/message-pack-writer.ts";
import { checkRange, type ReadOptions, type Source } from "../source/source.ts";
import type { LoaderBehaviour } from "./loader-behaviour.ts";

/** Deeper ones are refused by HRX, and by ROCm's readers nothing deeper is changed. */
const HRX_DEPTH = 32;

/**
 * The archive with its table of contents as a runtime understands it where our reader refuses it:
 * - A scheme that is no text is for ROCm a scheme that is not known.
 * - `gfx_arches` that is a text has no targets for ROCm; HRX does not look at it at all.
 * - HRX takes the first of two equal keys. What ROCm makes of them cannot be foretold.
 *
 * @throws KpackError when it is no archive, or its TOC no MessagePack map
 */
export async function asRuntimeReads(
  source: Source,
  behaviour: LoaderBehaviour,
  signal: AbortSignal | undefined,
): Promise<Source> {
  const head = await source.read(0, Math.min(HEADER_SIZE, source.size), { signal });
  const tocOffset = decodeHeader(head, source);
  const toc = await source.read(tocOffset, source.size - tocOffset, { signal });
  const reader = new MessagePackReader(toc, { file: source.name, base: tocOffset });
  const writer = new MessagePackWriter();
  writeMap(reader, writer, { isHrx: behaviour === "hrx", depth: 1 });
  return withToc(source, tocOffset, writer.finish());
}

interface Rewriting {
  readonly isHrx: boolean;
  /** Of the value, the TOC's own map being 1. */
  readonly depth: number;
}

function writeMap(reader: MessagePackReader, writer: MessagePackWriter, how: Rewriting): void {
  const { bytes } = reader;
  const pairs: { readonly key: string; readonly start: number; readonly valueStart: number }[] = [];
  const seen = new Set<string>();
  const count = reader.mapSize("TOC");
  for (let pair = 0; pair < count; pair++) {
    const start = reader.position;
    const key = takeKey(reader);
    const valueStart = reader.position;
    reader.skip("TOC");
    if (how.isHrx && seen.has(key)) continue;
    seen.add(key);
    pairs.push({ key, start, valueStart });
  }
  const end = reader.position;
  writer.mapHeader(pairs.length);
  for (const { key, start, valueStart } of pairs) {
    writer.raw(bytes.subarray(start, valueStart));
    reader.position = valueStart;
    const other = how.depth === 1 ? replacementOf(key, reader.kind(key), how.isHrx) : undefined;
    if (other) writer.raw(other);
    else writeValue(reader, writer, { ...how, depth: how.depth + 1 });
  }
  reader.position = end;
}

function writeValue(reader: MessagePackReader, writer: MessagePackWriter, how: Rewriting): void {
  const kind = reader.kind("TOC");
  if (!how.isHrx || how.depth > HRX_DEPTH || (kind !== "map" && kind !== "array")) {
    const start = reader.position;
    reader.skip("TOC");
    writer.raw(reader.bytes.subarray(start, reader.position));
    return;
  }
  if (kind === "map") return writeMap(reader, writer, how);
  const count = reader.arraySize("TOC");
  writer.arrayHeader(count);
  for (let index = 0; index < count; index++) writeValue(reader, writer, { ...how, depth: how.depth + 1 });
}

/** Equal texts are equal keys however their sizes are encoded. */
function takeKey(reader: MessagePackReader): string {
  const start = reader.position;
  if (reader.kind("TOC") !== "string") {
    reader.skip("TOC");
    return `value ${latin1(reader.bytes.subarray(start, reader.position))}`;
  }
  const size = reader.stringSize("TOC");
  reader.position += size;
  return `text ${latin1(reader.bytes.subarray(reader.position - size, reader.position))}`;
}

const bytesAsText = new TextDecoder("latin1");

function latin1(bytes: Uint8Array): string {
  return bytesAsText.decode(bytes);
}

const NO_TARGETS = Uint8Array.of(0x90);

function replacementOf(key: string, kind: string, isHrx: boolean): Uint8Array | undefined {
  if (key === "text gfx_arches" && (isHrx ? kind !== "array" : kind === "string")) return NO_TARGETS;
  if (key !== "text compression_scheme" || isHrx || kind === "string") return undefined;
  const name = encodeUtf8(`(${kind})`);
  return Uint8Array.of(0xd9, name.length, ...name);
}

function withToc(source: Source, tocOffset: number, toc: Uint8Array): Source {
  return {
    name: source.name,
    size: tocOffset + toc.length,
    async read(offset: number, length: number, options?: ReadOptions): Promise<Uint8Array> {
      checkRange(this, offset, length);
      if (offset + length <= tocOffset) return await source.read(offset, length, options);
      const inToc = toc.subarray(Math.max(0, offset - tocOffset), offset + length - tocOffset);
      if (offset >= tocOffset) return inToc;
      const before = await source.read(offset, tocOffset - offset, { signal: options?.signal });
      const bytes = new Uint8Array(length);
      bytes.set(before);
      bytes.set(inToc, before.length);
      return bytes;
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}
