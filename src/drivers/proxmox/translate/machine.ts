import { readMark } from "../../../hypervisor/index.ts";
import type {
  Lock,
  Machine,
  PartSlots,
  Power,
  SeenDisk,
  SeenNetwork,
  SeenVolume,
  Shape,
} from "../../../hypervisor/index.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import type { PveConfig } from "./config.ts";
import { present } from "./present.ts";
import { isOtherOrder } from "./boot-order.ts";
import { readSeed } from "./seed.ts";
import { cloudInitDrive, isCloudInitDrive, namedSlots, readShape, type Slots } from "./shape.ts";
import { parseSize } from "./sizes.ts";
import { busOf, cloudInitSlot, isDrive } from "./slots.ts";
import type { Values } from "./values.ts";
import { parseVolume, type Volume } from "./volumes.ts";

/** Everything of a machine that is not in its config. */
export interface Surroundings {
  readonly externalId: string;
  readonly node: string;
  readonly power: Power;
  readonly lock?: Lock;
  /** Config keys whose new value waits for a start. */
  readonly pendingKeys: readonly string[];
  /** What the order to boot in is until then, if it waits. */
  readonly currentBoot?: string;
  /** Drives that go with the next start, which the config no longer shows. */
  readonly leavingDrives: readonly (readonly [slot: string, text: string])[];
  readonly uptimeSeconds?: number;
  /** Names for a machine that bears no mark. */
  readonly names?: PartSlots;
}

/** The machine as its config and its surroundings show it. Pure. */
export function readMachine({ digest, values }: PveConfig, around: Surroundings): Machine {
  const { externalId, node, power, lock, uptimeSeconds } = around;
  const { mark, person } = readMark(values["description"] ?? "");
  const slots: Slots = mark ?? { disks: {}, networks: {}, ...around.names };
  const drive = cloudInitDrive(values);
  return {
    externalId,
    node,
    version: digest,
    power,
    isTemplate: values["template"] === "1",
    ...present({ identity: identityOf(values), mark, lock }),
    shape: { ...withLeavingSeed(readShape(values, slots), around.leavingDrives), notes: person },
    disks: seenDisks(values, slots),
    networks: seenNetworks(values, slots),
    ...present({ cloudInitDrive: drive }),
    pending: around.pendingKeys
      .filter((key) => !ofSavedMemory.has(key))
      .filter((key) => {
        return key !== "boot" || isOtherOrder(values, around.currentBoot, namedSlots(slots));
      })
      .map((key) => pathOf(key, slots)),
    volumes: seenVolumes([...around.leavingDrives, ...Object.entries(values)], slots, externalId),
    hasSnapshots: values["parent"] !== undefined,
    ...present({ uptimeSeconds }),
  };
}

/**
 * A seed whose ejection was written and not applied is still in the drive, and the guest reads it:
 * it counts as inserted until it has left.
 */
function withLeavingSeed<Read extends Pick<Shape, "cloudInit">>(
  shape: Read,
  leavingDrives: Surroundings["leavingDrives"],
): Read {
  const seed = readSeed(Object.fromEntries(leavingDrives));
  if (seed?.state !== "Inserted") return shape;
  return { ...shape, cloudInit: { ...shape.cloudInit, seed } };
}

/** What was written down beside a saved memory that is gone: it means nothing any more. */
const ofSavedMemory = new Set(["runningmachine", "runningcpu", "running-nets-host-mtu"]);

/** The SMBIOS UUID: set by us at creation, made anew by a clone, kept by a restore. */
export function identityOf(values: Values): string | undefined {
  return property(parseProperties(values["smbios1"] ?? "", "uuid"), "uuid")?.toLowerCase();
}

