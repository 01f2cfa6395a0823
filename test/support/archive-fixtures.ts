import { readFileSync } from "node:fs";
import { join } from "node:path";

const FIXTURES = join(import.meta.dirname, "../fixtures");

export interface ExpectedKernel {
  readonly binary: string;
  readonly arch: string;
  readonly ordinal: number;
  readonly size: number;
  readonly sha256: string;
}

export interface ExpectedArchive {
  readonly expect: "ok" | "error";
  readonly size: number;
  readonly sha256: string;
  readonly archive?: {
    readonly toc_offset: number;
    readonly format_version: number;
    readonly group_name: string;
    readonly gfx_arch_family: string;
    readonly gfx_arches: readonly string[];
    readonly compression_scheme: string;
    readonly binaries: number;
    readonly kernels: number;
    readonly zstd_offset?: number;
    readonly zstd_size?: number;
    readonly frames?: number;
    readonly blobs?: number;
    readonly trailing_bytes?: number;
  };
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly kernels?: readonly ExpectedKernel[];
  readonly kernels_sample?: readonly ExpectedKernel[];
  readonly other_kernels?: readonly ExpectedKernel[];
  readonly kernels_digest?: string;
  readonly base?: string;
  readonly error?: {
    readonly kind: string;
    readonly when: string;
    readonly strictness: "must" | "should" | "none";
  };
}

const expected = JSON.parse(readFileSync(join(FIXTURES, "expected-archives.json"), "utf8")) as {
  readonly files: Readonly<Record<string, ExpectedArchive>>;
};

/** All archives with their path as in EXPECTED.json, for example `D/ok/none_base.kpack`. */
export const expectedArchives: readonly (readonly [string, ExpectedArchive])[] = Object.entries(
  expected.files,
);

export function expectedArchive(path: string): ExpectedArchive {
  const found = expected.files[path];
  if (!found) throw new Error(`no fixture ${path}`);
  return found;
}

export function fixturePath(path: string): string {
  return join(FIXTURES, path);
}

/** A fresh copy of a fixture's bytes, which a test may change. */
export function fixtureBytes(path: string): Uint8Array {
  return Uint8Array.from(readFileSync(fixturePath(path)));
}
