import { isAsSeen, isSameFile, knownFileOf } from "../../hypervisor/index.ts";
import type {
  AddDisk,
  Attach,
  Begun,
  DestroyDisk,
  Detach,
  DiscardVolume,
  DiskShape,
  Failure,
  Fill,
  Grow,
  HandOver,
  MoveDisk,
  NewDisk,
  RemoveVolume,
} from "../../hypervisor/index.ts";
import { notStamped, slotsOf, writeShape } from "./model-shape.ts";
import {
  allocate,
  changed,
  done,
  freeBytes,
  gib,
  type ModelDisk,
  type ModelMachine,
  type ModelState,
  type ModelTools,
  type ModelVolume,
  type ModelWork,
  refused,
  replaced,
  userOf,
} from "./model-state.ts";
import { leftoversOf } from "./model-views.ts";
import { ours, type Owned, standing } from "./model-standing.ts";

/** What a model does with disks and volumes. */

/** Keeps everybody else off the VM while a worker has it. The lock goes with the worker. */
export function whileLocked(
  tools: ModelTools,
  machine: ModelMachine,
  work: Omit<ModelWork, "id">,
): Begun {
  machine.lock = { kind: "Other", detail: "config", state: "Held" };
  return tools.task({
    ...work,
    id: machine.id,
    effect: () => {
      delete machine.lock;
      work.effect();
    },
    onFailed: () => {
      delete machine.lock;
      work.onFailed?.();
    },
    onKilled: () => void delete machine.lock,
  });
}

export function addDisk(tools: ModelTools, operation: AddDisk): Begun {
  const { disk, bootOrder, also = {} } = operation;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  const slot = mark.disks[disk.name];
  if (slot === undefined) return { outcome: "refused", failure: notStamped(disk.name) };
  if (inSlot(machine, slot)) return changed(`${disk.name} is already there`);
  const source = sourceOf(tools.state, disk.fill, machine.node);
  if ("category" in source) return { outcome: "refused", failure: source };
  const { storage } = disk;
  // A blank disk is as large as it was asked for, a copy as large as its source.
  const sizeBytes = source.sizeBytes ?? disk.sizeBytes ?? gib;
  const refusal = noRoom(tools.state, storage, sizeBytes);
  if (refusal !== undefined) return refusal;
  const volume = allocate(tools.state, machine, { storage, sizeBytes });
  const options = optionsOf(disk);
  return whileLocked(tools, machine, {
    does: "Configure",
    effect: () => {
      machine.disks.push({ slot, volume: volume.id, options });
      writeShape(machine, also, mark);
      if (bootOrder !== undefined) machine.boot = slotsOf(bootOrder, mark);
      machine.version += 1;
    },
    onFailed: () => void tools.state.volumes.delete(volume.id),
  });
}

/** How a disk is attached, without what it is made from and where. */
function optionsOf(disk: DiskShape | NewDisk): ModelDisk["options"] {
  const made = new Set(["name", "bus", "storage", "sizeBytes", "format", "fill"]);
  return Object.fromEntries(Object.entries(disk).filter(([key]) => !made.has(key)));
}

function inSlot({ disks }: ModelMachine, slot: string): ModelDisk | undefined {
  return disks.find((disk) => disk.slot === slot);
}

function noRoom(state: ModelState, storage: string, sizeBytes: number): Begun | undefined {
  const left = freeBytes(state, storage);
  if (left === undefined) return refused("ConfigurationError", `There is no storage ${storage}.`);
  return left < sizeBytes ? refused("QuotaExceeded", `${storage} has no room.`) : undefined;
}

/** How large what fills a new disk is, as a node sees it; or why it cannot be had. */
export function sourceOf(
  state: ModelState,
  fill: Fill,
  node: string,
): { readonly sizeBytes?: number } | Failure {
  switch (fill.from) {
    case "blank":
      return {};
    case "volume": {
      const file = state.images.get(fill.volume);
      const there = file?.nodes.has(node) === true ? file : state.volumes.get(fill.volume);
      const isOther =
        file !== undefined &&
        fill.knownFile !== undefined &&
        !isSameFile(fill.knownFile, knownFileOf(file));
      return isOther ? missing(fill.volume) : (there ?? missing(fill.volume));
    }
    case "machine":
      return sourceDisk(state, fill) ?? missing(`VM ${fill.externalId}`);
  }
}

/** By its name or slot; else the one that the VM boots from. */
function sourceDisk(
  { machines, volumes }: ModelState,
  { externalId, disk: wanted }: Fill & { readonly from: "machine" },
): ModelVolume | undefined {
  const source = machines.get(externalId);
  if (source === undefined) return undefined;
  const named = wanted === undefined ? source.boot[0] : (source.mark?.disks[wanted] ?? wanted);
  const found = inSlot(source, named ?? "") ?? (wanted === undefined ? source.disks[0] : undefined);
  return volumes.get(found?.volume ?? "");
}

