import type { Cluster } from "../cluster.ts";
import type { GuestConfig } from "../config-file.ts";
import type { Process } from "../process.ts";
import { familySize } from "../schema/families.ts";
import { parseVolumeName } from "../storage/names.ts";
import { parseVolumeId } from "../storage/names.ts";
import { free, type Worker } from "../storage/operations.ts";
import { storageConfig } from "../storage/storages.ts";
import {
  type Drive,
  drivesOf,
  isCdrom,
  isCloudinit,
  isDriveKey,
  parseDrive,
  volumesNamedBy,
} from "./drive.ts";

export interface Applier {
  readonly cluster: Cluster;
  readonly worker: Worker;
  readonly vmid: number;
}

/** Makes everything pending current, as it happens while the machine is off; writes the config. */
export function* applyPending(applier: Applier, config: GuestConfig): Process<void> {
  if (config.pending.size === 0 && config.pendingDelete.size === 0) return;
  for (const [key, { isForced }] of config.pendingDelete) {
    yield* dropOption(applier, config, { key, isForced });
    config.pendingDelete.delete(key);
  }
  for (const key of config.pending.keys()) yield* applyOption(applier, config, key);
  write(applier, config);
}

/** Makes one pending option current. A drive that it replaces becomes unused, or goes. */
export function* applyOption(applier: Applier, config: GuestConfig, key: string): Process<void> {
  const value = config.pending.get(key);
  if (value === undefined) return;
  const old = config.main.get(key);
  config.pending.delete(key);
  config.main.set(key, value);
  const isReplaced = isDriveKey(key) && old !== undefined;
  if (isReplaced && parseDrive(old).file !== parseDrive(value).file) {
    yield* letGo(applier, config, { drive: parseDrive(old), isForced: false });
  }
}

/** Takes an option out of the config; a drive's volume becomes unused, or is freed if forced. */
export function* dropOption(
  applier: Applier,
  config: GuestConfig,
  { key, isForced }: { readonly key: string; readonly isForced: boolean },
): Process<void> {
  const old = config.main.get(key);
  config.main.delete(key);
  if (old === undefined || !isDriveKey(key)) return;
  yield* letGo(applier, config, { drive: parseDrive(old), isForced });
}

/** A drive is given up: its volume becomes unused, or goes. */
export function* letGo(
  applier: Applier,
  config: GuestConfig,
  { drive, isForced }: { readonly drive: Drive; readonly isForced: boolean },
): Process<void> {
  const { cluster, worker } = applier;
  if (isCloudinit(drive) || (isForced && isOwned(applier, drive))) {
    yield* free(cluster, worker, drive.file);
  } else if (!isCdrom(drive) && isOwned(applier, drive)) addUnused(config, drive.file);
}

/** Whether the volume is this guest's own; another's is only let go. */
export function isOwned({ cluster, vmid }: Applier, drive: Drive): boolean {
  if (!/^[a-z][\w.-]*:/i.test(drive.file)) return false;
  const { storage, name } = parseVolumeId(drive.file);
  if (!cluster.state.storages.some((each) => each.storage === storage)) return false;
  return parseVolumeName(storageConfig(cluster, storage), name).vmid === vmid;
}

/** Notes a volume down as unused, under the first free number. */
export function addUnused(config: GuestConfig, volid: string): string | undefined {
  if (volumesOfMain(config).has(volid)) return undefined;
  for (let number = 0; number < familySize("unused"); number++) {
    const key = `unused${number}`;
    if (config.main.has(key)) continue;
    config.main.set(key, volid);
    return key;
  }
  return undefined;
}

function volumesOfMain(config: GuestConfig): Set<string> {
  return volumesNamedBy({ ...config, snapshots: new Map() });
}

/** Writes the config. A volume that is a drive again is not unused any more. */
export function write({ cluster, worker, vmid }: Applier, config: GuestConfig): void {
  for (const [key, volid] of config.main) {
    if (key.startsWith("unused") && isAttached(config, volid)) config.main.delete(key);
  }
  cluster.writeGuest(worker.node, vmid, config);
}

function isAttached(config: GuestConfig, volid: string): boolean {
  return [config.main, config.pending].some((section) => {
    return drivesOf(section).some(([, { file }]) => file === volid);
  });
}
