import type { ScsiController, Shape, StartupShape } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import { formatOptions, parseProperties, property } from "../wire/property-string.ts";
import { formatOrder, readOrder, unnamedDrives } from "./boot-order.ts";
import { type ConfigChange, joinChanges } from "./config.ts";
import { readCpu, readMemory, writeCpu, writeMemory } from "./cpu-memory.ts";
import {
  readAgent,
  readCdrom,
  readDisplay,
  readPci,
  readUsb,
  writeAgent,
  writeCdrom,
  writeDisplay,
  writePci,
  writeUsb,
} from "./devices.ts";
import { readDisk, writeDisk } from "./disks.ts";
import { readFirmware, writeFirmware } from "./firmware.ts";
import { readCloudInit, readGuestOs, writeCloudInit, writeGuestOs } from "./guest.ts";
import { readNetwork, writeNetwork } from "./networks.ts";
import { ifSaid, present } from "./present.ts";
import { readSeed, writeSeed } from "./seed.ts";
import { busOf } from "./slots.ts";
import { flag, numberOf, type Values } from "./values.ts";
import { parseVolume, type Volume } from "./volumes.ts";

/** Which slot each name has: what the mark says. */
export interface Slots {
  readonly disks: Readonly<Record<string, string>>;
  readonly networks: Readonly<Record<string, string>>;
  readonly cdroms?: Readonly<Record<string, string>>;
  readonly pci?: Readonly<Record<string, string>>;
  readonly usb?: Readonly<Record<string, string>>;
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
    shape.firmware === undefined ? nothing : writeFirmware(shape.firmware),
    writeDevices(shape, slots, current),
    shape.cloudInit === undefined ? nothing : writeCloudInit(shape.cloudInit, slots.networks),
    shape.cloudInit?.seed === undefined ? nothing : writeSeed(shape.cloudInit.seed, current),
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
  const { guestAgent, agentOptions, serialConsole, startup, display } = shape;
  const agent = { isEnabled: guestAgent, options: agentOptions };
  const saysAgent = guestAgent !== undefined || agentOptions !== undefined;
  const set: Record<string, string> = present({
    agent: saysAgent ? writeAgent(agent, current["agent"] ?? "") : undefined,
    vga: ifSaid(display, (screen) => writeDisplay(screen, current["vga"] ?? "")),
    startup: ifSaid(startup, writeStartup),
    scsihw: ifSaid(shape.scsiController, (controller) => scsiControllers[controller]),
  });
  const remove: string[] = [];
  if (serialConsole === true && current["serial0"] === undefined) set["serial0"] = "socket";
  if (serialConsole === false) remove.push("serial0");
  return { set, remove };
}

function writeDevices(shape: Shape, slots: Slots, current: Values): ConfigChange {
  const set: Record<string, string> = {
    ...written(shape.networks, slots.networks, (card, slot) => writeNetwork(card, current[slot])),
    ...written(shape.cdroms, slots.cdroms, (drive, slot) => writeCdrom(drive, current[slot])),
    ...written(shape.pci, slots.pci, (device, slot) => writePci(device, current[slot] ?? "")),
    ...written(shape.usb, slots.usb, (device, slot) => writeUsb(device, current[slot])),
  };
  for (const disk of shape.disks ?? []) {
    const slot = slots.disks[disk.name];
    const text = slot === undefined ? undefined : current[slot];
    // A disk that is not there yet is made by an operation of its own.
    if (slot !== undefined && text !== undefined) set[slot] = writeDisk(disk, text);
  }
  return { set, remove: [] };
}

/** Parts by their slots. One without a slot is not there: it has to be stamped first. */
function written<T extends { readonly name: string }>(
  parts: readonly T[] = [],
  slots: Readonly<Record<string, string>> = {},
  write: (part: T, slot: string) => string,
): Record<string, string> {
  const entries = parts.flatMap((part) => {
    const slot = slots[part.name];
    return slot === undefined ? [] : [[slot, write(part, slot)] as const];
  });
  return Object.fromEntries(entries);
}