function missing(what: string): Failure {
  return { category: "ImageNotFound", message: `There is no ${what}.` };
}

export function attach({ state }: ModelTools, operation: Attach): Begun {
  const { disk, volume, bootOrder } = operation;
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  const slot = mark.disks[disk.name];
  if (slot === undefined) return { outcome: "refused", failure: notStamped(disk.name) };
  const there = inSlot(machine, slot);
  if (there !== undefined) return there.volume === volume ? done : changed("another volume");
  const refusal = mayNotAttach(state, operation, machine);
  if (refusal !== undefined) return refusal;
  const options = optionsOf(disk);
  machine.others = machine.others.filter((other) => other.volume !== volume);
  machine.disks.push({ slot, volume, options });
  if (bootOrder !== undefined) machine.boot = slotsOf(bootOrder, mark);
  machine.version += 1;
  return done;
}

/** Ours by the Claim, or taken on a person's word; there; and in use by nobody else. */
function mayNotAttach(
  state: ModelState,
  { claim, volume, take = false }: Attach,
  machine: ModelMachine,
): Begun | undefined {
  if (!take && !isClaimed(claim, volume)) return notOurs(volume);
  if (!state.volumes.has(volume)) return { outcome: "refused", failure: missing(volume) };
  const user = userOf(state, volume);
  const isDetached = machine.others.some((other) => other.volume === volume);
  return user === undefined || isDetached ? undefined : inUse(volume, user);
}

function isClaimed({ volumes = [] }: Attach["claim"], volume: string): boolean {
  return volumes.some(({ id }) => id === volume);
}

export function mustStay({ volumes = [] }: Attach["claim"], volume: string): boolean {
  return volumes.some(({ id, onDelete }) => id === volume && onDelete === "Retain");
}

export function stays(volume: string): Begun {
  return refused("OrphanedVolumes", `${volume} has to stay: its disk says onDelete: Retain.`);
}

function notOurs(volume: string): Begun {
  return refused("OrphanedVolumes", `${volume} is not provably ours.`);
}

function inUse(volume: string, { id }: ModelMachine): Begun {
  return refused("IdentityConflict", `VM ${id} uses ${volume}.`);
}

const partLists = {
  disk: "disks",
  cdrom: "cdroms",
  network: "networks",
  pci: "pci",
  usb: "usb",
} as const;

export function detach({ state }: ModelTools, operation: Detach): Begun {
  const { of, name } = operation.part;
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  const slot = mark[partLists[of]]?.[name];
  const before = partCount(machine);
  const isOther = (part: { readonly slot: string }): boolean => part.slot !== slot;
  if (of === "network") machine.cards = machine.cards.filter(isOther);
  else if (of === "cdrom") machine.drives = machine.drives.filter(isOther);
  else if (of === "disk") takeOff(machine, slot);
  else machine[of] = machine[of].filter(isOther);
  if (partCount(machine) < before) machine.version += 1;
  return done;
}

function partCount({ disks, cards, drives, pci, usb }: ModelMachine): number {
  return disks.length + cards.length + drives.length + pci.length + usb.length;
}

/** The volume stays with the VM, detached. */
function takeOff(machine: ModelMachine, slot: string | undefined): void {
  const off = machine.disks.filter((disk) => disk.slot === slot);
  machine.disks = machine.disks.filter((disk) => disk.slot !== slot);
  machine.boot = machine.boot.filter((one) => one !== slot);
  machine.others.push(...off.map(({ volume }) => ({ volume, role: "Disk" as const })));
}

export function destroyDisk(tools: ModelTools, operation: DestroyDisk): Begun {
  const { claim, at, volume } = operation;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  if (!isClaimed(claim, volume)) return notOurs(volume);
  if (mustStay(claim, volume)) return stays(volume);
  const { machine } = found;
  const isHeld = [...machine.disks, ...machine.others].some((held) => held.volume === volume);
  if (!isHeld) {
    return removeVolume(tools, { kind: "removeVolume", claim, node: at.node, volume });
  }
  return whileLocked(tools, machine, {
    does: "Configure",
    effect: () => {
      takeOff(machine, machine.disks.find((disk) => disk.volume === volume)?.slot);
      machine.others = machine.others.filter((other) => other.volume !== volume);
      tools.state.volumes.delete(volume);
      machine.version += 1;
    },
  });
}

function diskNamed(
  { state }: ModelTools,
  { machine, mark }: Owned,
  name: string,
): { readonly disk: ModelDisk; readonly volume: ModelVolume } | undefined {
  const disk = inSlot(machine, mark.disks[name] ?? "");
  const volume = state.volumes.get(disk?.volume ?? "");
  return disk === undefined || volume === undefined ? undefined : { disk, volume };
}

