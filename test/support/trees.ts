import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CompressionScheme } from "../../src/node.ts";
import { builtInSchemes, none } from "../../src/node.ts";
import { kernelToWrite, sampleKernel, writeToMemory } from "./kernels.ts";

/** A folder that is removed when it is disposed of. */
export class TemporaryTree implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), "kpack-tree-"));

  /** Writes a file, making its folders, and returns its path. */
  write(relative: string, content: Uint8Array | string): string {
    const path = this.at(relative);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  link(relative: string, target: string): string {
    const path = this.at(relative);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
    return path;
  }

  at(relative: string): string {
    return join(this.path, relative);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export interface ArchiveContent {
  readonly groupName?: string;
  /** By target, the binary keys, or keys with their kernels. */
  readonly targets: Readonly<Record<string, readonly (string | readonly [string, Uint8Array])[]>>;
  /** What `gfx_arches` lists, where it is not what the kernels are for. */
  readonly listed?: readonly string[];
  readonly scheme?: CompressionScheme;
}

export const ZSTD: CompressionScheme = builtInSchemes.find(({ name }) => name === "zstd-per-kernel") ?? none;

/** The bytes of an archive; kernels that are not given are code objects of their target, each another. */
export async function archiveBytes(content: ArchiveContent): Promise<Uint8Array> {
  const kernels = Object.entries(content.targets).flatMap(([target, wanted]) =>
    wanted.map((key) => {
      const [binaryKey, bytes] = typeof key === "string" ? [key, codeObject(target, key)] : key;
      return kernelToWrite(bytes, { binaryKey, target });
    }),
  );
  const { bytes } = await writeToMemory(kernels, {
    scheme: content.scheme ?? ZSTD,
    groupName: content.groupName ?? "g",
    family: "mixed",
    ...(content.listed && { targets: content.listed }),
  });
  return bytes;
}

/** `e_flags` of code object version 4 and later, by target; others are not needed here. */
const FLAGS: Readonly<Record<string, number>> = {
  gfx906: 0x2f,
  gfx90a: 0x3f | 0x100 | 0x400,
  "gfx90a:xnack-": 0x3f | 0x200 | 0x400,
  "gfx90a:xnack+": 0x3f | 0x300 | 0x400,
  gfx942: 0x4c | 0x100 | 0x400,
  "gfx942:sramecc+:xnack-": 0x4c | 0x200 | 0xc00,
  gfx1100: 0x41,
  gfx1101: 0x46,
  gfx1200: 0x48,
  gfx1201: 0x4e,
  "gfx12-generic": 0x59 | (1 << 24),
};

/** A kernel that begins as a code object for the target does; the rest depends on `seed`. */
export function codeObject(target: string, seed: string | number = 0, size = 2000): Uint8Array {
  const number = Array.from(`${target} ${seed}`).reduce(
    (sum, character) => (sum * 31 + character.charCodeAt(0)) >>> 0,
    7,
  );
  const bytes = sampleKernel(number, size);
  const view = new DataView(bytes.buffer);
  bytes.fill(0, 0, 64);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 64, target.includes("generic") ? 4 : 3]);
  view.setUint16(16, 3, true);
  view.setUint16(18, 224, true);
  view.setUint32(48, FLAGS[target] ?? 0, true);
  return bytes;
}

/** Keys `path#0` … `path#(count-1)`. */
export function keys(path: string, count: number, start = 0): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${path}#${start + index}`);
}
