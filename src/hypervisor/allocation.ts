import type { ClaimSpec } from "../api/index.ts";

export interface Leftover {
  readonly volume: string;
  readonly storage: string;
  readonly node: string;
  readonly sizeBytes: number;
  /** Where the storage reports it. */
  readonly createdMs?: number;
  /**
   * - `Claimed`: the Claim names it. `Named`: Berth chose its name for an operation, and wrote that
   *   into the Claim before. `TaskLogged`: the log of our own task on this id names it, and that
   *   task died. Only these three may be removed without a person.
   * - `Probable`: the hypervisor logged nothing, our task died, and the volume fits in every
   *   respect: see `evidence`. Removed by policy or approval only, never used again.
   * - `Before`: it existed before the VM. `Unattributed`: nobody knows whose it is. A name proves
   *   nothing: people allocate volumes under any id by hand.
   */
  readonly proof: "Claimed" | "Named" | "TaskLogged" | "Probable" | "Before" | "Unattributed";
  /** What is known about a volume that is `TaskLogged` or `Probable`, for people. */
  readonly evidence?: readonly string[];
  /** It was made for the memory of a machine that was being suspended. */
  readonly isSavedMemory?: boolean;
  /**
   * The day in its name, on the hypervisor's calendar, where saved memory is named by the day: on
   * that day the VM cannot be suspended while the volume exists.
   */
  readonly day?: string;
}

/** What an operation is about to allocate, and what existed there before it began. */
export interface Allocating extends NewVolume {
  readonly node: string;
  /** The id of the first volume, where Berth chooses its name. The operation reads it there. */
  readonly volume?: string;
  /** Further volumes that the same operation makes. */
  readonly also?: readonly NewVolume[];
  /** The VM that is copied, where the hypervisor lists the task under its id. */
  readonly source?: string;
  /** All volumes under the id that the storages listed. */
  readonly listed: readonly string[];
  /**
   * Whether every storage was listed for which a size is given. None is where the hypervisor's own
   * log names new volumes.
   */
  readonly complete: boolean;
}

export interface NewVolume {
  readonly storage: string;
  /** The exact size, where it is known. */
  readonly sizeBytes?: number;
}

/** Whether a volume may be removed without a person. */
export function isProvenOurs({ proof }: Pick<Leftover, "proof">): boolean {
  return proof === "Claimed" || proof === "Named" || proof === "TaskLogged";
}

/** Whether a volume is ours or probably ours. Nobody else's volume keeps a Claim. */
export function mayBeOurs({ proof }: Pick<Leftover, "proof">): boolean {
  return isProvenOurs({ proof }) || proof === "Probable";
}

/**
 * Whether a volume of a Claim is proven to be ours: only such a one is ever destroyed. The server
 * writes a cloud-init drive anew with every start, so that holds nothing of a person's.
 */
export function isProvenVolume({ role, proof }: ClaimVolume): boolean {
  if (role === "CloudInit") return true;
  return proof !== undefined && !isFollowed({ proof });
}

/**
 * Whether nothing but its place and its size say that a volume is the disk that somebody renamed or
 * moved. It is used as that disk, and never destroyed: it may be a person's (decision 19).
 */
export function isFollowed({ proof }: Pick<ClaimVolume, "proof">): boolean {
  return proof === "Followed";
}

/**
 * The sizes by which a volume of a Claim is told from another that got its name: what was seen, and
 * what an operation of ours makes it. None where the Claim does not say.
 */
export function recordedSizes({ size, growsTo = size }: ClaimSizes): number[] {
  return size === undefined ? [] : [Number(size), Number(growsTo)];
}

type ClaimSizes = Pick<NonNullable<ClaimSpec["volumes"]>[number], "size" | "growsTo">;
type ClaimVolume = Pick<NonNullable<ClaimSpec["volumes"]>[number], "role" | "proof">;