/** Only devices that are there may be named, else the whole change is refused. */
export function writeBootOrder(
  names: readonly string[] | undefined,
  slots: Slots,
  values: Values,
): ConfigChange {
  if (names === undefined) return nothing;
  const order = names
    .map((name) => slots.disks[name] ?? slots.cdroms?.[name] ?? slots.networks[name])
    .flatMap((slot) => (slot !== undefined && slot in values ? [slot] : []));
  if (order.length === 0) return nothing;
  const boot = formatOrder([...order, ...unnamedDrives(values, namedSlots(slots))]);
  return { set: { boot }, remove: [] };
}

/** The slots of everything that has a name. */
export function namedSlots({ disks, cdroms = {}, networks }: Slots): ReadonlySet<string> {
  return new Set([disks, cdroms, networks].flatMap((part) => Object.values(part)));
}

/** The shape of a machine as its config shows it, with Proxmox's defaults said aloud. */
export function readShape(values: Values, slots: Slots): Omit<Shape, "notes"> {
  const { name, machine, startup, scsihw } = values;
  return {
    ...present({ name, scsiController: entryOf(scsihw), cloudInit: readStart(values, slots) }),
    tags: normalTags((values["tags"] ?? "").split(/[;, ]+/)),
    cpu: readCpu(values),
    memory: readMemory(values),
    ...present({ machineType: machine?.split(",")[0] }),
    firmware: readFirmware(values),
    guestOs: readGuestOs(values["ostype"]),
    disks: readDisks(values, slots),
    cdroms: readParts(values, slots.cdroms, readCdrom),
    networks: readParts(values, slots.networks, readNetwork),
    bootOrder: readBootOrder(values, slots),
    serialConsole: values["serial0"] !== undefined,
    display: readDisplay(values["vga"]),
    pci: readParts(values, slots.pci, readPci),
    usb: readParts(values, slots.usb, readUsb),
    ...readAgent(values["agent"]),
    startOnBoot: values["onboot"] === "1",
    ...present({ startup: ifSaid(startup, readStartup) }),
    deletionProtection: values["protection"] === "1",
  };
}

/** What cloud-init is told, with the storage of the drive that carries it. */
function readStart(values: Values, slots: Slots): Shape["cloudInit"] | undefined {
  const fields = readCloudInit(values, slots.networks);
  const drive = cloudInitDrive(values);
  const storage = drive === undefined ? undefined : parseVolume(drive.volume)?.storage;
  const seed = drive === undefined ? readSeed(values) : undefined;
  if (fields === undefined && storage === undefined && seed === undefined) return undefined;
  return { ...fields, ...present({ storage, seed }) };
}

/** The drive that carries cloud-init's data, wherever it sits. */
export function cloudInitDrive(
  values: Values,
): { readonly slot: string; readonly volume: string } | undefined {
  for (const [slot, text] of Object.entries(values)) {
    if (busOf(slot) === undefined) continue;
    const volume = parseVolume(property(parseProperties(text, "file"), "file") ?? "");
    if (volume && isCloudInitDrive(volume, text)) return { slot, volume: volume.id };
  }
  return undefined;
}

/** The server makes such a drive a CD-ROM. A disk with the name of its volume is a person's. */
export function isCloudInitDrive({ isCloudInit }: Volume, text: string): boolean {
  const isCdrom = property(parseProperties(text, "file"), "media") === "cdrom";
  return isCloudInit && guard("cloud-init-drive-cdrom", isCdrom);
}

function readDisks(values: Values, slots: Slots): NonNullable<Shape["disks"]> {
  return Object.entries(slots.disks).flatMap(([name, slot]) => {
    const text = values[slot];
    const bus = busOf(slot);
    return text === undefined || bus === undefined ? [] : [readDisk(text, name, bus)];
  });
}

function readParts<T>(
  values: Values,
  slots: Readonly<Record<string, string>> = {},
  read: (text: string, name: string, slot: string) => T,
): T[] {
  return Object.entries(slots).flatMap(([name, slot]) => {
    const text = values[slot];
    return text === undefined ? [] : [read(text, name, slot)];
  });
}

function readBootOrder(values: Values, slots: Slots): string[] {
  const order = readOrder(values["boot"] ?? "") ?? [];
  const names = new Map(
    [slots.disks, slots.cdroms ?? {}, slots.networks]
      .flatMap((part) => Object.entries(part))
      .map(([name, slot]) => [slot, name] as const),
  );
  return order.flatMap((slot) => names.get(slot) ?? []);
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
