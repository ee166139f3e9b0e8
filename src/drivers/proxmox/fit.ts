import type { CloudInitShape, DiskShape, Failure, Fitted, Shape } from "../../hypervisor/index.ts";
import { hasModel, hasPackageUpgrade, type Release } from "./release.ts";
import { assignSlots } from "./translate/assign.ts";
import { changedValues } from "./translate/config.ts";
import { diskRefusal } from "./translate/disks.ts";
import { isKnownHash } from "./translate/guest.ts";
import { readShape, scsiController, type Slots, writeShape } from "./translate/shape.ts";

/**
 * The shape as it would be seen here: written and read back, so that what Proxmox rounds, sorts or
 * has no word for is so on both sides of a comparison. Pure.
 */
export function fitShape(shape: Shape, release: Release): Fitted {
  const refusals = refuse(shape, release);
  const usable = (shape.disks ?? []).filter((disk) => diskRefusal(disk) === undefined);
  const { networks = [] } = shape;
  const slots = assignSlots({ disks: {}, networks: {} }, { disks: usable, networks });
  if ("category" in slots) return { shape, refusals: [...refusals, slots] };
  const blank = blankDisks(usable, slots);
  const cards = Object.fromEntries(Object.values(slots.networks).map((slot) => [slot, ""]));
  const change = writeShape(shape, slots, { ...blank, ...cards });
  const seen = readShape(changedValues({ ...blank, ...cards }, change), slots);
  return { shape: onlyWhatWasSaid(shape, seen), refusals };
}

function blankDisks(disks: readonly DiskShape[], slots: Slots): Record<string, string> {
  const entries = disks.map(({ name }) => [slots.disks[name] ?? "", "none:vm-0-disk-0"] as const);
  return Object.fromEntries(entries);
}

/** Defaults that reading adds were not asked for, and must not become demands. */
function onlyWhatWasSaid(said: Shape, seen: Omit<Shape, "notes">): Shape {
  const { notes, cloudInit } = said;
  // cast: pick keeps the form of its first argument and takes the values of the second.
  const picked = pick(said, seen) as Shape;
  return {
    ...picked,
    ...(notes === undefined ? {} : { notes }),
    // The drive is a volume, and the hash is never read back: both are as they were said.
    ...(cloudInit === undefined ? {} : { cloudInit: { ...cloudInit, ...picked.cloudInit } }),
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

function refuse(shape: Shape, release: Release): Failure[] {
  const { name, scsiController: controller } = shape;
  return [
    ...(name === undefined || dnsName.test(name)
      ? []
      : [wrong(`machineName: Proxmox takes a DNS name, and "${name}" is none`)]),
    ...(shape.disks ?? []).flatMap((disk) => {
      const refusal = diskRefusal(disk);
      return refusal === undefined ? [] : [wrong(`disks[${disk.name}]: ${refusal}`)];
    }),
    ...(shape.networks ?? [])
      .filter(({ mtu, model = "virtio" }) => mtu !== undefined && model !== "virtio")
      .map((card) => wrong(`networks[${card.name}]: mtu can be set on the virtio model only`)),
    ...(controller === undefined || scsiController(controller) !== undefined
      ? []
      : [unsupported(`devices.scsiController: Proxmox has no ${controller}`)]),
    ...refuseCloudInit(shape.cloudInit ?? {}, release),
    ...refuseModel(shape.cpu?.model, release),
  ];
}

function refuseModel(model: string | undefined, release: Release): Failure[] {
  if (model === undefined || hasModel(release, model)) return [];
  return [unsupported(`cpu.model: Proxmox VE ${release.text} does not know ${model}`)];
}

function refuseCloudInit(cloudInit: CloudInitShape, release: Release): Failure[] {
  const { passwordHash, upgradePackages } = cloudInit;
  const isHashRefused = passwordHash !== undefined && !isKnownHash(passwordHash);
  const isUpgradeRefused = upgradePackages !== undefined && !hasPackageUpgrade(release);
  return [
    ...(isHashRefused
      ? [wrong("cloudInit.user.passwordHash: Proxmox takes $1$, $2a$, $2y$, $5$ and $6$ only")]
      : []),
    ...(isUpgradeRefused
      ? [unsupported(`cloudInit.upgradePackages: Proxmox VE ${release.text} cannot say it`)]
      : []),
  ];
}

const dnsName =
  /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$/;

function wrong(message: string): Failure {
  return { category: "ConfigurationError", message };
}

function unsupported(message: string): Failure {
  return { category: "APINotSupported", message };
}
