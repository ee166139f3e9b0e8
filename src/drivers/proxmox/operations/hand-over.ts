import { answered, recordedSizes } from "../../../hypervisor/index.ts";
import type { Answer, Begun, Failure, Fence, HandOver } from "../../../hypervisor/index.ts";
import { listText } from "../../../kernel/list-text.ts";
import { guard, precondition } from "../../../kernel/guard.ts";
import { machinePath } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { isAutomatic } from "../probable.ts";
import { drivesOf, volumesOf } from "../references.ts";
import { type ListedVolume, listVolumes } from "../storages.ts";
import type { ListedTask } from "../tasks.ts";
import { findTransfer, type Transfer } from "../transfers.ts";
import { parseVolume } from "../translate/volumes.ts";
import { begunOf, refused } from "./begun.ts";
import { send } from "./change.ts";
import { notStamped } from "./config-change.ts";
import { standAt, type Standing } from "./standing.ts";
import { writeAgain } from "./write-again.ts";

/** A volume on its way, between two machines that were both proven ours. */
interface Way {
  readonly operation: HandOver;
  readonly giver: Standing;
  readonly receiver: Standing;
  readonly slot: string;
}

/**
 * Hands a volume over to another machine of ours on the same node. The server renames it after its
 * new owner, takes it off the one and puts it into the other; both digests go along, so neither
 * machine can have changed. A worker that died in between is finished here: what bears the new
 * owner's name and nobody refers to is put where it belongs, if our own task gave it that name.
 */
export async function handOver(
  context: DriverContext,
  operation: HandOver,
  fence: Fence,
): Promise<Begun> {
  const { volume, to } = operation;
  const giver = await standAt(context, operation);
  if (!giver.ok) return giver.begun;
  const receiver = await standAt(context, to);
  if (!receiver.ok) return receiver.begun;
  const { place, config, mark } = receiver.standing;
  const isSameNode = place.node === giver.standing.place.node;
  if (!guard("transfer-same-node", isSameNode)) return refused(elsewhere(operation, place.node));
  const slot = mark.disks[to.disk];
  if (slot === undefined) return refused(notStamped(to.disk));
  const way = { operation, giver: giver.standing, receiver: receiver.standing, slot };
  const isThere = await isListed(context, place.node, volume);
  if (!isThere.ok) return refused(isThere.failure);
  if (!isThere.value) return await finish(context, way, fence);
  const isFree = config.values[slot] === undefined;
  if (!guard("transfer-slot-free", isFree)) return refused(occupied(operation));
  return await begin(context, way, fence);
}

async function begin(context: DriverContext, way: Way, fence: Fence): Promise<Begun> {
  const { operation, giver, receiver, slot } = way;
  const { volume, to } = operation;
  const held = drivesOf(giver.config).find(([, text]) => volumesOf(text).includes(volume));
  if (held === undefined) return refused(notHeld(operation));
  const [disk, text] = held;
  if (!guard("transfer-drive-applied", !giver.config.pending.keys.includes(disk))) {
    return await writeAgain(context, { slot: disk, text, standing: giver }, fence);
  }
  const params = {
    disk,
    "target-vmid": to.claim.externalId,
    "target-disk": slot,
    ...precondition("transfer-digest", { digest: giver.config.digest }),
    ...precondition("transfer-target-digest", { "target-digest": receiver.config.digest }),
  };
  const path = machinePath(giver.place, "/move_disk");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  const begun = begunOf(result, `hand ${volume} over to VM ${to.claim.externalId}`);
  return begun.outcome === "refused" ? refused(immovable(operation, begun.failure)) : begun;
}

/** Whether the storage has it under this name. A storage that cannot be read is a failure. */
async function isListed(
  context: DriverContext,
  node: string,
  volume: string,
): Promise<Answer<boolean>> {
  const vmid = parseVolume(volume)?.owner ?? "";
  const listed = await volumesUnder(context, volume, { node, vmid });
  return listed.ok ? answered(listed.value.some((row) => row.volume === volume)) : listed;
}

