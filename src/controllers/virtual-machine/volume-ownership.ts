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
export type Grounds = Pick<PlanInput, "leftovers" | "open" | "lastDone" | "kept" | "keeper"> & {
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
    return { is: "Ours", proof: "Config", was: recorded.map(({ id }) => id) };
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
  const made = madeByAllocation(claim, seen);
  if (made !== undefined) return made;
  // The marker that was read back is our own, and names the disks that it found.
  if (claim.state === "Reserved") return ours("Config");
  const returned = returnedAs(grounds, { claim, machine }, seen);
  return returned && ours(isFollowed(returned) ? "Followed" : "Config");
}

function ours(proof: Proof, madeBy?: string): Judgement {
  return { is: "Ours", proof, was: [], ...(madeBy === undefined ? {} : { madeBy }) };
}

/** A disk that Berth is about to make is not there before it was made. */
function judgeUnrecorded(
  { expectedDisks = [] }: ClaimSpec,
  { isOwn, disk }: SeenVolume,
): Judgement {
  const isExpected = disk !== undefined && expectedDisks.includes(disk);
  return guard("volume-not-expected", !isExpected || !isOwn) ? { is: "Unproven" } : strange;
}

interface Replaced {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
  readonly recorded: readonly ClaimVolume[];
  readonly own: ClaimVolume;
}

function judgeReplaced(
  { leftovers, open, absentDisks = [] }: Grounds,
  { claim, machine, recorded, own }: Replaced,
): Judgement {
  // It was taken out of its place to be destroyed: so Berth itself may be why it is gone.
  const isGoing = own.state === "Detached" && absentDisks.includes(own.disk ?? "");
  if (!guard("followed-volume-not-destroyed", !isGoing)) return { is: "Strange", own };
  const isThere = recorded.some(({ id }) => {
    return machine.volumes.some((volume) => volume.id === id && !isMadeAnew(claim, volume));
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
  { allocation, volumes = [] }: ClaimSpec,
  seen: SeenVolume,
): Judgement | undefined {
  if (allocation === undefined || !seen.isOwn) return undefined;
  const { operation, earlier, listed, settledAt } = allocation;
  if (earlier?.includes(seen.id) === true) return ours("Named");
  if (listed.includes(seen.id)) return undefined;
  if (seen.id === allocation.volume) return ours("Named", operation);
  if (settledAt !== undefined) return undefined;
  const isIts = isAskedFor(allocation, volumes, seen);
  return guard("allocated-disk-asked-for", isIts) ? ours("Config", operation) : undefined;
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
export function isMadeAnew(claim: ClaimSpec, seen: SeenVolume): boolean {
  const known = claim.volumes?.find(({ id }) => id === seen.id);
  const isOther = known?.disk !== undefined && seen.disk !== undefined && known.disk !== seen.disk;
  return isOther && madeByAllocation(claim, seen) !== undefined;
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
