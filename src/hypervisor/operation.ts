import type { ClaimSpec } from "../api/index.ts";
import type { FetchImage, PutImage, RemoveImage } from "./image-operation.ts";
import type { Bus, DiskShape, HighAvailabilityShape, NewDisk, Shape } from "./machine.ts";
import type { SeenFile } from "./seen-file.ts";

/** What a driver has to know of a Claim. It reads it and never writes it. */
export type ClaimedMachine = Pick<
  ClaimSpec,
  | "externalId"
  | "identity"
  | "installation"
  | "owner"
  | "node"
  | "volumes"
  | "otherVolumes"
  | "allocation"
  | "probableVolumes"
  | "driver"
  | "reservedAt"
>;

/** What can be begun. Each has one effect at most; deletion from any point is the unwind. */
export type Operation =
  | CreateShell
  | Clone
  | AddDisk
  | Attach
  | Detach
  | DestroyDisk
  | MoveDisk
  | HandOver
  | Grow
  | Configure
  | Stamp
  | Release
  | PowerOn
  | PowerOff
  | Reboot
  | Suspend
  | Resume
  | Migrate
  | Guard
  | Regroup
  | Destroy
  | RemoveVolume
  | DiscardVolume
  | Unlock
  | ClearHusk
  | FetchImage
  | PutImage
  | RemoveImage
  | PutSeed
  | RemoveSeed;

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

/**
 * Makes the machine as the hypervisor's own copy of another: for what a copy of single disks cannot
 * do, which is to share the blocks of a template, or to go back to a snapshot. The copy bears no
 * mark of ours until `stamp` with `cloned` has written it; until then it is ours by the reserved id
 * and our own task, and `observe` with `clonedFrom` says so.
 */
export interface Clone {
  readonly kind: "clone";
  readonly claim: ClaimedMachine;
  /** Where the source is, and where the copy is made. */
  readonly node: string;
  readonly source: string;
  readonly mode: "Linked" | "Full";
  readonly name?: string;
  readonly snapshot?: string;
  /** Of a full copy: where its disks go. Absent: beside those of the source. */
  readonly storage?: string;
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
  /** What else is changed in the same breath, as `configure` would: it saves an effect. */
  readonly also?: Shape;
}

/**
 * Attaches a volume that is there already, under a name that the mark knows. The volume stands in
 * the Claim and was detached; or with `take` it is one that no machine uses, and becomes ours.
 */
export interface Attach {
  readonly kind: "attach";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disk: DiskShape;
  readonly volume: string;
  readonly bootOrder?: readonly string[];
  readonly take?: boolean;
}

/** Takes a part off that the mark names. A disk's volume stays, detached. */
export interface Detach {
  readonly kind: "detach";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly part: PartName;
}

export interface PartName {
  readonly of: "disk" | "cdrom" | "network" | "pci" | "usb";
  readonly name: string;
}

/** Destroys one volume of the machine, with its data. It must stand in the Claim. Gone: done. */
export interface DestroyDisk {
  readonly kind: "destroyDisk";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly volume: string;
}

/** Moves a disk's data to another storage; the old volume goes once the copy is in use. */
export interface MoveDisk {
  readonly kind: "moveDisk";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disk: string;
  readonly storage: string;
  readonly format?: NewDisk["format"];
}

/**
 * Hands a volume over to another machine of ours on the same node, where it gets another id: so
 * read both machines afterwards. The receiver's mark must know the name; its slot must be empty.
 */
export interface HandOver {
  readonly kind: "handOver";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly volume: string;
  readonly to: { readonly claim: ClaimedMachine; readonly at: Basis; readonly disk: string };
}

/** Grows a disk to an absolute size. Equal is done; smaller is refused. */
export interface Grow {
  readonly kind: "grow";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disk: string;
  readonly sizeBytes: number;
  /** The same was tried before, and the machine still shows the old size. */
  readonly isRepeated?: boolean;
}

/**
 * Changes what `shape` says and nothing else. What needs a restart becomes pending. It also makes
 * the small volumes that the shape needs: for the firmware's variables, the module's state and the
 * hypervisor's own drive with the data of the first boot.
 */
export interface Configure {
  readonly kind: "configure";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly shape: Shape;
}

/**
 * Writes the mark, with slots for names that it does not know yet. `at` must be ours; or with
 * `adopt` a machine of the Claim's identity that bears no other's mark; or with `cloned` a copy
 * that our own task made under the Claim's id, which also gets its identity by it.
 */
