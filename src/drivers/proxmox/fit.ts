import { removeMark } from "../../hypervisor/index.ts";
import type { DiskShape, Fitted, Shape } from "../../hypervisor/index.ts";
import { refusals as refuse } from "./refusals.ts";
import type { Release } from "./release.ts";
import { assignSlots } from "./translate/assign.ts";
import { changedValues } from "./translate/config.ts";
import { diskRefusal } from "./translate/disks.ts";
import { firmwareVolumes } from "./translate/firmware.ts";
import { readShape, type Slots, writeShape } from "./translate/shape.ts";

/**
 * The shape as it would be seen here: written and read back, so that what Proxmox rounds, sorts or
 * has no word for is so on both sides of a comparison. Pure.
 */
export function fitShape(shape: Shape, release: Release): Fitted {
  const refusals = refuse(shape, release);
  const usable = (shape.disks ?? []).filter((disk) => diskRefusal(disk) === undefined);
  const slots = assignSlots({ disks: {}, networks: {} }, { ...partsOf(shape), disks: usable });
  if ("category" in slots) return { shape, refusals: [...refusals, slots] };
  const blank = blankDisks(usable, slots);
  const volumes = firmwareVolumes(shape.firmware ?? {}, {}, "none");
  const bare = {
    ...blank,
    ...inSlots(slots.networks, ""),
    // Only what is there can be named in the order to boot in.
    ...inSlots(slots.cdroms ?? {}, "none,media=cdrom"),
    ...volumes,
  };
  const seen = readShape(changedValues(bare, writeShape(shape, slots, bare)), slots);
  return { shape: onlyWhatWasSaid(withVariables(shape), seen), refusals };
}

/** The parts of a shape that get a slot each. */
export function partsOf(shape: Shape): Pick<Required<Shape>, "disks" | "networks"> & Shape {
  const { disks = [], networks = [], cdroms = [], pci = [], usb = [] } = shape;
  return { disks, networks, cdroms, pci, usb };
}

/** UEFI without its volume would forget at every restart what the guest told it. */
function withVariables(shape: Shape): Shape {
  if (shape.firmware?.type !== "UEFI") return shape;
  return { ...shape, firmware: { ...shape.firmware, keepsVariables: true } };
}

function inSlots(slots: Readonly<Record<string, string>>, text: string): Record<string, string> {
  return Object.fromEntries(Object.values(slots).map((slot) => [slot, text]));
}

function blankDisks(disks: readonly DiskShape[], slots: Slots): Record<string, string> {
  const entries = disks.map(({ name }) => [slots.disks[name] ?? "", "none:vm-0-disk-0"] as const);
  return Object.fromEntries(entries);
}

/** Defaults that reading adds were not asked for, and must not become demands. */
function onlyWhatWasSaid(said: Shape, seen: Omit<Shape, "notes">): Shape {
  const { notes, cloudInit, firmware, highAvailability } = said;
  // cast: pick keeps the form of its first argument and takes the values of the second.
  const picked = pick(said, seen) as Shape;
  return {
    ...picked,
    // A line that looks like Berth's own is never a person's.
    ...(notes === undefined ? {} : { notes: removeMark(notes) }),
    // The drive is a volume, and the hash is never read back: both are as they were said.
    ...(cloudInit === undefined ? {} : { cloudInit: { ...cloudInit, ...picked.cloudInit } }),
    ...(firmware === undefined ? {} : { firmware: { ...firmware, ...picked.firmware } }),
    // It stands in no config, and is taken as it is said.
    ...(highAvailability === undefined ? {} : { highAvailability }),
  };
}

function pick(said: unknown, seen: unknown): unknown {
  if (Array.isArray(said) && Array.isArray(seen)) {
    return said.length > 0 && isNamed(said[0])
      ? said.flatMap((item) => pickNamed(item, seen))
      : seen;
  }
  if (!isRecord(said) || !isRecord(seen)) return seen;
  const kept = Object.keys(said).filter((key) => seen[key] !== undefined);
  return Object.fromEntries(kept.map((key) => [key, pick(said[key], seen[key])]));
}

function pickNamed(item: unknown, seen: readonly unknown[]): unknown[] {
  const found = seen.find((candidate) => nameOf(candidate) === nameOf(item));
  return found === undefined ? [] : [pick(item, found)];
}

function isNamed(value: unknown): boolean {
  return nameOf(value) !== undefined;
}

function nameOf(value: unknown): unknown {
  return isRecord(value) ? (value["name"] ?? value["network"]) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
