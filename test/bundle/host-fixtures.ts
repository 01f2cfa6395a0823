import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { memorySource } from "../../src/source/memory-source.ts";
import type { Source } from "../../src/source/source.ts";

/** The fixtures of A, B, C and E that are kept here, and what is right for each: see their `how_to_read`. */

const FOLDER = new URL("../fixtures/", import.meta.url);

export interface ExpectedEntry {
  readonly triple: string;
  readonly arch: string | null;
  readonly offset: number;
  readonly size: number;
  readonly sha256: string;
}

export interface ExpectedBundle {
  readonly offset: number;
  readonly length: number;
  readonly container: "plain" | "ccob";
  readonly ccob?: {
    readonly version: number;
    readonly method_name: string;
    readonly header_size: number;
    readonly total_size: number | null;
    readonly uncompressed_size: number;
    readonly hash: string;
    readonly hash_ok: boolean;
  };
  readonly entries: readonly ExpectedEntry[];
}

export interface ExpectedWrapper {
  readonly file_offset: number;
  readonly reserved1: number;
  readonly reloc?: string | null;
  readonly target_vaddr?: number;
  readonly pointer_in_file: number;
  readonly bundle?: number;
}

export interface ExpectedFile {
  readonly kind: string;
  readonly expect?: string;
  readonly format?: "elf" | "coff";
  readonly abi_version: number;
  readonly e_flags: string;
  readonly target: string;
  readonly bundles?: readonly ExpectedBundle[];
  readonly wrappers?: readonly ExpectedWrapper[];
  readonly ref_section?: { readonly offset: number; readonly size?: number; readonly rawsize?: number };
}

export const expectedFiles: Readonly<Record<string, ExpectedFile>> = (
  JSON.parse(readFileSync(new URL("expected-host.json", FOLDER), "utf8")) as {
    readonly files: Record<string, ExpectedFile>;
  }
).files;

/** Names of the fixtures of one kind. */
export function fixturesOf(kind: string): readonly (readonly [string, ExpectedFile])[] {
  return Object.entries(expectedFiles).filter(([, file]) => file.kind === kind);
}

/** A fresh copy, which a test may damage. */
export function fixtureBytes(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(name, FOLDER)));
}

export function fixture(name: string): Source {
  return memorySource(fixtureBytes(name), name);
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** `bytes` with numbers written over them, at offsets. */
export function patched(
  bytes: Uint8Array,
  changes: readonly (readonly [offset: number, bytes: 1 | 2 | 4 | 8, value: number | bigint])[],
): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  for (const [offset, size, value] of changes) {
    if (size === 1) view.setUint8(offset, Number(value));
    else if (size === 2) view.setUint16(offset, Number(value), true);
    else if (size === 4) view.setUint32(offset, Number(value), true);
    else view.setBigUint64(offset, BigInt(value), true);
  }
  return copy;
}