async function volumesUnder(
  { api }: DriverContext,
  beside: string,
  { node, vmid }: { readonly node: string; readonly vmid: string },
): Promise<Answer<readonly ListedVolume[]>> {
  const { storage = "" } = parseVolume(beside) ?? {};
  const listed = await listVolumes(api, { node, storage }, { content: "images", vmid });
  if (!listed.ok) return listed;
  return answered(listed.value.filter(({ externalId }) => externalId === vmid));
}

/** The volume is no longer under its old name: it has come, or it was left on the way. */
async function finish(context: DriverContext, way: Way, fence: Fence): Promise<Begun> {
  const { operation, receiver, slot } = way;
  const { volume, to } = operation;
  const { config, place } = receiver;
  const receives = { node: place.node, vmid: place.externalId };
  const listed = await volumesUnder(context, volume, receives);
  if (!listed.ok) return refused(listed.failure);
  const fitting = listed.value.filter((row) => isMoved(operation, row)).map((row) => row.volume);
  const filled = config.values[slot];
  if (filled !== undefined) {
    const come = volumesOf(filled).filter((id) => fitting.includes(id));
    if (!guard("transfer-arrived-fitting", come.length > 0)) return refused(occupied(operation));
    return (await unlessOurs(context, way, come)) ?? { outcome: "done" };
  }
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  const used = new Set(drives.flatMap(([, text]) => volumesOf(text)));
  const before = new Set(to.claim.otherVolumes?.map(({ id }) => id));
  const left = fitting.filter((id) => {
    const isNew = guard("transfer-left-new", !before.has(id));
    return isNew && guard("transfer-left-unused", !used.has(id));
  });
  const notOurs = await unlessOurs(context, way, left);
  if (notOurs !== undefined) return notOurs;
  const [found] = left;
  if (found === undefined || !guard("transfer-left-unique", left.length === 1)) {
    return refused(astray(operation, left));
  }
  const change = { set: { [slot]: found }, remove: [] };
  return await send(context, { standing: receiver, change }, fence);
}

/** Undefined: our own task moved the volume, and it can be one of these. */
async function unlessOurs(
  context: DriverContext,
  way: Way,
  candidates: readonly string[],
): Promise<Begun | undefined> {
  const { operation, giver, receiver, slot } = way;
  const transfer = await findTransfer(context, {
    node: receiver.place.node,
    giver: giver.place.externalId,
    receiver: receiver.place.externalId,
    slot,
    sinceMs: bothReservedMs(operation),
  });
  if (!transfer.ok) return refused(transfer.failure);
  const { value } = transfer;
  if (value.is === "running") return { outcome: "blocked", waitsFor: `the task ${value.task}` };
  const strange = refused(unmoved(operation, candidates, value));
  if (value.is === "unproven") return strange;
  const isEmpty = receiver.config.values[slot] === undefined;
  // The task put the volume into the slot: who took it out may have put another in its place.
  if (!guard("transfer-left-cut-short", !isEmpty || !value.endedWell)) return strange;
  const isNamed = value.volume === undefined || candidates.includes(value.volume);
  return guard("transfer-volume-logged", isNamed) ? undefined : strange;
}

/** Since when both ids are those of the two Claims. */
function bothReservedMs({ claim, to }: HandOver): number {
  const times = [claim, to.claim].map(({ reservedAt }) => Date.parse(reservedAt ?? "") || 0);
  return Math.max(...times);
}

/**
 * Whether a volume of the receiver may be the one that was sent. The server gives it a name of its
 * own choice, and its size stays: any other name or size is of a volume that somebody else made.
 */
