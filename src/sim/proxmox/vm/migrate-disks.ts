import type { Cluster } from "../cluster.ts";
import type { GuestConfig } from "../config-file.ts";
import { messageOf, PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import type { Volume } from "../state.ts";
import { storageFor } from "../storage/map.ts";
import { isFileBased } from "../storage/names.ts";
import { demandUnused, nextName } from "../storage/operations.ts";
import { findVolume, fullName, isShared, storageConfig, volumesOf } from "../storage/storages.ts";
import { varied } from "../timing.ts";
import { type Drive, drivesOf, isCdrom, isCloudinit, volumesNamedBy } from "./drive.ts";

/** A guest on its way to another node. */
export interface Migration {
  readonly cluster: Cluster;
  readonly node: string;
  readonly vmid: number;
  readonly target: string;
  readonly log: (line: string) => void;
}

export interface MigrationOptions {
  readonly isOnline: boolean;
  readonly withLocalDisks?: boolean;
  readonly storageMap?: string | undefined;
  readonly isForced?: boolean;
}

/** A volume that exists on its node only, and how the guest names it. */
export interface LocalVolume {
  readonly volid: string;
  readonly volume: Volume;
  readonly ref: "attached" | "unused" | "snapshot" | "generated" | "cdrom";
}

/** A volume and its copy on the target. */
export interface Copied {
  readonly volid: string;
  readonly volume: Volume;
  readonly source: Volume[];
  readonly copy: Volume;
  readonly volumes: Volume[];
  readonly newVolid: string;
}

export function localVolumes(cluster: Cluster, node: string, vmid: number): LocalVolume[] {
  const config = cluster.readGuest(node, vmid);
  const drives = drivesOf(config.main);
  return [...volumesNamedBy(config)].flatMap((volid) => {
    const { storage, volume } = findVolume(cluster, node, volid);
    if (isShared(storage) || volume === undefined) return [];
    const drive = drives.find(([, { file }]) => file === volid)?.[1];
    return [{ volid, volume, ref: refOf(config, volid, drive) }];
  });
}

function refOf(config: GuestConfig, volid: string, drive: Drive | undefined): LocalVolume["ref"] {
  if (drive !== undefined && isCloudinit(drive)) return "generated";
  if (drive !== undefined) return isCdrom(drive) ? "cdrom" : "attached";
  const isUnused = [...config.main].some(
    ([key, value]) => /^unused\d+$/.test(key) && value === volid,
  );
  return isUnused ? "unused" : "snapshot";
}

/** The volumes that have to be copied; throws, after it has named them, if one cannot be. */
export function scanVolumes(
  migration: Migration,
  config: GuestConfig,
  options: MigrationOptions,
): LocalVolume[] {
  const { cluster, node, vmid, log } = migration;
  const found = localVolumes(cluster, node, vmid);
  const words = { attached: "attached", unused: "unused", snapshot: "referenced by snapshot(s)" };
  let isImpossible = false;
  for (const each of found) {
    if (each.ref === "generated")
      log(`found generated disk '${each.volid}' (in current VM config)`);
    else if (each.ref !== "cdrom") log(`found local disk '${each.volid}' (${words[each.ref]})`);
    const refusal = refusalOf(migration, config, { ...each, options });
    if (refusal === undefined) continue;
    isImpossible = true;
    log(`can't migrate local disk '${each.volid}': ${refusal}`);
  }
  const problem = "Problem found while scanning volumes - ";
  if (isImpossible) throw new PveError(`${problem}can't migrate VM - check log`);
  const linked = found.find(({ volume }) => volume.base !== undefined);
  if (linked === undefined) return found;
  throw new PveError(
    `${problem}can't migrate '${linked.volid}' as it's a clone of '${linked.volume.base ?? ""}'`,
  );
}

function refusalOf(
  migration: Migration,
  config: GuestConfig,
  found: LocalVolume & { readonly options: MigrationOptions },
): string | undefined {
  const { volume, ref, options } = found;
  if (ref === "generated") return undefined;
  if (ref === "cdrom") return "local cdrom image";
  if (volume.vmid !== migration.vmid) {
    return `owned by other VM (owner = VM ${volume.vmid ?? ""})`;
  }
  const refusal = config.snapshots.size === 0 ? undefined : snapshotRefusal(migration, found);
  if (refusal !== undefined) return refusal;
  if (isBaseInUse(migration, found.volid)) return "referenced by linked clone(s)";
  return ref === "attached" ? liveRefusal(options) : undefined;
}

function liveRefusal({ isOnline, withLocalDisks }: MigrationOptions): string | undefined {
  if (!isOnline || withLocalDisks === true) return undefined;
  return "can't live migrate attached local disks without with-local-disks option";
}

function snapshotRefusal(
  { cluster, node }: Migration,
  { volid, volume, options }: LocalVolume & { readonly options: MigrationOptions },
): string | undefined {
  if (options.isOnline) {
    return "online storage migration not possible if non-replicated snapshot exists";
  }
  const { storage } = findVolume(cluster, node, volid);
  const canMove = storage.type === "zfspool" || volume.format === "qcow2";
  return canMove ? undefined : "non-migratable snapshot exists";
}

function isBaseInUse({ cluster, node }: Migration, volid: string): boolean {
  try {
    demandUnused(cluster, node, volid);
    return false;
  } catch (error) {
    if (error instanceof PveError) return true;
    throw error;
  }
}

/** Copies a volume over; where its name is taken on the target it gets another one. */
export function* copyAcross(
  migration: Migration,
  { volid, volume }: LocalVolume,
  { storageMap }: MigrationOptions,
): Process<Copied> {
  const { cluster, node, vmid, target, log } = migration;
  const { storage } = findVolume(cluster, node, volid);
  const source = volumesOf(cluster, storage, node);
  const other = storageConfig(cluster, storageFor(storageMap, storage.storage));
  const volumes = volumesOf(cluster, other, target);
  const format = isFileBased(other) ? volume.format : "raw";
  const wanted = { storage: other.storage, vmid, format, sizeBytes: volume.sizeBytes };
  const isSameKind = isFileBased(other) === isFileBased(storage);
  const isTaken = volumes.some(({ name }) => name === volume.name);
  const file = nextName(volumes, other, wanted);
  const fresh = isFileBased(other) ? `${vmid}/${file}` : file;
  const name = isSameKind && !isTaken ? volume.name : fresh;
  const copy: Volume = { ...volume, name, format, isPartial: true };
  volumes.push(copy);
  log(`copying local disk image: ${volid}`);
  const durationMs = (volume.usedBytes / 1024 ** 3) * cluster.timing.copyPerGibMs;
  const newVolid = `${other.storage}:${fullName(copy)}`;
  try {
    yield* work(`copy ${volid}`, varied(cluster.random, durationMs));
    if (cluster.findNode(target)?.isOnline !== true) throw new PveError("connection lost");
  } catch (error) {
    volumes.splice(volumes.indexOf(copy), 1);
    const where = `to storage '${other.storage}' failed`;
    throw new PveError(`storage migration for '${volid}' ${where} - ${messageOf(error)}`);
  }
  delete copy.isPartial;
  return { volid, volume, source, copy, volumes, newVolid };
}

/** What was copied goes again, where the target can still be reached. */
export function freeCopies({ cluster, target }: Migration, copies: readonly Copied[]): void {
  if (cluster.findNode(target)?.isOnline !== true) return;
  for (const { volumes, copy } of copies) volumes.splice(volumes.indexOf(copy), 1);
}

/** The config names the copies from now on. */
export function renameVolumes(config: GuestConfig, copies: readonly Copied[]): void {
  const names = new Map(copies.map(({ volid, newVolid }) => [volid, newVolid]));
  for (const section of [config.main, config.pending, ...config.snapshots.values()]) {
    for (const [key, text] of section) {
      const file = /^[^,]*/.exec(text)?.[0] ?? "";
      const renamed = names.get(file);
      if (renamed !== undefined) section.set(key, text.replace(file, renamed));
    }
  }
}
