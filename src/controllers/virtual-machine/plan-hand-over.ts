import type { ClaimSpec } from "../../api/index.ts";
import {
  isFollowed,
  type DiskShape,
  type Machine,
  type SeenDisk,
  type SeenVolume,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import {
  basisOf,
  stepOrWait,
  wasJustDone,
  type KeeperView,
  type KeptDisk,
  type Next,
  type PlanInput,
} from "./next.ts";
import {
  planVmKeeperClosed,
  planVmKeeperReady,
  planVmKeeperRenamed,
  settledEntry,
  type Held,
} from "./plan-keeper.ts";
import type { Step } from "./steps.ts";
import { hasRecordedSize, isOwnDisk, mayGoWithVm } from "./volume-ownership.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** The machine that disks leave or come to. */
interface At {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

/**
 * Hands over what must not go with a machine that is about to be destroyed. Each volume stands in
 * the keeper's Claim, as one that has to stay, before it is sent there; and it leaves the machine's
 * own Claim only when it was seen with the keeper. Undefined: nothing is left to hand over.
 */
export function planVmHandOver(
  input: PlanInput,
  at: At,
  stays: readonly SeenVolume[],
): Next | undefined {
  const { keeper } = input;
  if (keeper === undefined) return stays.length === 0 ? undefined : { do: "keep" };
  const entries = keeper.claim.volumes ?? [];
  if (stays.length === 0 && !entries.some((entry) => isComing(keeper, entry))) return undefined;
  const names = namesFor(stays, at.claim, entries);
  const ready = planVmKeeperReady(input, keeper, {
    node: at.machine.node,
    disks: shapesOf(stays, names, at.machine),
  });
  if ("do" in ready) return ready;
  for (const entry of entries) {
    const next = planVmEntry(input, at, { held: ready, entry });
    if (next !== undefined) return next;
  }
  const fresh = stays.filter(({ id }) => !entries.some((entry) => entry.id === id));
  if (fresh.length === 0) return undefined;
  const added = fresh.map((volume) => {
    const known = at.claim.volumes?.find(({ id }) => id === volume.id);
    return { ...entryOf(volume, names.get(volume.id) ?? ""), ...followed(known) };
  });
  return { do: "recordKeeper", change: { volumes: [...entries, ...added] } };
}

/** A disk that was only followed is no better known after it changed hands. */
function followed(known: ClaimVolume | undefined): Pick<ClaimVolume, "proof"> {
  return known !== undefined && isFollowed(known) ? { proof: "Followed" } : {};
}

/** An entry whose volume was not seen with the keeper yet. */
function isComing({ seen }: KeeperView, entry: ClaimVolume): boolean {
  return isAwaited(entry, seen.at === "ours" ? seen.machine.volumes : []);
}

/** One that was seen there and is not there now was taken away: it is not on its way. */
function isAwaited({ id, state, onDelete }: ClaimVolume, here: readonly SeenVolume[]): boolean {
  const isHere = state === "Attached" || here.some((volume) => volume.id === id);
  return onDelete === "Retain" && !isHere;
}

/** One volume on its way to the keeper. Undefined: it is there, and both Claims say so. */
function planVmEntry(input: PlanInput, at: At, coming: Coming): Next | undefined {
  const { held, entry } = coming;
  if (!isAwaited(entry, held.machine.volumes)) return undefined;
  const filled = held.machine.disks.find(({ name }) => name === entry.disk);
  return filled === undefined
    ? planVmSend(input, at, coming)
    : planVmArrived(input, at, { ...coming, filled });
}

interface Coming {
  readonly held: Held;
  readonly entry: ClaimVolume;
}

/** It is still to be handed over, unless somebody has said meanwhile that it may go after all. */
function planVmSend(input: PlanInput, at: At, { held, entry }: Coming): Next {
  const { claim, machine } = at;
  const seen = machine.volumes.find(({ id }) => id === entry.id);
  if (seen !== undefined && mayGoWithVm(claim, seen)) return dropped(held, entry.id);
  const step = handOverStep(at, held, entry);
  return planVmSlot(input, at, { held, entry }) ?? bothUnlocked(input, step, [machine, held]);
}

/** A disk is under its name: first the machine's Claim forgets it, then the keeper's knows. */
function planVmArrived(
  input: PlanInput,
  at: At,
  { held, entry, filled }: Coming & { readonly filled: SeenDisk },
): Next {
  const { claim, machine } = at;
  const { id } = entry;
  const step = handOverStep(at, held, entry);
  const isThere = machine.volumes.some((one) => one.id === id);
  const known = claim.volumes?.find((one) => one.id === id);
  // Work that was cut short and then finished: the machine's own name for it leads to nothing now.
  const isProven = !isThere || wasJustDone(input, step) || isNameOnly(known);
  // What somebody put there is of another size, or the driver says so.
  const isSized = entry.size === undefined || entry.size === String(filled.sizeBytes);
  if (!guard("transfer-arrived-proven", isProven) || !guard("transfer-arrived-size", isSized)) {
    return bothUnlocked(input, step, [machine, held]);
  }
  if (known !== undefined && !isNameOnly(known)) {
    return { do: "record", change: { volumes: withoutData(claim, id, isThere) } };
  }
  const volumes = (held.claim.volumes ?? []).map((one) => {
    return one.id === id ? settledEntry(one, filled) : one;
  });
  return { do: "recordKeeper", change: { volumes } };
}

/** A name that leads to nothing: see below. */
function isNameOnly(known: ClaimVolume | undefined): boolean {
  return known?.onDelete === "Delete" && known.disk === undefined;
}

/** The Claim without the volume; or where the machine still names it, with a name for nothing. */
function withoutData({ volumes = [] }: ClaimSpec, id: string, isNamed: boolean): ClaimVolume[] {
  return volumes.flatMap((volume): ClaimVolume[] => {
    if (volume.id !== id) return [volume];
    const { disk: _disk, since: _since, proof: _proof, ...rest } = volume;
    return isNamed ? [{ ...rest, onDelete: "Delete" }] : [];
  });
}

function dropped({ claim }: Held, id: string): Next {
  const volumes = claim.volumes?.filter((volume) => volume.id !== id) ?? [];
  return { do: "recordKeeper", change: { volumes } };
}

/** A place in the keeper's mark, on the keeper that is where the machine is. */
function planVmSlot(input: PlanInput, { machine }: At, { held, entry }: Coming): Next | undefined {
  const { disk = "" } = entry;
  const near = planVmKeeperNear(input, machine, held);
  if (near !== undefined || held.machine.mark?.disks[disk] !== undefined) return near;
  const disks = shapesOf([{ id: entry.id }], new Map([[entry.id, disk]]), machine);
  const at = basisOf(held.machine);
  const operation = { kind: "stamp", claim: held.claim, at, disks, networks: [] } as const;
  const intent = `Choose a place for the disk ${disk} in the keeper ${held.claim.externalId}.`;
  return stepOrWait(input, { name: "WriteDiskHolderMarker", operation, intent }, held.machine.lock);
}

/** Volumes change hands on one node only. A keeper has no power, so it can always be moved. */
function planVmKeeperNear(input: PlanInput, machine: Machine, held: Held): Next | undefined {
  const { node: to } = machine;
  if (held.machine.node === to) return undefined;
  const at = basisOf(held.machine);
  const operation = { kind: "migrate", claim: held.claim, at, to } as const;
  const intent = `Move the keeper ${held.claim.externalId} to the node ${to}.`;
  return stepOrWait(input, { name: "MigrateDiskHolder", operation, intent }, held.machine.lock);
}

function handOverStep({ claim, machine }: At, held: Held, { id, disk = "" }: ClaimVolume): Step {
  const to = { claim: held.claim, at: basisOf(held.machine), disk };
  const at = basisOf(machine);
  const operation = { kind: "handOver", claim, at, volume: id, to } as const;
  const intent = `Hand the volume ${id} over to the keeper ${held.claim.externalId} as ${disk}.`;
  return { name: "TransferDisk", operation, intent };
}

/**
 * Takes back a disk that a keeper holds for an object of this name. Until it was seen here, the
 * Claim has it as one that has to stay, so that nothing which a cut leaves behind is swept.
 */
export function planVmTakeBack(input: PlanInput, at: At, kept: KeptDisk): Next {
  if (!guard("returned-disk-holder-free", kept.isBusy !== true)) return holderBusy(kept);
  return planVmOtherClosed(input, at, kept) ?? planVmTakeFrom(input, at, kept);
}

/** One disk-holder VM at a time. */
function planVmOtherClosed(input: PlanInput, { claim }: At, kept: KeptDisk): Next | undefined {
  const isOther = claim.diskHolder !== undefined && claim.diskHolder.externalId !== kept.keeper;
  return isOther ? planVmKeeperClosed(input, claim) : undefined;
}

function planVmTakeFrom(input: PlanInput, at: At, kept: KeptDisk): Next {
  const { claim, machine } = at;
  const { keeper } = input;
  if (keeper === undefined) return { do: "keep", from: kept.keeper };
  const ready = planVmKeeperReady(input, keeper, { node: machine.node, disks: [] });
  if ("do" in ready) return ready;
  return (
    planVmKeeperRenamed(claim, ready) ??
    notKept(input, ready, kept) ??
    planVmKeeperNear(input, machine, ready) ??
    expected(claim, ready, kept) ??
    bothUnlocked(input, takeBackStep(at, ready, kept), [machine, ready])
  );
}

/** A new disk in its place would be empty, while the one that was kept waits. */
function holderBusy({ disk, volume, keeper }: KeptDisk): Next {
  const message =
    `The disk ${disk} (${volume}) is in the disk-holder VM ${keeper}, which another ` +
    "VirtualMachine uses at the moment to take a disk out of it.";
  const remedy = `Berth takes the disk back when that is done. \`kubectl get claims\` shows who has VM ${keeper}.`;
  return { do: "fail", failure: { category: "DependencyNotReady", message, remedy } };
}

/**
 * Somebody removed the disk that was kept, and the disk-holder VM has another of its name. Nobody
 * makes a disk larger there; only a spec that declares exactly the other size says it is meant.
 */
function notKept(
  { declared }: PlanInput,
  { claim, machine }: Held,
  { disk, volume }: KeptDisk,
): Next | undefined {
  const entry = claim.volumes?.find(({ id }) => id === volume);
  const seen = machine.volumes.find(({ id }) => id === volume);
  if (entry === undefined || seen === undefined) return undefined;
  const { sizeBytes } = declared.disks.find(({ name }) => name === disk) ?? {};
  const isDeclared = sizeBytes !== undefined && sizeBytes === seen.sizeBytes;
  const isIt = isDeclared || hasRecordedSize(entry, seen);
  if (guard("returned-disk-as-recorded", isIt)) return undefined;
  const { externalId } = claim;
  const message =
    `The volume ${volume} of the disk-holder VM ${externalId} is not the one that was recorded ` +
    `for the disk ${disk}: it has ${seen.sizeBytes} bytes, recorded are ${entry.size}. Somebody ` +
    "uses the name for another volume, and Berth does not take that over.";
  const remedy =
    `Move this volume to another VM, and attach the recorded one to VM ${externalId} again. If it ` +
    "is lost, give the disk another name in spec.disks. If this volume is to be used as the disk, " +
    "declare exactly its size in spec.disks: Berth then uses it, and never destroys it.";
  return { do: "fail", failure: { category: "IdentityConflict", message, remedy } };
}

/** What is about to come stands in the Claim, as one that has to stay. */
function expected(
  { volumes = [] }: ClaimSpec,
  { claim, machine }: Held,
  { volume: id, storage }: KeptDisk,
): Next | undefined {
  if (volumes.some((volume) => volume.id === id)) return undefined;
  const place = storage === undefined ? {} : { storage };
  const entry = claim.volumes?.find((volume) => volume.id === id);
  const seen = machine.volumes.find((volume) => volume.id === id);
  const isRecorded = entry === undefined || seen === undefined || hasRecordedSize(entry, seen);
  // One that is only declared to be the disk is used, and never destroyed.
  const proof = isRecorded ? followed(entry) : ({ proof: "Followed" } as const);
  const fixed = { id, role: "Disk", state: "Detached", onDelete: "Retain" } as const;
  return { do: "record", change: { volumes: [...volumes, { ...fixed, ...place, ...proof }] } };
}

function takeBackStep({ claim, machine }: At, held: Held, { volume, disk }: KeptDisk): Step {
  const to = { claim, at: basisOf(machine), disk };
  const at = basisOf(held.machine);
  const operation = { kind: "handOver", claim: held.claim, at, volume, to } as const;
  const intent = `Take the volume ${volume} back from the keeper ${held.claim.externalId}.`;
  return { name: "ReturnDisk", operation, intent };
}

/** What was taken back and seen here is forgotten under its old name, here and by the keeper. */
export function planVmTakenBack(input: PlanInput, at: At): Next | undefined {
  const { keeper, kept = [] } = input;
  if (keeper?.seen.at !== "ours") return undefined;
  const held = { claim: keeper.claim, machine: keeper.seen.machine };
  for (const disk of kept.filter((one) => one.keeper === keeper.claim.externalId)) {
    if (!at.machine.disks.some(({ name }) => name === disk.disk)) continue;
    const isStillNamed = held.machine.volumes.some(({ id }) => id === disk.volume);
    const isProven = wasJustDone(input, takeBackStep(at, held, disk));
    if (isStillNamed && !isProven) continue;
    if (at.claim.volumes?.some(({ id }) => id === disk.volume) === true) {
      const volumes = withoutData(at.claim, disk.volume, false);
      return { do: "record", change: { volumes } };
    }
    const volumes = withoutData(held.claim, disk.volume, isStillNamed);
    return { do: "recordKeeper", change: { volumes } };
  }
  return undefined;
}

/**
 * A disk that was coming back when the object was deleted, and has come: it is the machine's, and
 * the keeper waits for it no longer. It is told from one that goes to the keeper by the Claim,
 * which has what it awaits without a name of a disk.
 */
export function planVmTakenMeanwhile(
  { keeper }: PlanInput,
  { claim, machine }: At,
): Next | undefined {
  if (keeper?.seen.at !== "ours") return undefined;
  const referred = [...keeper.seen.machine.volumes, ...machine.volumes].map(({ id }) => id);
  const awaited = claim.volumes?.filter(({ id, disk, onDelete }) => {
    return disk === undefined && onDelete === "Retain" && !referred.includes(id);
  });
  for (const { id } of awaited ?? []) {
    const entry = keeper.claim.volumes?.find((one) => one.id === id);
    if (entry === undefined) {
      return { do: "record", change: { volumes: withoutData(claim, id, false) } };
    }
    if (!machine.disks.some(({ name }) => name === entry.disk)) continue;
    return { do: "recordKeeper", change: { volumes: withoutData(keeper.claim, id, false) } };
  }
  return undefined;
}

/** Both machines have to be free of locks. */
function bothUnlocked(
  input: PlanInput,
  step: Step,
  [machine, held]: readonly [Machine, Held],
): Next {
  return stepOrWait(input, step, machine.lock ?? held.machine.lock);
}

/** By volume, the name that each has with the keeper: its own, or one for what is a person's. */
function namesFor(
  stays: readonly SeenVolume[],
  { volumes = [] }: ClaimSpec,
  entries: readonly ClaimVolume[],
): Map<string, string> {
  const names = new Map(entries.map(({ id, disk = "" }) => [id, disk]));
  const taken = new Set(names.values());
  for (const seen of stays) {
    const { id } = seen;
    if (names.has(id)) continue;
    const known = volumes.find((volume) => volume.id === id);
    const own = known && isOwnDisk(known, seen) ? known.disk : undefined;
    const name = own === undefined || taken.has(own) ? freeName(taken) : own;
    names.set(id, name);
    taken.add(name);
  }
  return names;
}

function freeName(taken: ReadonlySet<string>): string {
  let number = 1;
  while (taken.has(`kept-${number}`)) number += 1;
  return `kept-${number}`;
}

/** Each on the bus that it is on: the options that it has may not fit another. */
function shapesOf(
  stays: readonly Pick<SeenVolume, "id">[],
  names: ReadonlyMap<string, string>,
  { disks }: Machine,
): DiskShape[] {
  return stays.map(({ id }) => {
    const bus = disks.find(({ volume }) => volume === id)?.bus;
    const name = names.get(id) ?? "";
    return bus === undefined ? { name } : { name, bus };
  });
}

function entryOf({ id, storage, sizeBytes }: SeenVolume, disk: string): ClaimVolume {
  const size = sizeBytes === undefined ? {} : { size: String(sizeBytes) };
  return { id, role: "Disk", disk, storage, state: "Detached", onDelete: "Retain", ...size };
}