function isMoved({ volume, claim, to }: HandOver, row: ListedVolume): boolean {
  const known = [...(claim.volumes ?? []), ...(to.claim.volumes ?? [])].filter((one) => {
    return one.id === volume && one.size !== undefined;
  });
  const isSized = known.some((one) => recordedSizes(one).includes(row.sizeBytes));
  const isFit = isSized || known.length === 0 || row.isApproximate === true;
  const isNamed = isAutomatic(row.volume, to.claim.externalId);
  return guard("transfer-moved-size", isFit) && guard("transfer-moved-name", isNamed);
}

function elsewhere({ to }: HandOver, node: string): Failure {
  const { externalId } = to.claim;
  return {
    category: "ConfigurationError",
    message: `a volume can be handed over on one node only, and ${externalId} is on ${node}`,
  };
}

function occupied({ volume, to }: HandOver): Failure {
  const { externalId } = to.claim;
  return {
    category: "OrphanedVolumes",
    message: `${volume} cannot be handed over: VM ${externalId} has another disk ${to.disk}`,
    remedy: `Detach the disk ${to.disk} of VM ${externalId}, which nobody but Berth should use.`,
  };
}

function notHeld({ volume, claim }: HandOver): Failure {
  return {
    category: "OrphanedVolumes",
    message: `${volume} has to stay, and VM ${claim.externalId} does not refer to it any more`,
    remedy:
      `Attach it again (qm rescan --vmid ${claim.externalId}), ` +
      "or move it to another machine by hand.",
  };
}

/**
 * What has to stay and cannot be moved stops there. What the server says without a reason that we
 * know may pass, and has its attempts.
 */
function immovable({ volume, claim, to }: HandOver, failure: Failure): Failure {
  if (failure.category !== "CreationFailed" && failure.category !== "ConfigurationError") {
    return failure;
  }
  const target = to.claim.externalId;
  const isOdd = failure.category === "CreationFailed";
  return {
    ...failure,
    category: isOdd ? "CreationFailed" : "OrphanedVolumes",
    message: `${volume} has to stay and cannot be moved to VM ${target}: ${failure.message}`,
    remedy:
      `Remove what holds it (a snapshot: qm listsnapshot ${claim.externalId}), copy its data away, ` +
      "or set onDelete: Delete for the disk, or spec.deletionPolicy: Retain for the machine.",
  };
}

/** It is gone from its VM, and not by us: a volume that looks like it may be anybody's. */
function unmoved(
  { volume, claim, to }: HandOver,
  like: readonly string[],
  transfer: Transfer,
): Failure {
  const [from, target] = [claim.externalId, to.claim.externalId];
  const where =
    like.length === 0
      ? "it is nowhere to be found."
      : `${listText(like)} has its size but may be anybody's, and Berth does not use it.`;
  const moves = transfer.is === "unproven" ? transfer.moves.slice(0, 3).map(moveText) : [];
  const unknown = `no task of Berth is known that moved it to VM ${target}`;
  return {
    category: "OrphanedVolumes",
    message: [`${volume} left VM ${from}, and ${unknown}: ${where}`, ...moves].join(" "),
    remedy:
      `Find the volume, give it the name ${volume} again and attach it to VM ${from}: Berth then ` +
      "moves it. If it is lost or is to stay where it is, release the VirtualMachine: berth forget.",
  };
}

function moveText({ user, id }: ListedTask): string {
  const [, from, disk, to, slot] = /^(\d+)-(\w+)>(\d+)-(\w+)$/.exec(id) ?? [];
  return from === undefined
    ? `${user} moved a disk of VM ${id}.`
    : `${user} moved the disk ${disk} of VM ${from} to VM ${to} as ${slot}.`;
}

function astray({ volume, to }: HandOver, left: readonly string[]): Failure {
  const where =
    left.length === 0 ? "it is nowhere to be found" : `any of these may be it: ${listText(left)}`;
  return {
    category: "OrphanedVolumes",
    message: `${volume} left its machine and did not come to VM ${to.claim.externalId}: ${where}`,
    remedy: `Put it into VM ${to.claim.externalId} by hand (qm set), as the disk ${to.disk}.`,
  };
}
