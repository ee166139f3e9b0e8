import type { Answer } from "./categories.ts";
import type { Fence } from "./contract.ts";

/** For migrations, later: the blocks of a disk by offset. A driver that has none leaves it out. */
export interface DiskBlocks {
  read(volume: string, range: BlockRange): AsyncIterable<DiskBlock>;
  write(volume: string, block: DiskBlock, fence: Fence): Promise<Answer<void>>;
}

export interface BlockRange {
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

export type DiskBlock =
  | { readonly offsetBytes: number; readonly data: Uint8Array }
  | { readonly offsetBytes: number; readonly zeroBytes: number };
