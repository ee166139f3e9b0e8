import type { ScsiController, Shape, StartupShape } from "../../../hypervisor/index.ts";
import {
  formatOptions,
  formatProperties,
  parseProperties,
  property,
  withProperties,
} from "../wire/property-string.ts";
import { type ConfigChange, joinChanges } from "./config.ts";
import { readCpu, readMemory, writeCpu, writeMemory } from "./cpu-memory.ts";
import { readDisk, writeDisk } from "./disks.ts";
import { readCloudInit, readGuestOs, writeCloudInit, writeGuestOs } from "./guest.ts";
import { readNetwork, writeNetwork } from "./networks.ts";
import { ifSaid, present } from "./present.ts";
import { busOf } from "./slots.ts";
import { flag, numberOf, type Values } from "./values.ts";
import { parseVolume } from "./volumes.ts";

/** Which slot each name has: what the mark says. */
export interface Slots {
  readonly disks: Readonly<Record<string, string>>;
  readonly networks: Readonly<Record<string, string>>;
}

const scsiControllers: Readonly<Partial<Record<ScsiController, string>>> = {
  Virtio: "virtio-scsi-pci",
  VirtioSingle: "virtio-scsi-single",
  LSILogic: "lsi",
  MegaRAID: "megasas",
  PVSCSI: "pvscsi",
};

export function scsiController(controller: ScsiController): string | undefined {
  return scsiControllers[controller];
}

/**
 * What has to be written for a machine of these values to have this shape. The description is not
 * in it, because the mark shares it, nor is any volume: those have operations of their own.
 */
export function writeShape(shape: Shape, slots: Slots, current: Values): ConfigChange {
  return joinChanges([
    writePlain(shape),
    writeOptions(shape, current),
    shape.cpu === undefined ? nothing : writeCpu(shape.cpu, current),
    shape.memory === undefined ? nothing : writeMemory(shape.memory),
    writeDevices(shape, slots, current),
    shape.cloudInit === undefined ? nothing : writeCloudInit(shape.cloudInit, slots.networks),
    writeBootOrder(shape.bootOrder, slots, current),
  ]);
}

const nothing: ConfigChange = { set: {}, remove: [] };

function writePlain(shape: Shape): ConfigChange {
  const { tags } = shape;
  const set = present({
    name: shape.name,
    machine: shape.machineType,
    ostype: ifSaid(shape.guestOs, writeGuestOs),
    onboot: ifSaid(shape.startOnBoot, flag),
    protection: ifSaid(shape.deletionProtection, flag),
    tags: tags === undefined || tags.length === 0 ? undefined : normalTags(tags).join(";"),
  });
  // An empty `tags=` is stored as a single space (9.2, seen), so the key is deleted instead.
  return { set, remove: tags?.length === 0 ? ["tags"] : [] };
}

function writeOptions(shape: Shape, current: Values): ConfigChange {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  const { guestAgent, serialConsole, startup } = shape;
  if (guestAgent !== undefined) {
    const agent = parseProperties(current["agent"] ?? "", "enabled");
    set["agent"] = formatProperties(
      withProperties(agent, { enabled: flag(guestAgent) }),
      "enabled",
    );
  }
  if (serialConsole === true && current["serial0"] === undefined) set["serial0"] = "socket";
  if (serialConsole === false) remove.push("serial0");
  if (startup !== undefined) set["startup"] = writeStartup(startup);
  const controller = shape.scsiController && scsiControllers[shape.scsiController];
  if (controller !== undefined) set["scsihw"] = controller;
  return { set, remove };
}

function writeDevices(shape: Shape, slots: Slots, current: Values): ConfigChange {
  const set: Record<string, string> = {};
  for (const card of shape.networks ?? []) {
    const slot = slots.networks[card.name];
    if (slot !== undefined) set[slot] = writeNetwork(card, current[slot]);
  }
  for (const disk of shape.disks ?? []) {
    const slot = slots.disks[disk.name];
    const text = slot === undefined ? undefined : current[slot];
    // A disk that is not there yet is made by an operation of its own.
    if (slot !== undefined && text !== undefined) set[slot] = writeDisk(disk, text);
  }
  return { set, remove: [] };
}

