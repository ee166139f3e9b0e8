import type { SeedShape } from "../../../hypervisor/index.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import type { ConfigChange } from "./config.ts";
import { cloudInitSlot } from "./slots.ts";
import type { Values } from "./values.ts";
import { fileNameOf, parseVolume } from "./volumes.ts";

/** A disc on a storage, as a volume's id. */
export function discVolume(storage: string, fileName: string): string {
  return `${storage}:iso/${fileName}`;
}

/** Our own disc goes where Proxmox's drive for cloud-init would: a guest reads one of them. */
export function writeSeed(seed: SeedShape, values: Values): ConfigChange {
  const wanted = seed.state === "Ejected" ? "none" : discVolume(seed.storage, seed.fileName);
  const current = values[cloudInitSlot];
  if (current !== undefined && fileOf(current) === wanted) return { set: {}, remove: [] };
  return { set: { [cloudInitSlot]: `${wanted},media=cdrom` }, remove: [] };
}

/** What lies in the drive, if it is a seed of ours or nothing: anything else is a person's. */
export function readSeed(values: Values): SeedShape | undefined {
  const current = values[cloudInitSlot];
  if (current === undefined) return undefined;
  const file = fileOf(current);
  if (file === "none") return { state: "Ejected" };
  const storage = parseVolume(file)?.storage;
  const fileName = fileNameOf(file);
  if (storage === undefined || !fileName.startsWith("berth-seed-")) return undefined;
  return { state: "Inserted", storage, fileName };
}

function fileOf(text: string): string {
  return property(parseProperties(text, "file"), "file") ?? "";
}
