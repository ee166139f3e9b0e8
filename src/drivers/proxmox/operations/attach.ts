import type {
  Attach,
  Begun,
  ClaimedMachine,
  DestroyDisk,
  Detach,
  Failure,
  Fence,
  Mark,
  PartName,
} from "../../../hypervisor/index.ts";
import { isProvenVolume } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { WholeConfig } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { type ListedVolume, listVolumes } from "../storages.ts";
import { writeDiskOptions } from "../translate/disks.ts";
import { writeBootOrder } from "../translate/shape.ts";
import { isDrive } from "../translate/slots.ts";
import type { Values } from "../translate/values.ts";
import { parseVolume } from "../translate/volumes.ts";
import { userOf } from "../users.ts";
import { notRecorded, notThat } from "../recorded-volumes.ts";
import { formatProperties, parseProperties, property } from "../wire/property-string.ts";
import { notStamped } from "./config-change.ts";
import { refused } from "./begun.ts";
import { send } from "./change.ts";
import { inUse, mustStay, notOurs, removeVolume, stays } from "./destroy.ts";
import { memoryHeld } from "./saved-memory.ts";
import { standAt, type Standing } from "./standing.ts";

type ClaimVolume = NonNullable<ClaimedMachine["volumes"]>[number];

/**
 * Puts a volume that is there into the slot that the mark keeps for its name. One that leaves this
 * very slot with the next start stays: that its key is to be removed is taken back.
 */
export async function attach(
  context: DriverContext,
  operation: Attach,
  fence: Fence,
): Promise<Begun> {
  const { disk, volume, bootOrder } = operation;
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const { config, mark } = standing;
  const slot = mark.disks[disk.name];
  if (slot === undefined) return refused(notStamped(disk.name));
  const ended = attachedBefore(config, volume, slot);
  if (ended !== undefined) return ended;
  const isLeaving = isLeavingSlot(config, volume, slot);
  const isKept = isLeaving || holding(config.values, volume) !== undefined;
  const refusal = await mayAttach(context, operation, isKept);
  if (refusal !== undefined) return refused(refusal);
  const value = formatProperties(writeDiskOptions(disk, [["file", volume]]), "file");
  const order = writeBootOrder(bootOrder, mark, { ...config.values, [slot]: value });
  const writing = isLeaving
    ? { change: { set: order.set, remove: [] }, revert: [slot] }
    : { change: { set: { [slot]: value, ...order.set }, remove: [] } };
  return await send(context, { standing, ...writing }, fence);
}

/** What ends it before anything is sent: it is there already, or something is in the way. */
function attachedBefore(config: WholeConfig, volume: string, slot: string): Begun | undefined {
  const current = config.values[slot];
  if (current !== undefined && fileOf(current) === volume) return { outcome: "done" };
  if (!guard("attach-slot-free", current === undefined)) {
    return { outcome: "changed", detail: `another volume is already there, as ${slot}` };
  }
  const twice = usedElsewhere(config, volume, slot);
  const isOnce = guard("attach-not-twice", twice === undefined);
  return isOnce ? undefined : refused(attached(config, volume, twice ?? ""));
}

function isLeavingSlot({ pending }: WholeConfig, volume: string, slot: string): boolean {
  const text = pending.current[slot];
  return text !== undefined && fileOf(text) === volume;
}

/** Another slot of this very VM that has the volume, now or with its next start, or until then. */
function usedElsewhere(
  { values, pending }: WholeConfig,
  volume: string,
  own: string,
): string | undefined {
  const drives = [
    ...Object.entries(values),
    ...Object.entries(pending.current),
    ...pending.leavingDrives,
  ];
  const used = drives.find(([slot, text]) => {
    const isOther = slot !== own && !slot.startsWith("unused");
    return isOther && isDrive(slot) && fileOf(text) === volume;
  });
  return used?.[0];
}

function attached({ values }: WholeConfig, volume: string, slot: string): Failure {
  const isLeaving = values[slot] === undefined;
  return {
    category: "IdentityConflict",
    message: `the volume ${volume} is attached to this VM already, as ${slot}`,
    remedy: isLeaving
      ? "It is detached with the next restart of the VM; Berth continues by itself after that."
      : `Detach ${slot} on the hypervisor (its data stays); Berth continues by itself.`,
  };
}

/**
 * Ours by the Claim, or taken on a person's word; there; still what was recorded; and in use by
 * nobody else. What the machine itself keeps as unused is not in use.
 */
async function mayAttach(
  context: DriverContext,
  { claim, at, volume, take }: Attach,
  isKept: boolean,
): Promise<Failure | undefined> {
  const known = claim.volumes?.find(({ id }) => id === volume);
  const mayTake = known !== undefined || take === true;
  if (!guard("attach-own-volume", mayTake)) return notOurs(volume, "Unattributed");
  const listed = await rowOf(context, volume, { node: at.node, known });
  if ("category" in listed) return listed;
  const changed = known && (await notThat(context, { known, node: at.node, row: listed }));
  if (changed !== undefined) return changed;
  return known !== undefined && isKept ? undefined : usedByOther(context, claim, volume);
}

