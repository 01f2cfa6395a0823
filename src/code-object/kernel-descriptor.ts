import { ByteReader } from "../bytes/byte-reader.ts";

/**
 * The kernel descriptor, which the hardware's packet processor reads: 64 bytes at the symbol `NAME.kd`.
 *
 * | offset | size | field |
 * | --- | --- | --- |
 * | 0 | 4 | group segment size (LDS) |
 * | 4 | 4 | private segment size (scratch) |
 * | 8 | 4 | kernarg size |
 * | 12 | 4 | reserved |
 * | 16 | 8 | signed offset from the descriptor to the kernel's first instruction |
 * | 24 | 20 | reserved |
 * | 44, 48, 52 | 4 each | compute_pgm_rsrc3, rsrc1, rsrc2 |
 * | 56 | 2 | code properties |
 * | 58 | 2 | kernarg preload |
 * | 60 | 4 | reserved |
 */
export interface KernelDescriptor {
  /** Where it stands in the code object's bytes. */
  readonly fileOffset: number;
  readonly ldsSize: number;
  readonly scratchSize: number;
  readonly kernargSize: number;
  /** Address of the kernel's first instruction; bigint since damaged ones may be any. */
  readonly entryAddress: bigint;
  readonly rsrc1: number;
  readonly rsrc2: number;
  readonly rsrc3: number;
  readonly codeProperties: number;
  readonly kernargPreload: number;
}

export const KERNEL_DESCRIPTOR_SIZE = 64;

/** Parses a descriptor that stands at `address` in memory. @throws FormatError `TRUNCATED` */
export function parseKernelDescriptor(
  bytes: Uint8Array,
  place: { readonly file?: string | undefined; readonly base: number; readonly address: bigint },
): KernelDescriptor {
  const reader = new ByteReader(bytes, place);
  const field = "kernel descriptor";
  const ldsSize = reader.u32(field); // 0
  const scratchSize = reader.u32(field); // 4
  const kernargSize = reader.u32(field); // 8
  reader.skip(4, field); // 12
  const entryOffset = BigInt.asIntN(64, reader.u64Big(field)); // 16
  reader.skip(20, field); // 24
  const rsrc3 = reader.u32(field); // 44
  const rsrc1 = reader.u32(field); // 48
  const rsrc2 = reader.u32(field); // 52
  const codeProperties = reader.u16(field); // 56
  const kernargPreload = reader.u16(field); // 58
  reader.skip(4, field); // 60
  return {
    fileOffset: place.base,
    ldsSize,
    scratchSize,
    kernargSize,
    entryAddress: place.address + entryOffset,
    rsrc1,
    rsrc2,
    rsrc3,
    codeProperties,
    kernargPreload,
  };
}
