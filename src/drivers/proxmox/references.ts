import { isJsonObject } from "../../kernel/json.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { machinePath, type MachinePlace, type WholeConfig } from "./config-reader.ts";
import { readFailureOf } from "./errors.ts";
import { parseConfig, type PveConfig } from "./translate/config.ts";
import { isDrive } from "./translate/slots.ts";
import { parseVolume } from "./translate/volumes.ts";
import type { PveApi } from "./wire/api.ts";
import { parseProperties, property } from "./wire/property-string.ts";
import { pathPart } from "./wire/wire.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/**
 * Every volume that a machine refers to: in its config, in what is pending, and in its snapshots,
 * which alone know of disks that were removed after they were taken.
 */
export async function referencedVolumes(
  api: PveApi,
  place: MachinePlace,
  config: WholeConfig,
): Promise<Answer<ReadonlySet<string>>> {
  const drives = await referringDrives(api, place, config);
  if (!drives.ok) return drives;
  return answered(new Set(drives.value.flatMap(([, text]) => volumesOf(text))));
}

/** The same with the keys that refer to them: what a volume is for follows from its key. */
export async function referringDrives(
  api: PveApi,
  place: MachinePlace,
  config: WholeConfig,
): Promise<Answer<readonly Drive[]>> {
  const snapshots = await snapshotDrives(api, place);
  if (!snapshots.ok) return snapshots;
  return answered([...drivesOf(config), ...config.pending.leavingDrives, ...snapshots.value]);
}

export type Drive = readonly [slot: string, text: string];

export function drivesOf(config: PveConfig): Drive[] {
  return Object.entries(config.values).filter(([key]) => isDrive(key));
}

export function volumesOf(text: string): string[] {
  const volume = property(parseProperties(text, "file"), "file");
  return volume === undefined || parseVolume(volume) === undefined ? [] : [volume];
}

async function snapshotDrives(
  api: PveApi,
  place: MachinePlace,
): Promise<Answer<readonly (readonly [string, string])[]>> {
  const attempted = `list the snapshots of VM ${place.externalId}`;
  const list = await api.get(machinePath(place, "/snapshot"));
  if (list.type !== "data") return failed(readFailureOf(list, attempted));
  const rows = rowsOf(list.data);
  const drives: (readonly [string, string])[] = [];
  for (const row of rows) {
    const name = textOf(row, "name");
    if (name === "current") continue;
    const result = await api.get(machinePath(place, `/snapshot/${pathPart(name)}/config`));
    if (result.type !== "data") return failed(readFailureOf(result, attempted));
    // A snapshot's config has no digest of its own.
    const config = parseConfig({ digest: "", ...(isJsonObject(result.data) ? result.data : {}) });
    if (config !== undefined) drives.push(...drivesOf(config));
  }
  return answered(drives);
}