/** Only devices that are there may be named, else the whole change is refused. */
export function writeBootOrder(
  names: readonly string[] | undefined,
  slots: Slots,
  values: Values,
): ConfigChange {
  if (names === undefined) return nothing;
  const order = names
    .map((name) => slots.disks[name] ?? slots.networks[name])
    .filter((slot) => slot !== undefined && slot in values);
  return order.length === 0 ? nothing : { set: { boot: `order=${order.join(";")}` }, remove: [] };
}

/** The shape of a machine as its config shows it, with Proxmox's defaults said aloud. */
export function readShape(values: Values, slots: Slots): Omit<Shape, "notes"> {
  const { name, machine, startup, scsihw } = values;
  return {
    ...present({ name, scsiController: entryOf(scsihw), cloudInit: readSeed(values, slots) }),
    tags: normalTags((values["tags"] ?? "").split(/[;, ]+/)),
    cpu: readCpu(values),
    memory: readMemory(values),
    ...present({ machineType: machine?.split(",")[0] }),
    guestOs: readGuestOs(values["ostype"]),
    disks: readDisks(values, slots),
    networks: readNetworks(values, slots),
    bootOrder: readBootOrder(values, slots),
    serialConsole: values["serial0"] !== undefined,
    guestAgent: property(parseProperties(values["agent"] ?? "0", "enabled"), "enabled") === "1",
    startOnBoot: values["onboot"] === "1",
    ...present({ startup: ifSaid(startup, readStartup) }),
    deletionProtection: values["protection"] === "1",
  };
}

/** What cloud-init is told, with the storage of the drive that carries it. */
function readSeed(values: Values, slots: Slots): Shape["cloudInit"] | undefined {
  const fields = readCloudInit(values, slots.networks);
  const drive = cloudInitDrive(values);
  const storage = drive === undefined ? undefined : parseVolume(drive.volume)?.storage;
  if (fields === undefined && storage === undefined) return undefined;
  return { ...fields, ...present({ storage }) };
}

/** The drive that carries cloud-init's data, wherever it sits. */
export function cloudInitDrive(
  values: Values,
): { readonly slot: string; readonly volume: string } | undefined {
  for (const [slot, text] of Object.entries(values)) {
    if (busOf(slot) === undefined) continue;
    const volume = property(parseProperties(text, "file"), "file") ?? "";
    if (parseVolume(volume)?.isCloudInit === true) return { slot, volume };
  }
  return undefined;
}

function readDisks(values: Values, slots: Slots): NonNullable<Shape["disks"]> {
  return Object.entries(slots.disks).flatMap(([name, slot]) => {
    const text = values[slot];
    const bus = busOf(slot);
    return text === undefined || bus === undefined ? [] : [readDisk(text, name, bus)];
  });
}

function readNetworks(values: Values, slots: Slots): NonNullable<Shape["networks"]> {
  return Object.entries(slots.networks).flatMap(([name, slot]) => {
    const text = values[slot];
    return text === undefined ? [] : [readNetwork(text, name)];
  });
}

function readBootOrder(values: Values, slots: Slots): string[] {
  const order = property(parseProperties(values["boot"] ?? "", "legacy"), "order") ?? "";
  const names = new Map(
    [...Object.entries(slots.disks), ...Object.entries(slots.networks)].map(([name, slot]) => {
      return [slot, name] as const;
    }),
  );
  return order.split(";").flatMap((slot) => names.get(slot) ?? []);
}

function normalTags(tags: readonly string[]): string[] {
  return [...new Set(tags.map((tag) => tag.trim().toLowerCase()).filter(Boolean))].toSorted();
}

function writeStartup({ order, delaySeconds, stopSeconds }: StartupShape): string {
  return formatOptions({
    order: ifSaid(order, String),
    up: ifSaid(delaySeconds, String),
    down: ifSaid(stopSeconds, String),
  });
}

function readStartup(text: string): StartupShape {
  const properties = parseProperties(text, "order");
  return present({
    order: numberOf(property(properties, "order")),
    delaySeconds: numberOf(property(properties, "up")),
    stopSeconds: numberOf(property(properties, "down")),
  });
}

function entryOf(text: string | undefined): ScsiController | undefined {
  // cast: the keys of the table are controllers.
  const known = Object.entries(scsiControllers) as [ScsiController, string][];
  return known.find(([, word]) => word === text)?.[0];
}
