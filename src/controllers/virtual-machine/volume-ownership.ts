import type { ClaimSpec } from "../../api/index.ts";
import {
  isFollowed,
  isProvenVolume,
  recordedSizes,
  type Leftover,
  type Machine,
  type SeenVolume,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { PlanInput } from "./next.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** Whose a volume is that is in a place of ours and that the Claim does not have. */
export type Judgement =
  /** Ours, by this proof; and the volumes of the Claim that it was before it got another name. */
  | { readonly is: "Ours"; readonly proof: Proof; readonly madeBy?: string; readonly was: string[] }
  /** The Claim knows nothing of such a disk. It is used as that disk, and never destroyed. */
  | { readonly is: "Unproven" }
  /** It may be ours under another name: a complete list of the storages has to tell. */
  | { readonly is: "InDoubt" }
  /** A person's. Berth's own volume of that disk, if the Claim has one. */
  | { readonly is: "Strange"; readonly own?: ClaimVolume };

type Proof = NonNullable<ClaimVolume["proof"]>;

/** What a judgement rests on. */
export type Grounds = Pick<
  PlanInput,
  "leftovers" | "open" | "lastDone" | "doneBefore" | "kept" | "keeper"
> & {
  readonly takes?: Readonly<Record<string, string>> | undefined;
  /** Disks that are to be destroyed. */
  readonly absentDisks?: readonly string[] | undefined;
};

/**
 * Judges a disk that the configuration has in a place of ours. Neither the place nor a name proves
 * anything: people put their own volumes there. It is ours if an operation of ours made it; or if
 * the recorded volume of that disk is proven gone and this one is as large: then somebody renamed
 * it, or moved it to another storage.
 */
export function judgeVolume(
  grounds: Grounds,
  { claim, machine }: { readonly claim: ClaimSpec; readonly machine: Machine },
  seen: SeenVolume,
): Judgement {
  const made = madeByUs(grounds, { claim, machine }, seen);
  if (made !== undefined) return made;
  const recorded = recordedOf(claim, seen);
  const own = recorded.at(-1);
  // What was once a person's stays so, also when Berth's own volume is gone since.
  const wasOthers = claim.otherVolumes?.some(({ id }) => id === seen.id) === true;
  if (!guard("volume-not-of-others", !wasOthers)) return own ? { is: "Strange", own } : strange;
  if (own === undefined) return judgeUnrecorded(claim, seen);
  if (!isFit(own, seen)) return { is: "Strange", own };
  // On another node a name may be taken: then our own migration gives the volume the next one.
  if (grounds.lastDone?.step === "Migrate" && claim.node !== machine.node) {
    return judgeMigrated({ claim, machine, recorded, own });
  }
  return judgeReplaced(grounds, { claim, machine, recorded, own });
}

const strange: Judgement = { is: "Strange" };

/** What an operation of ours made, brought back or was told to take over. */
function madeByUs(
  grounds: Grounds,
  { claim, machine }: { readonly claim: ClaimSpec; readonly machine: Machine },
  seen: SeenVolume,
): Judgement | undefined {
  if (Object.values(grounds.takes ?? {}).includes(seen.id)) return ours("Taken");
  if (!seen.isOwn) return undefined;
  const made = madeByAllocation(grounds, { claim, machine }, seen);
  if (made !== undefined) return made;
  const named = namedByMarker(grounds, claim);
  if (named !== undefined) return named;
  const returned = returnedAs(grounds, { claim, machine }, seen);
  return returned && ours(isFollowed(returned) ? "Followed" : "Config");
}

/**
 * What the marker says of the disks of a VM that existed before its Claim. A person had the VM
 * adopted with its disks. Else another run created it, or the Claim was lost: the marker names
 * slots and no volumes, so nothing tells what a person put there since.
 */
function namedByMarker({ lastDone }: Grounds, claim: ClaimSpec): Judgement | undefined {
  if (claim.state !== "Reserved") return undefined;
  // A VM that was created just now has no disks.
  if (!guard("reserved-vm-existed", lastDone?.step !== "Create")) return undefined;
  return ours(guard("marker-of-adopted-vm", claim.origin === "Adopted") ? "Config" : "Followed");
}

function ours(proof: Proof, madeBy?: string): Judgement {
  return { is: "Ours", proof, was: [], ...(madeBy === undefined ? {} : { madeBy }) };
}

/** A disk that Berth is about to make is not there before it was made. */
function judgeUnrecorded(
  { expectedDisks = [], state }: ClaimSpec,
  { isOwn, disk }: SeenVolume,
): Judgement {
  // A VM is created without disks, and the Claim is bound before the first of them is made.
  const isExpected = state === "Reserved" || (disk !== undefined && expectedDisks.includes(disk));
  return guard("volume-not-expected", !isExpected || !isOwn) ? { is: "Unproven" } : strange;
}

interface Replaced {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
  readonly recorded: readonly ClaimVolume[];
  readonly own: ClaimVolume;
}

/** A volume that is still in the VM, in no place, was not migrated into this one. */
function judgeMigrated({ machine, recorded, own }: Replaced): Judgement {
  const isUnused = recorded.some(({ id }) => {
    return machine.volumes.some((volume) => volume.id === id && volume.state === "Detached");
  });
  if (!guard("migrated-volume-not-unused", !isUnused)) return { is: "Strange", own };
  return { is: "Ours", proof: "Followed", was: recorded.map(({ id }) => id) };
}

function judgeReplaced(grounds: Grounds, { claim, machine, recorded, own }: Replaced): Judgement {
  const { leftovers, open, absentDisks = [] } = grounds;
  // It was taken out of its place to be destroyed: so Berth itself may be why it is gone.
  const isGoing = own.state === "Detached" && absentDisks.includes(own.disk ?? "");
  if (!guard("followed-volume-not-destroyed", !isGoing)) return { is: "Strange", own };
  const isThere = recorded.some(({ id }) => {
    return machine.volumes.some((volume) => {
      return volume.id === id && !isMadeAnew(grounds, { claim, machine }, volume);
    });
  });
  if (!guard("followed-volume-unused", !isThere)) return { is: "Strange", own };
  // What only snapshots refer to is in no list.
  if (!guard("followed-volume-no-snapshots", !machine.hasSnapshots)) return { is: "Strange", own };
  if (leftovers === undefined || open !== undefined) return { is: "InDoubt" };
  const listed = recorded.find(({ id }) => isListed(leftovers, id));
  if (!guard("followed-volume-unlisted", listed === undefined)) return { is: "Strange", own };
  return { is: "Ours", proof: "Followed", was: recorded.map(({ id }) => id) };
}

function isListed(leftovers: readonly Leftover[], id: string): boolean {
  return leftovers.some(({ volume }) => volume === id);
}

/** The volumes that a disk was last seen with; else those that were detached. */
function recordedOf({ volumes = [] }: ClaimSpec, { role, disk }: SeenVolume): ClaimVolume[] {
  const all = volumes.filter((volume) => volume.role === role && volume.disk === disk);
  const attached = all.filter(({ state }) => state === "Attached");
  return attached.length > 0 ? attached : all;
}

/** A volume keeps its size when somebody renames it, or moves it to another storage. */
function isFit(known: ClaimVolume, { sizeBytes, isOwn }: SeenVolume): boolean {
  if (!isOwn || sizeBytes === undefined) return false;
  return guard("followed-volume-size", recordedSizes(known).includes(sizeBytes));
}

/** What the open allocation made: under a name that it chose; or new, and for its disk. */
function madeByAllocation(
  grounds: Pick<Grounds, "lastDone" | "doneBefore" | "open">,
  { claim, machine }: { readonly claim: ClaimSpec; readonly machine: Machine },
  seen: SeenVolume,
): Judgement | undefined {
  const { allocation, volumes = [] } = claim;
  if (allocation === undefined || !seen.isOwn) return undefined;
  const { operation, earlier, listed, settledAt } = allocation;
  if (earlier?.includes(seen.id) === true) return ours("Named");
  if (listed.includes(seen.id)) return undefined;
  if (seen.id === allocation.volume) return ours("Named", operation);
  if (settledAt !== undefined) return undefined;
  const isIts = isAskedFor(allocation, volumes, seen);
  if (!guard("allocated-disk-asked-for", isIts)) return undefined;
  return judgeAllocated(grounds, { claim, machine, allocation }, seen);
}

/**
 * What is in the place of a disk that an operation was to make. People put volumes there too, also
 * while Berth is down: it is the operation's only if that ended well, and if it is as large as what
 * was asked for. Where nobody knows how the operation ended it is used, and never destroyed.
 */
function judgeAllocated(
  grounds: Pick<Grounds, "lastDone" | "doneBefore" | "open">,
  { claim, machine, allocation }: Allocated,
  seen: SeenVolume,
): Judgement {
  const { operation } = allocation;
  // The key of the configuration says that it is the VM's own memory, whoever saved it.
  if (seen.role === "State") return ours("Config", operation);
  const isSized = guard("allocated-disk-asked-size", hasAskedSize(allocation, seen));
  const isOnly = guard("allocated-disk-only-new", !hasOtherNew(claim, machine, seen));
  if (!isSized || !isOnly) return strange;
  if (guard("allocated-disk-ended-well", isEndedWell(allocation, grounds))) {
    return ours("Config", operation);
  }
  return grounds.open === undefined ? ours("Followed", operation) : { is: "InDoubt" };
}

/** A clone gets its marker first: what it made is seen when that was written. */
function isEndedWell(
  { operation, source }: Allocation,
  { lastDone, doneBefore }: Pick<Grounds, "lastDone" | "doneBefore">,
): boolean {
  if (lastDone?.id === operation) return true;
  return source !== undefined && doneBefore?.step === "Clone";
}

interface Allocated {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
  readonly allocation: Allocation;
}

/** Storages round the size of a volume up: LVM to extents of 4 MiB, or as they were set up. */
const roundingBytes = 64 * 1024 ** 2;

/** Where no size was asked for, or none is shown, that is no reason. */
function hasAskedSize(allocation: Allocation, { storage, role, sizeBytes }: SeenVolume): boolean {
  const asked = [allocation, ...(allocation.also ?? [])]
    .filter((place) => place.storage === storage)
    .map(({ size }) => Number(size ?? Number.NaN));
  if (role !== "Disk" || sizeBytes === undefined || asked.some(Number.isNaN)) return true;
  return asked.some((bytes) => sizeBytes >= bytes && sizeBytes - bytes <= roundingBytes);
}

/** Another volume that nobody recorded is in the VM, in no place: somebody exchanged the two. */
function hasOtherNew(
  { volumes = [], otherVolumes = [], allocation }: ClaimSpec,
  machine: Machine,
  seen: SeenVolume,
): boolean {
  const known = [...volumes, ...otherVolumes].map(({ id }) => id);
  return machine.volumes.some(({ id, isOwn, state, storage, role }) => {
    const isLoose = isOwn && role === "Disk" && state === "Detached" && storage === seen.storage;
    return isLoose && !known.includes(id) && allocation?.listed.includes(id) !== true;
  });
}

type Allocation = NonNullable<ClaimSpec["allocation"]>;

function isAllocatedOn(allocation: Allocation, { storage }: SeenVolume): boolean {
  return [allocation, ...(allocation.also ?? [])].some((place) => place.storage === storage);
}

/** A copy has several disks; every other operation makes the one that it was asked for, once. */
function isAskedFor(
  allocation: Allocation,
  volumes: readonly ClaimVolume[],
  seen: SeenVolume,
): boolean {
  if (!isAllocatedOn(allocation, seen)) return false;
  const { operation, source, disk: asked, volume: named } = allocation;
  const { role, disk } = seen;
  if (role !== "Disk") return true;
  if (named !== undefined) return false;
  const isMade = volumes.some((volume) => volume.madeBy === operation && volume.disk === disk);
  return source !== undefined || (asked === disk && !isMade);
}

/**
 * A hypervisor gives the name of a volume that was removed to the next one. Where that one is an
 * operation's of ours, what was said of the other does not hold for it.
 */
export function isMadeAnew(
  grounds: Pick<Grounds, "lastDone" | "doneBefore" | "open">,
  at: { readonly claim: ClaimSpec; readonly machine: Machine },
  seen: SeenVolume,
): boolean {
  const { claim } = at;
  const known = claim.volumes?.find(({ id }) => id === seen.id);
  const isOther = known?.disk !== undefined && seen.disk !== undefined && known.disk !== seen.disk;
  return isOther && madeByAllocation(grounds, at, seen)?.is === "Ours";
}

/** A disk that came back from the disk-holder VM, by an operation of ours: the Claim awaits it. */
function returnedAs(
  { kept = [], keeper }: Grounds,
  { claim, machine }: { readonly claim: ClaimSpec; readonly machine: Machine },
  { disk }: SeenVolume,
): ClaimVolume | undefined {
  const awaited = (claim.volumes ?? []).filter((volume) => {
    const isNameless = volume.disk === undefined && volume.onDelete === "Retain";
    return isNameless && !machine.volumes.some(({ id }) => id === volume.id);
  });
  const holds = [
    ...kept.map(({ volume: id, disk: name }) => ({ id, name })),
    ...(keeper?.claim.volumes ?? []).map(({ id, disk: name }) => ({ id, name })),
  ];
  return awaited.find(({ id }) => holds.some((one) => one.id === id && one.name === disk));
}

/** Whether a volume is in the place that the Claim has it in. */
export function isInPlace({ role, disk }: ClaimVolume, seen: SeenVolume): boolean {
  if (seen.role !== role || seen.state !== "Attached") return false;
  return role !== "Disk" || seen.disk === disk;
}

/**
 * Whether what has the id of a recorded volume is still that volume. A free name is used again, and
 * what is not in the place of its disk was not made larger by anybody. Of an unused one the
 * configuration tells no size: the driver asks the storage before it is attached or destroyed.
 */
export function isStillThat(known: ClaimVolume, seen: SeenVolume): boolean {
  if (known.size === undefined || seen.sizeBytes === undefined) return true;
  // Nobody makes firmware variables larger.
  const mayGrow = known.role === "Disk" && isInPlace(known, seen);
  const isLarger = mayGrow && seen.sizeBytes > Number(known.size);
  const isThat = recordedSizes(known).includes(seen.sizeBytes);
  return guard("volume-size-as-recorded", isLarger || isThat);
}

/** The same where nobody makes a disk larger: in a disk-holder VM. */
export function hasRecordedSize(known: ClaimVolume, { sizeBytes }: Sized): boolean {
  const sizes = recordedSizes(known);
  return sizes.length === 0 || sizeBytes === undefined || sizes.includes(sizeBytes);
}

type Sized = Pick<SeenVolume, "sizeBytes">;

/** Only what is proven ours, and still is what was recorded, goes with the VM. */
export function mayGoWithVm({ volumes = [] }: ClaimSpec, seen: SeenVolume): boolean {
  // The key of the configuration says that it is the VM's own memory, whoever saved it.
  if (seen.role === "State") return true;
  const known = volumes.find(({ id }) => id === seen.id);
  if (known === undefined || !isStillThat(known, seen)) return false;
  // A name that leads to nothing: what it stood for was handed over.
  if (known.disk === undefined && known.onDelete === "Delete") return true;
  if (!guard("deletion-volume-proven", isProvenVolume(known))) return false;
  // A named disk goes only if a spec said so: after the restoration of an old backup none may have.
  return known.disk === undefined ? known.onDelete !== "Retain" : known.onDelete === "Delete";
}

/**
 * Whether a volume that stays is kept under the name of its disk. A VM of the same name takes such
 * a disk back as its own, so a person's volume gets another name.
 */
export function isOwnDisk(known: ClaimVolume, seen: SeenVolume): boolean {
  const isDisk = isProvenVolume(known) || isFollowed(known);
  return guard("kept-under-its-name", isDisk && isStillThat(known, seen));
}
