import type { ClaimSpec } from "../../api/index.ts";
import { isFollowed } from "../../hypervisor/index.ts";
import type {
  DiskShape,
  Failure,
  Machine,
  NewDisk,
  SeenDisk,
  Shape,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import {
  basisOf,
  isOff,
  stepOrWait,
  wasJustDone,
  type Found,
  type Next,
  type PlanInput,
} from "./next.ts";
import { isEverDeclared } from "./plan-claim.ts";
import { planVmTakeBack } from "./plan-hand-over.ts";
import { seedShape } from "./plan-seed.ts";
import { sizeText } from "./quantities.ts";
import type { Step } from "./steps.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** One machine, and what is known of it. */
interface At {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

/** Disks: destroyed, detached, attached or made, put on another bus, moved, grown. */
export function planVmDisks(
  input: PlanInput,
  claim: ClaimSpec,
  { machine, differences, later }: Found,
): Next | undefined {
  const at = { claim, machine };
  const found = planVmDestroyed(input, at) ?? planVmMissing(input, at);
  if (found !== undefined) return found;
  const isOtherBus = ({ name }: NewDisk): boolean => {
    const path = `disks[${name}].bus`;
    return differences.some((one) => one.path === path) && !later.includes(path);
  };
  const misplaced = input.declared.disks.find(isOtherBus);
  const leaving = misplaced?.name ?? removedDisk(input, at);
  const step =
    (leaving === undefined ? undefined : detachStep(at, leaving)) ??
    moveStep(input, at) ??
    growStep(input, at);
  return step && stepOrWait(input, step, machine.lock);
}

/** Disks that the Claim knows and the machine lacks: an empty one in their place would hide it. */
export function lostDisks(disks: readonly NewDisk[], claim: ClaimSpec, machine: Machine): string[] {
  return disks
    .filter(({ name }) => seenDisk(machine, name) === undefined)
    .filter(({ name }) => {
      return (
        volumesOf(claim, name).length > 0 && keptVolume({ claim, machine }, name) === undefined
      );
    })
    .map(({ name }) => name);
}

/**
 * Disks whose entry says Absent: destroyed one by one. The Claim forgets a volume when neither the
 * machine nor a listing of the storages shows it any more.
 */
function planVmDestroyed(input: PlanInput, at: At): Next | undefined {
  for (const name of input.declared.absentDisks ?? []) {
    const isKnown = guard("destroy-disk-once-declared", isEverDeclared(at.claim, name));
    const [volume] = isKnown ? volumesOf(at.claim, name) : [];
    if (volume === undefined || isLeaving(at, volume)) continue;
    return planVmFollowedStays(input, at, volume) ?? planVmDestroyedVolume(input, at, volume);
  }
  return undefined;
}

/** One that the guest does not let go yet is detached with the next restart, in whatever slot. */
function isLeaving({ machine }: At, { id, disk = "" }: ClaimVolume): boolean {
  if (machine.pending.includes(`disks[${disk}]`)) return true;
  const isUsed = machine.volumes.some((volume) => volume.id === id && volume.state === "Attached");
  const isShown = machine.disks.some(({ volume }) => volume === id);
  return machine.pending.length > 0 && isUsed && !isShown;
}

/**
 * A disk that somebody renamed or moved may be a person's own volume. It is detached, and a person
 * removes it (decision 19). Undefined: it may go, or it is gone.
 */
function planVmFollowedStays(input: PlanInput, at: At, volume: ClaimVolume): Next | undefined {
  if (guard("absent-disk-not-followed", !isFollowed(volume))) return undefined;
  const { id, disk = "" } = volume;
  const { claim, machine } = at;
  if (seenDisk(machine, disk)?.volume === id) {
    return stepOrWait(input, detachStep(at, disk), machine.lock);
  }
  const isListed = input.leftovers?.some((one) => one.volume === id) === true;
  if (!isListed && !machine.volumes.some((one) => one.id === id)) return undefined;
  return { do: "fail", failure: followedFailure(claim, volume) };
}

function followedFailure({ externalId }: ClaimSpec, { id, disk = "" }: ClaimVolume): Failure {
  return {
    category: "IdentityConflict",
    message:
      `The disk ${disk} is detached, and Berth does not destroy its volume ${id}: somebody renamed ` +
      "or moved it by hand, so it may be another volume than the one that Berth made.",
    remedy:
      `If nobody needs it, remove the volume ${id} of VM ${externalId} on the hypervisor; Berth ` +
      "continues by itself. Otherwise remove the entry of the disk from spec.disks: it stays detached.",
  };
}

function planVmDestroyedVolume(
  input: PlanInput,
  { claim, machine }: At,
  { id, disk = "" }: ClaimVolume,
): Next {
  const isThere = machine.volumes.some((volume) => volume.id === id);
  if (!isThere && input.leftovers === undefined) return { do: "sweep" };
  if (!isThere && input.leftovers?.some(({ volume }) => volume === id) !== true) {
    const volumes = claim.volumes?.filter((volume) => volume.id !== id) ?? [];
    return { do: "record", change: { volumes } };
  }
  const operation = { kind: "destroyDisk", claim, at: basisOf(machine), volume: id } as const;
  const intent = `Destroy the disk ${disk}, which is the volume ${id}.`;
  return stepOrWait(input, { name: "DestroyDisk", operation, intent }, machine.lock);
}

/** A disk that is declared and not there: the one that was detached, or a new one. */
function planVmMissing(input: PlanInput, at: At): Next | undefined {
  const { machine } = at;
  const missing = input.declared.disks.filter(({ name }) => !seenDisk(machine, name));
  const [first] = missing;
  if (first === undefined) return undefined;
  const unmarked = missing.filter(({ name }) => machine.mark?.disks[name] === undefined);
  if (unmarked.length > 0) return stepOrWait(input, stampStep(at, unmarked), machine.lock);
  const kept = keptVolume(at, first.name);
  const waiting = input.kept?.find(({ disk }) => disk === first.name);
  if (kept === undefined && waiting !== undefined) return planVmTakeBack(input, at, waiting);
  const step =
    kept === undefined
      ? addDiskStep(input, at, first)
      : attachStep(input, at, { disk: first, volume: kept.id });
  return stepOrWait(input, step, machine.lock);
}

/** A disk that a spec once named and this one does not. What nobody named is a person's. */
function removedDisk({ declared }: PlanInput, { claim, machine }: At): string | undefined {
  const names = new Set(declared.disks.map(({ name }) => name));
  return machine.disks
    .map(({ name }) => name)
    .filter((name) => name !== undefined && !names.has(name))
    .filter((name = "") => guard("detach-disk-once-declared", isEverDeclared(claim, name)))
    .find((name = "") => guard("detach-own-disk", hasOwnVolume({ claim, machine }, name)));
}

/** What a person put in the place of a disk of ours is that person's to take out. */
function hasOwnVolume({ claim, machine }: At, name: string): boolean {
  const seen = seenDisk(machine, name);
  return volumesOf(claim, name).some(({ id }) => id === seen?.volume);
}

function seenDisk(machine: Machine, name: string): SeenDisk | undefined {
  return machine.disks.find((disk) => disk.name === name);
}

function volumesOf({ volumes = [] }: ClaimSpec, name: string): ClaimVolume[] {
  return volumes.filter(({ disk, role }) => disk === name && role === "Disk");
}

/** The volume that the machine keeps of a disk, or that was detached from it. */
function keptVolume({ claim, machine }: At, name: string): ClaimVolume | undefined {
  const known = volumesOf(claim, name);
  const there = known.filter(({ id }) => machine.volumes.some((volume) => volume.id === id));
  return there.at(-1) ?? known.filter(({ state }) => state === "Detached").at(-1);
}

function stampStep({ claim, machine }: At, disks: readonly NewDisk[]): Step {
  const named = disks.map(({ name, bus }) => (bus === undefined ? { name } : { name, bus }));
  const at = basisOf(machine);
  const operation = { kind: "stamp", claim, at, disks: named, networks: [] } as const;
  const names = disks.map(({ name }) => name).join(", ");
  return { name: "WriteMarker", operation, intent: `Choose places for the disks ${names}.` };
}

function addDiskStep(input: PlanInput, { claim, machine }: At, disk: NewDisk): Step {
  const { declared } = input;
  const taken = claim.everExisted ? undefined : declared.takes?.[disk.name];
  const order = orderWith(declared.shape, machine, disk.name);
  const at = basisOf(machine);
  if (taken !== undefined) {
    const operation = { kind: "attach", claim, at, disk: optionsOf(disk), volume: taken } as const;
    const intent = `Take the volume ${taken} as the disk ${disk.name}.`;
    return { name: "Attach", operation: { ...operation, take: true, ...order }, intent };
  }
  const first = { ...firstTime(declared.shape), ...seedShape(input, claim, machine) };
  const also = claim.everExisted ? {} : { also: first };
  const operation = { kind: "addDisk", claim, at, disk, ...order, ...also } as const;
  return { name: "AddDisk", operation, intent: `Make the disk ${disk.name} on ${disk.storage}.` };
}

/** The small volumes of a new machine are made together with its disk: it saves an effect. */
function firstTime({ firmware, cloudInit }: Shape): Shape {
  return { ...(firmware ? { firmware } : {}), ...(cloudInit ? { cloudInit } : {}) };
}

function attachStep(
  input: PlanInput,
  { claim, machine }: At,
  { disk, volume }: { readonly disk: NewDisk; readonly volume: string },
): Step {
  const stamp = stampStep({ claim, machine }, [disk]);
  // Only the driver knows whether the place that the name has is on this bus.
  if (disk.bus !== undefined && !wasJustDone(input, stamp)) return stamp;
  const at = basisOf(machine);
  const order = orderWith(input.declared.shape, machine, disk.name);
  const operation = { kind: "attach", claim, at, disk: optionsOf(disk), volume, ...order } as const;
  return { name: "Attach", operation, intent: `Attach the disk ${disk.name} again.` };
}

/** The order to boot in, as far as it is there with this disk. */
function orderWith(
  shape: Shape,
  machine: Machine,
  disk: string,
): { readonly bootOrder?: readonly string[] } {
  const { networks = [], cdroms = [], bootOrder = [] } = shape;
  const disks = [disk, ...machine.disks.map(({ name }) => name)];
  const parts = [...networks, ...cdroms].map(({ name }) => name);
  const order = bootOrder.filter((name) => disks.includes(name) || parts.includes(name));
  return order.length > 0 ? { bootOrder: order } : {};
}

/** How a disk is attached, without what it is made of. */
export function optionsOf(disk: NewDisk): DiskShape {
  const { storage: _storage, sizeBytes: _size, format: _format, fill: _fill, ...rest } = disk;
  return rest;
}

function detachStep({ claim, machine }: At, name: string): Step {
  const part = { of: "disk", name } as const;
  const operation = { kind: "detach", claim, at: basisOf(machine), part } as const;
  return { name: "Detach", operation, intent: `Detach the disk ${name}; its data stays.` };
}

/** Only where the spec itself names the storage: a default that changed moves nothing. */
function moveStep({ declared }: PlanInput, { claim, machine }: At): Step | undefined {
  for (const { name: disk, storage } of declared.disks) {
    const isElsewhere = seenDisk(machine, disk)?.storage !== storage;
    if (!isElsewhere || declared.pinnedDisks?.includes(disk) !== true) continue;
    const operation = { kind: "moveDisk", claim, at: basisOf(machine), disk, storage } as const;
    return { name: "MoveDisk", operation, intent: `Move the disk ${disk} to ${storage}.` };
  }
  return undefined;
}

function growStep({ declared }: PlanInput, { claim, machine }: At): Step | undefined {
  for (const { name: disk, sizeBytes = 0 } of declared.disks) {
    if ((seenDisk(machine, disk)?.sizeBytes ?? 0) >= sizeBytes) continue;
    // One that waits for a restart to be there cannot grow before that.
    if (!isOff(claim, machine) && machine.pending.includes(`disks[${disk}]`)) continue;
    const operation = { kind: "grow", claim, at: basisOf(machine), disk, sizeBytes } as const;
    const intent = `Grow the disk ${disk} to ${sizeText(sizeBytes)}.`;
    return { name: "Grow", operation, intent };
  }
  return undefined;
}
