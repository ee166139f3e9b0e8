import type { ClaimSpec } from "../api/index.ts";
import type { Bus, NewDisk, Shape } from "./machine.ts";

/** What a driver has to know of a Claim. It reads it and never writes it. */
export type ClaimedMachine = Pick<
  ClaimSpec,
  | "externalId"
  | "identity"
  | "installation"
  | "owner"
  | "node"
  | "volumes"
  | "preflightVolumes"
  | "reservedAt"
>;

/** What can be begun. Each has one effect at most; deletion from any point is the unwind. */
export type Operation =
  | CreateShell
  | AddDisk
  | Grow
  | Configure
  | Stamp
  | Release
  | PowerOn
  | PowerOff
  | Destroy
  | RemoveVolume
  | FetchImage;

/** The machine as it was seen when the operation was decided. Another version: `changed`. */
export interface Basis {
  readonly node: string;
  readonly version: string;
}

/**
 * Makes the machine with its mark and everything but disks: reserved and marked in the shortest
 * time that the hypervisor allows. The slots of all `disks` are written into the mark already.
 */
export interface CreateShell {
  readonly kind: "create";
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly shape: Shape;
  readonly pool?: string;
}

/** Makes a disk and attaches it under its name, which the mark must know (`create`, `stamp`). */
export interface AddDisk {
  readonly kind: "addDisk";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disk: NewDisk;
  /** The order to boot in from now on, as names. A new machine starts from its first disk so. */
  readonly bootOrder?: readonly string[];
}

/** Grows a disk to an absolute size. Equal is done; smaller is refused. */
export interface Grow {
  readonly kind: "grow";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disk: string;
  readonly sizeBytes: number;
}

/** Changes what `shape` says and nothing else. What needs a restart becomes pending. */
export interface Configure {
  readonly kind: "configure";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly shape: Shape;
}

/**
 * Writes the mark, with slots for names that it does not know yet. `at` must be ours, or with
 * `adopt` a machine of the Claim's identity that bears no other's mark.
 */
export interface Stamp {
  readonly kind: "stamp";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disks: readonly StampedDisk[];
  readonly networks: readonly { readonly name: string; readonly slot?: string }[];
  readonly adopt?: boolean;
}

export interface StampedDisk {
  readonly name: string;
  readonly bus?: Bus;
  /** Where it is already. Absent: a free slot is chosen. */
  readonly slot?: string;
}

/** Rewrites the mark to released. Nothing else changes. */
export interface Release {
  readonly kind: "release";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
}

export interface PowerOn {
  readonly kind: "powerOn";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
}

/** Graceful asks the guest and gives up after `graceSeconds`; Forced switches off. */
export interface PowerOff {
  readonly kind: "powerOff";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly mode: "Graceful" | "Forced";
  readonly graceSeconds?: number;
}

/**
 * Destroys the machine and every volume that bears its id. `volumes` are the ones that may go: if
 * the machine has another, nothing is destroyed.
 */
export interface Destroy {
  readonly kind: "destroy";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly volumes: readonly string[];
}

/** Removes one volume that is provably ours and that no machine refers to. Gone already: done. */
export interface RemoveVolume {
  readonly kind: "removeVolume";
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly volume: string;
}

/** Lets the hypervisor bring an image file. Present under that name already: done. */
export interface FetchImage {
  readonly kind: "fetchImage";
  readonly node: string;
  readonly storage: string;
  readonly url: string;
  readonly fileName: string;
  /** `sha256:` or `sha512:` and the digest in hexadecimal. */
  readonly checksum: string;
}