function seenDisks(values: Values, slots: Slots): SeenDisk[] {
  const drive = cloudInitDrive(values);
  return Object.entries(values).flatMap(([slot, text]) => {
    const bus = busOf(slot);
    const options = parseProperties(text, "file");
    const volume = property(options, "file");
    if (bus === undefined || volume === undefined || slot === drive?.slot) return [];
    if (property(options, "media") === "cdrom") return [];
    return [
      {
        ...present({ name: nameOf(slots.disks, slot) }),
        slot,
        volume,
        storage: parseVolume(volume)?.storage ?? "",
        sizeBytes: parseSize(property(options, "size") ?? "") ?? 0,
        bus,
      },
    ];
  });
}

function seenNetworks(values: Values, slots: Slots): SeenNetwork[] {
  return Object.entries(values).flatMap(([slot, text]) => {
    if (!/^net\d+$/.test(slot)) return [];
    const macAddress = /([0-9a-f]{2}(?::[0-9a-f]{2}){5})/i.exec(text)?.[1]?.toLowerCase();
    return [
      {
        ...present({ name: nameOf(slots.networks, slot), macAddress }),
        slot,
      },
    ];
  });
}

function seenVolumes(
  drives: readonly (readonly [slot: string, text: string])[],
  slots: Slots,
  externalId: string,
): SeenVolume[] {
  const volumes = new Map<string, SeenVolume>();
  for (const [slot, text] of drives) {
    const options = parseProperties(text, "file");
    const volume = parseVolume(property(options, "file") ?? "");
    if (!isDrive(slot) || volume === undefined) continue;
    // An ISO or a snippet belongs to nobody: it is used, never owned.
    if (volume.owner === undefined) continue;
    const role = roleOf(slot, volume, text);
    volumes.set(volume.id, {
      id: volume.id,
      role,
      storage: volume.storage,
      state: slot.startsWith("unused") ? "Detached" : "Attached",
      ...present({
        disk: nameOf(slots.disks, slot),
        slot: role === "Firmware" || role === "TPM" ? slot : undefined,
        sizeBytes: parseSize(property(options, "size") ?? ""),
      }),
      isOwn: volume.owner === externalId,
    });
  }
  return [...volumes.values()];
}

const roles: Readonly<Record<string, SeenVolume["role"]>> = {
  vmstate: "State",
  efidisk0: "Firmware",
  tpmstate0: "TPM",
};

/** By the key of the configuration. People give their own disks any name, also `vm-ID-state-…`. */
function roleOf(slot: string, volume: Volume, text: string): SeenVolume["role"] {
  return roles[slot] ?? (isCloudInitDrive(volume, text) ? "CloudInit" : "Disk");
}

const paths: Readonly<Record<string, string>> = {
  memory: "memory.sizeBytes",
  balloon: "memory.minimumBytes",
  shares: "memory.weight",
  cores: "cpu.cores",
  sockets: "cpu.sockets",
  cpu: "cpu.model",
  cpulimit: "cpu.limitMillicores",
  cpuunits: "cpu.weight",
  numa: "cpu.numa",
  machine: "machineType",
  ostype: "guestOs",
  scsihw: "scsiController",
  agent: "guestAgent",
  serial0: "serialConsole",
  boot: "bootOrder",
  bios: "firmware.type",
  efidisk0: "firmware.keepsVariables",
  tpmstate0: "firmware.tpm",
  vga: "display",
  [cloudInitSlot]: "cloudInit.seed",
};

/** A key of the config as the field of the shape that it stands for. */
function pathOf(key: string, slots: Slots): string {
  const disk = nameOf(slots.disks, key);
  if (disk !== undefined) return `disks[${disk}]`;
  for (const part of ["networks", "cdroms", "pci", "usb"] as const) {
    const name = nameOf(slots[part] ?? {}, key);
    if (name !== undefined) return `${part}[${name}]`;
  }
  return paths[key] ?? key;
}

function nameOf(names: Readonly<Record<string, string>>, slot: string): string | undefined {
  return Object.entries(names).find(([, candidate]) => candidate === slot)?.[0];
}
