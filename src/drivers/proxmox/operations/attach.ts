import type {
  Attach,
  Begun,
  DestroyDisk,
  Detach,
  Failure,
  Fence,
  Mark,
  PartName,
} from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { listVolumes } from "../storages.ts";
import { writeDiskOptions } from "../translate/disks.ts";
import { writeBootOrder } from "../translate/shape.ts";
import { isDrive } from "../translate/slots.ts";
import type { Values } from "../translate/values.ts";
import { parseVolume } from "../translate/volumes.ts";
import { userOf } from "../users.ts";
import { formatProperties, parseProperties, property } from "../wire/property-string.ts";
import { notStamped } from "./config-change.ts";
import { refused } from "./begun.ts";
import { send } from "./change.ts";
import { inUse, mustStay, notOurs, removeVolume, stays } from "./destroy.ts";
import { memoryHeld } from "./saved-memory.ts";
import { standAt, type Standing } from "./standing.ts";

/** Puts a volume that is there into the slot that the mark keeps for its name. */
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
  const current = config.values[slot];
  if (current !== undefined) {
    if (fileOf(current) === volume) return { outcome: "done" };
    return { outcome: "changed", detail: `another volume is already there, as ${slot}` };
  }
  const isKept = holding(config.values, volume)?.startsWith("unused") === true;
  const refusal = await mayAttach(context, operation, isKept);
  if (refusal !== undefined) return refused(refusal);
  const value = formatProperties(writeDiskOptions(disk, [["file", volume]]), "file");
  const order = writeBootOrder(bootOrder, mark, { ...config.values, [slot]: value });
  const change = { set: { [slot]: value, ...order.set }, remove: [] };
  return await send(context, { standing, change }, fence);
}

/**
 * Ours by the Claim, or taken on a person's word; there; and in use by nobody else. What the
 * machine itself keeps as unused is all of that.
 */
async function mayAttach(
  context: DriverContext,
  { claim, at, volume, take }: Attach,
  isKept: boolean,
): Promise<Failure | undefined> {
  const isClaimed = claim.volumes?.some(({ id }) => id === volume) === true;
  if (isClaimed && isKept) return undefined;
  if (!isClaimed && take !== true) return notOurs(volume, "Unattributed");
  const absence = await missing(context, volume, at.node);
  if (absence !== undefined) return absence;
  const user = await userOf(context, volume);
  if (!user.ok) return user.failure;
  if (user.value === undefined || user.value === claim.externalId) return undefined;
  return inUse(volume, user.value);
}

async function missing(
  { api }: DriverContext,
  volume: string,
  node: string,
): Promise<Failure | undefined> {
  const { owner, storage = "" } = parseVolume(volume) ?? {};
  if (owner === undefined) {
    return { category: "ConfigurationError", message: `${volume} is no disk of a machine` };
  }
  const listed = await listVolumes(api, { node, storage }, { content: "images", vmid: owner });
  if (!listed.ok) return listed.failure;
  if (listed.value.some((row) => row.volume === volume)) return undefined;
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
  if (claim.volumes?.some(({ id }) => id === volume) !== true) {
    return refused(notOurs(volume, "Unattributed"));
  }
  if (mustStay(claim, volume)) return refused(stays(volume));
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const { values, pending } = standing.config;
  if (pending.leavingDrives.some(([, text]) => fileOf(text) === volume)) {
    return { outcome: "blocked", waitsFor: "the restart with which the disk is detached" };
  }
  const slot = holding(values, volume);
  if (slot === undefined) {
    return await removeVolume(
      context,
      { kind: "removeVolume", claim, node: at.node, volume },
      fence,
    );
  }
  return await takeOff(context, { standing, slot }, fence);
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