/** A disk that Berth made or detached, and that somebody removed from its storage since. */
function gone({ id, disk = "" }: ClaimVolume, node: string): Failure {
  return {
    category: "Missing",
    message: `The disk ${disk} was the machine's, and its volume ${id} no longer exists on ${node}`,
    remedy:
      `Restore it under this name, or remove the entry ${disk} from spec.disks. Under another name ` +
      "Berth creates a new, empty disk.",
  };
}

async function usedByOther(
  context: DriverContext,
  { externalId }: ClaimedMachine,
  volume: string,
): Promise<Failure | undefined> {
  const user = await userOf(context, volume);
  if (!user.ok) return user.failure;
  const { value: other = externalId } = user;
  return guard("attach-unused-volume", other === externalId) ? undefined : inUse(volume, other);
}

/** How a storage lists a volume; or why nobody can tell. */
async function rowOf(
  { api }: DriverContext,
  volume: string,
  { node, known }: { readonly node: string; readonly known: ClaimVolume | undefined },
): Promise<ListedVolume | Failure> {
  const { owner, storage = "" } = parseVolume(volume) ?? {};
  if (owner === undefined) {
    return { category: "ConfigurationError", message: `${volume} is no disk of a machine` };
  }
  const listed = await listVolumes(api, { node, storage }, { content: "images", vmid: owner });
  if (!listed.ok) return listed.failure;
  const row = listed.value.find((one) => one.volume === volume);
  if (row !== undefined) return row;
  if (known !== undefined) return gone(known, node);
  return { category: "ImageNotFound", message: `${volume} is not on ${node}` };
}

/** Deleting a drive's key only detaches it: a volume of the machine's own becomes `unusedN`. */
export async function detach(
  context: DriverContext,
  operation: Detach,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const slot = slotOf(standing.mark, operation.part);
  if (slot === undefined) return { outcome: "done" };
  return await send(context, { standing, change: { set: {}, remove: [slot] } }, fence);
}

const kinds = {
  disk: "disks",
  cdrom: "cdroms",
  network: "networks",
  pci: "pci",
  usb: "usb",
} as const;

function slotOf(mark: Mark, { of, name }: PartName): string | undefined {
  return mark[kinds[of]]?.[name];
}

/**
 * Frees one volume. What is attached is detached first, which is an effect of its own; deleting an
 * `unusedN` then frees the volume. The server refuses where a snapshot still needs it. Deleting
 * `vmstate` frees the saved memory, and takes the word `suspended` from the machine.
 */
export async function destroyDisk(
  context: DriverContext,
  operation: DestroyDisk,
  fence: Fence,
): Promise<Begun> {
  const { claim, at, volume } = operation;
  const known = claim.volumes?.find(({ id }) => id === volume);
  if (known === undefined) return refused(notOurs(volume, "Unattributed"));
  if (!guard("destroy-disk-not-retained", !mustStay(claim, volume))) return refused(stays(volume));
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const { values, pending } = standing.config;
  const isLeaving = pending.leavingDrives.some(([, text]) => fileOf(text) === volume);
  if (!guard("destroy-disk-detached", !isLeaving)) {
    return { outcome: "blocked", waitsFor: "the restart with which the disk is detached" };
  }
  const slot = holding(values, volume);
  if (!guard("destroy-disk-proven", isVmsOwn(known, slot))) {
    return refused(notOurs(volume, "Unattributed"));
  }
  if (slot === undefined) {
    return await removeVolume(
      context,
      { kind: "removeVolume", claim, node: at.node, volume },
      fence,
    );
  }
  // What is only detached for now is not lost; of what is freed the storage is asked.
  const isFreed = slot.startsWith("unused");
  const changed = isFreed
    ? await notRecorded(context, { claim, node: at.node, volume })
    : undefined;
  if (changed !== undefined) return refused(changed);
  return await takeOff(context, { standing, slot }, fence);
}

/** Saved memory is the VM's own by the key that names it, whoever suspended the VM. */
function isVmsOwn(
  known: NonNullable<ClaimedMachine["volumes"]>[number],
  slot: string | undefined,
): boolean {
  return isProvenVolume(known) || (slot === "vmstate" && known.role === "State");
}

async function takeOff(
  context: DriverContext,
  { standing, slot }: { readonly standing: Standing; readonly slot: string },
  fence: Fence,
): Promise<Begun> {
  const change = { set: {}, remove: [slot] };
  const isMemory = slot === "vmstate";
  const held = isMemory ? await memoryHeld(context, standing.place) : undefined;
  if (held !== undefined) return held;
  if (isMemory || slot.startsWith("unused")) {
    return await send(context, { standing, change, makesVolume: true }, fence);
  }
  const begun = await send(context, { standing, change }, fence);
  return begun.outcome === "done" ? { outcome: "progressed" } : begun;
}

function holding(values: Values, volume: string): string | undefined {
  const found = Object.entries(values).find(([key, text]) => {
    return isDrive(key) && fileOf(text) === volume;
  });
  return found?.[0];
}

function fileOf(text: string): string | undefined {
  return property(parseProperties(text, "file"), "file");
}
