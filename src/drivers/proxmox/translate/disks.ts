import type { Bus, DiskLimits, DiskRates, DiskShape } from "../../../hypervisor/index.ts";
import {
  formatProperties,
  parseProperties,
  property,
  withProperties,
} from "../wire/property-string.ts";
import type { Properties } from "../wire/property-string.ts";
import { ifSaid, present } from "./present.ts";
import { mebibyte } from "./sizes.ts";
import { numberOf } from "./values.ts";

const caches = {
  None: "none",
  WriteThrough: "writethrough",
  WriteBack: "writeback",
  DirectSync: "directsync",
  Unsafe: "unsafe",
} as const;

const asyncIos = { IoUring: "io_uring", Native: "native", Threads: "threads" } as const;

/** The options of a drive, changed where the shape says something. The volume stays what it is. */
export function writeDiskOptions(disk: DiskShape, current: Properties): Properties {
  const { limits } = disk;
  return withProperties(current, {
    ...present({
      cache: ifSaid(disk.cache, (cache) => caches[cache]),
      aio: ifSaid(disk.asyncIo, (asyncIo) => asyncIos[asyncIo]),
      serial: disk.serial,
    }),
    ...switched("discard", disk.discard, "on"),
    ...switched("iothread", disk.ioThread, "1"),
    ...switched("ssd", disk.ssd, "1"),
    ...switched("ro", disk.readOnly, "1"),
    ...switched("backup", inverted(disk.backup), "0"),
    ...switched("replicate", inverted(disk.replicate), "0"),
    ...(limits === undefined ? {} : writeLimits(limits)),
  });
}

/** An option that is written when it is on, and left out when it is off. */
function switched(
  key: string,
  isOn: boolean | undefined,
  text: string,
): Record<string, string | undefined> {
  if (isOn === undefined) return {};
  return { [key]: isOn ? text : undefined };
}

function inverted(isOn: boolean | undefined): boolean | undefined {
  return isOn === undefined ? undefined : !isOn;
}

export function writeDisk(disk: DiskShape, current: string): string {
  return formatProperties(writeDiskOptions(disk, parseProperties(current, "file")), "file");
}

export function readDisk(text: string, name: string, bus: Bus): DiskShape {
  const options = parseProperties(text, "file");
  return {
    name,
    bus,
    ...present({
      // Without the option the server opens the disk past its cache, as with "none".
      cache: keyOf(caches, property(options, "cache") ?? caches.None),
      asyncIo: keyOf(asyncIos, property(options, "aio")),
      serial: property(options, "serial"),
      limits: readLimits(options),
    }),
    discard: property(options, "discard") === "on",
    ioThread: property(options, "iothread") === "1",
    ssd: property(options, "ssd") === "1",
    readOnly: property(options, "ro") === "1",
    backup: property(options, "backup") !== "0",
    replicate: property(options, "replicate") !== "0",
  };
}

/** Why a bus cannot have an option, in the words of the field; undefined if it can. */
export function diskRefusal(disk: DiskShape): string | undefined {
  const bus = disk.bus ?? "scsi";
  if (bus === "nvme") return "Proxmox has no nvme bus: use scsi or virtio";
  if (disk.ssd === true && bus === "virtio") return "ssd cannot be told on the virtio bus";
  if (bus === "scsi" || bus === "virtio") return undefined;
  if (disk.ioThread === true) return `ioThread needs the scsi or virtio bus, not ${bus}`;
  if (disk.readOnly === true) return `readOnly needs the scsi or virtio bus, not ${bus}`;
  return undefined;
}

const rateKeys = [
  ["readBytesPerSecond", "mbps_rd", mebibyte],
  ["writeBytesPerSecond", "mbps_wr", mebibyte],
  ["readOperationsPerSecond", "iops_rd", 1],
  ["writeOperationsPerSecond", "iops_wr", 1],
] as const;

function writeLimits(limits: DiskLimits): Record<string, string> {
  return { ...writeRates(limits, ""), ...writeRates(limits.burst ?? {}, "_max") };
}

function writeRates(rates: DiskRates, suffix: string): Record<string, string> {
  const entries = rateKeys.flatMap(([field, key, unit]) => {
    const value = rates[field];
    if (value === undefined) return [];
    // Six digits after the point tell single bytes apart, and so survive the way back.
    return [[key + suffix, String(Number((value / unit).toFixed(6)))] as const];
  });
  return Object.fromEntries(entries);
}

function readLimits(options: Properties): DiskLimits | undefined {
  const rates = readRates(options, "");
  const burst = readRates(options, "_max");
  if (rates === undefined && burst === undefined) return undefined;
  return { ...rates, ...(burst === undefined ? {} : { burst }) };
}

function readRates(options: Properties, suffix: string): DiskRates | undefined {
  const entries = rateKeys.flatMap(([field, key, unit]) => {
    const value = numberOf(property(options, key + suffix));
    return value === undefined ? [] : [[field, Math.round(value * unit)] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function keyOf<K extends string>(
  words: Readonly<Record<K, string>>,
  text: string | undefined,
): K | undefined {
  // cast: the keys of a literal table are its own type.
  return (Object.keys(words) as K[]).find((key) => words[key] === text);
}