export interface Stamp {
  readonly kind: "stamp";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly disks: readonly StampedDisk[];
  readonly networks: readonly StampedPart[];
  readonly cdroms?: readonly StampedDisk[];
  readonly pci?: readonly StampedPart[];
  readonly usb?: readonly StampedPart[];
  readonly adopt?: boolean;
  readonly cloned?: { readonly from: string };
}

export interface StampedPart {
  readonly name: string;
  /** Where it is already. Absent: a free slot is chosen. */
  readonly slot?: string;
}

/** A name whose slot is empty gets another one where it should have another bus. */
export interface StampedDisk extends StampedPart {
  readonly bus?: Bus;
  /** It is the disk that the machine boots from, wherever that is. */
  readonly boots?: boolean;
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

/**
 * Graceful asks the guest and gives up after `graceSeconds`, or with `thenForce` switches it off
 * then; Forced switches off at once.
 */
export interface PowerOff {
  readonly kind: "powerOff";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly mode: "Graceful" | "Forced";
  readonly graceSeconds?: number;
  readonly thenForce?: boolean;
}

/** Asks the guest to shut down and starts it again, with everything that was pending. */
export interface Reboot {
  readonly kind: "reboot";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly graceSeconds?: number;
}

/** Writes the memory to disk and stops. `powerOn` goes on from there. */
export interface Suspend {
  readonly kind: "suspend";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  /** Where the memory goes. Absent: where the hypervisor puts it. */
  readonly storage?: string;
}

/** Lets a paused machine go on. */
export interface Resume {
  readonly kind: "resume";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
}

/** Moves the machine to another node, while it runs where that is possible. */
export interface Migrate {
  readonly kind: "migrate";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly to: string;
  /** For disks that only this node sees. Absent: the storage of the same name. */
  readonly storage?: string;
}

/** Puts the machine under high availability, changes how, or takes it out. */
export interface Guard {
  readonly kind: "guard";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly highAvailability: HighAvailabilityShape;
  /** The power that it should be kept in. */
  readonly power: "Running" | "Stopped";
}

/** Puts the machine into a pool, or without one out of all. */
export interface Regroup {
  readonly kind: "regroup";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly pool?: string;
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
  /**
   * No object has seen to it for a while: any machine, on any node, may refer to it by now. So all
   * of them are asked, their snapshots too, whatever that costs.
   */
  readonly isStray?: boolean;
  /** Somebody approved it, or a policy: then it may also be one that is only probably ours. */
  readonly isApproved?: boolean;
  /** What was approved. Another volume of the same name: `changed`. */
  readonly seen?: SeenFile;
}

/**
 * Destroys a volume or a file of Berth's naming of which nobody knows whose it is: on a person's
 * word, who typed its id. Its machine must not be there, and no machine may refer to it, in any
 * form. Gone already: done.
 */
export interface DiscardVolume {
  readonly kind: "discardVolume";
  readonly node: string;
  readonly volume: string;
  /** The volume's id once more, as the person typed it. */
  readonly confirmed: string;
  /** What the person saw. Another volume of the same name: `changed`. */
  readonly seen: SeenFile;
}

/**
 * Clears the lock of a machine that is proven ours, while the work that set it is proven ours and
 * dead. Needs the capability `Unlock`. Not locked any more: done.
 */
export interface Unlock {
  readonly kind: "unlock";
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  /** The lock that was seen, in the hypervisor's word. */
  readonly lock: string;
}

/**
 * Destroys an empty reservation that is proven ours, while the work that made it is proven dead.
 * Needs the capability `Unlock`. Gone already: done.
 */
export interface ClearHusk {
  readonly kind: "clearHusk";
  readonly claim: ClaimedMachine;
  readonly node: string;
  /** What was known of it when it was seen: see ObserveHints. */
  readonly sinceMs?: number;
  readonly workerNeverStarted?: boolean;
  readonly clonedFrom?: string;
}

/**
 * Puts a seed's disc onto a storage under its name (`seedFileName`). Whole there already: done. It
 * may be inserted once `seeds` shows it with its size.
 */
export interface PutSeed {
  readonly kind: "putSeed";
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
  readonly content: Uint8Array;
}

/** Removes a seed's disc: its name must be that of the Claim, and its machine must not hold it. */
export interface RemoveSeed {
  readonly kind: "removeSeed";
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
  /** As of a volume: any machine may hold it by now, so all of them are asked. */
  readonly isStray?: boolean;
  /** As of a volume: another disc of the same name is `changed`. */
  readonly seen?: SeenFile;
}