export function moveDisk(tools: ModelTools, operation: MoveDisk): Begun {
  const { storage } = operation;
  const { state } = tools;
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  const moved = diskNamed(tools, found, operation.disk);
  if (moved === undefined) return changed(`it has no disk ${operation.disk}`);
  const { disk, volume: old } = moved;
  if (old.storage === storage) return done;
  const { sizeBytes } = old;
  const refusal = noRoom(state, storage, sizeBytes);
  if (refusal !== undefined) return refusal;
  const copy = allocate(state, machine, { storage, sizeBytes });
  return whileLocked(tools, machine, {
    does: "MoveDisk",
    effect: () => {
      const { slot, options } = disk;
      machine.disks = machine.disks.filter((other) => other !== disk);
      machine.disks.push({ slot, volume: copy.id, options });
      state.volumes.delete(old.id);
      machine.version += 1;
    },
    onFailed: () => void state.volumes.delete(copy.id),
  });
}

/** The volume gets a name of its new owner's, in the moment in which it changes hands. */
export function handOver(tools: ModelTools, operation: HandOver): Begun {
  const { volume: id, to } = operation;
  const { state } = tools;
  const giver = standing(state, operation);
  if ("outcome" in giver) return giver;
  const receiver = standing(state, to);
  if ("outcome" in receiver) return receiver;
  const slot = receiver.mark.disks[to.disk];
  if (slot === undefined) return { outcome: "refused", failure: notStamped(to.disk) };
  if (receiver.machine.node !== giver.machine.node) {
    return refused("ConfigurationError", "A volume is handed over on one node only.");
  }
  const volume = state.volumes.get(id);
  if (volume === undefined) return inSlot(receiver.machine, slot) ? done : refusedAstray(id);
  if (inSlot(receiver.machine, slot)) return refusedAstray(id);
  const held = [...giver.machine.disks, ...giver.machine.others];
  if (!held.some((one) => one.volume === id)) return refusedAstray(id);
  return whileLocked(tools, giver.machine, {
    does: "MoveDisk",
    effect: () => {
      takeOff(giver.machine, giver.machine.disks.find((disk) => disk.volume === id)?.slot);
      giver.machine.others = giver.machine.others.filter((other) => other.volume !== id);
      const handed = allocate(state, receiver.machine, volume);
      state.volumes.delete(id);
      receiver.machine.disks.push({ slot, volume: handed.id, options: {} });
      giver.machine.version += 1;
      receiver.machine.version += 1;
    },
  });
}

function refusedAstray(volume: string): Begun {
  return refused("OrphanedVolumes", `${volume} cannot be handed over.`);
}

export function grow(tools: ModelTools, operation: Grow): Begun {
  const { sizeBytes } = operation;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  const grown = diskNamed(tools, found, operation.disk);
  if (grown === undefined) return changed(`it has no disk ${operation.disk}`);
  const { volume } = grown;
  if (volume.sizeBytes === sizeBytes) return done;
  if (volume.sizeBytes > sizeBytes) {
    return refused("ReplacementRequired", `The disk ${operation.disk} is larger already.`);
  }
  const refusal = noRoom(tools.state, volume.storage, sizeBytes - volume.sizeBytes);
  if (refusal !== undefined) return refusal;
  return tools.task({
    does: "Grow",
    id: machine.id,
    effect: () => {
      volume.sizeBytes = sizeBytes;
      machine.version += 1;
    },
  });
}

export function removeVolume({ state }: ModelTools, operation: RemoveVolume): Begun {
  const { claim, volume } = operation;
  if (mustStay(claim, volume)) return stays(volume);
  const user = userOf(state, volume);
  if (user !== undefined) return inUse(volume, user);
  if (!state.volumes.has(volume)) return done;
  const leftover = leftoversOf(state, claim).find((candidate) => candidate.volume === volume);
  const isApproved = operation.isApproved === true && leftover?.proof === "Probable";
  if (leftover === undefined || !(isApproved || ours.has(leftover.proof))) return notOurs(volume);
  return isAsSeen(operation.seen, leftover) ? freed(state, volume) : replaced(volume);
}

function freed(state: ModelState, volume: string): Begun {
  state.volumes.delete(volume);
  return done;
}

export function discardVolume({ state }: ModelTools, operation: DiscardVolume): Begun {
  const { volume, confirmed } = operation;
  if (confirmed !== volume) return refused("ConfigurationError", "Nobody has typed its id.");
  const user = userOf(state, volume);
  if (user !== undefined) return inUse(volume, user);
  const owner = state.machines.get(state.volumes.get(volume)?.owner ?? "");
  if (owner !== undefined) return refused("IdentityConflict", `VM ${owner.id} has the id.`);
  const kept = [state.volumes, state.images, state.discs].find((each) => each.has(volume));
  const now = kept?.get(volume);
  if (now === undefined) return done;
  if (!isAsSeen(operation.seen, { sizeBytes: now.sizeBytes })) return replaced(volume);
  kept?.delete(volume);
  return done;
}
