import type { Cluster } from "../cluster.ts";
import { PveError } from "../errors.ts";
import { guestLock } from "../endpoint.ts";
import { locked, type Process } from "../process.ts";
import type { Format } from "../state.ts";
import { formatOf, isFileBased, pathOfVolume } from "../storage/names.ts";
import { allocate, copyInto, makeBase, type Worker } from "../storage/operations.ts";
import {
  findVolume,
  type FoundVolume,
  isOnNode,
  storageConfig,
  volumesOf,
} from "../storage/storages.ts";
import {
  type Drive,
  isCdrom,
  isDriveKey,
  newCloudinitOf,
  newDiskOf,
  parseDrive,
  printDrive,
  printSize,
  withOptions,
} from "./drive.ts";

/** What made the disks of a call: the settings as they are stored, and what is new on storages. */
export interface MadeDisks {
  readonly settings: Record<string, string>;
  /** Volumes that this call made: they go if it fails. */
  readonly made: string[];
}

export interface DiskMaker {
  readonly cluster: Cluster;
  readonly worker: Worker;
  readonly vmid: number;
  /** The disks of a template are bases from the start. */
  readonly isTemplate?: boolean;
}

const cloudinitBytes = 4 * 1024 ** 2;

/** Makes the disks that the settings ask for, one after the other, in the order of their names. */
export function* makeDisks(
  maker: DiskMaker,
  settings: Readonly<Record<string, string>>,
  disks: MadeDisks,
): Process<void> {
  const keys = Object.keys(settings).filter(isDriveKey).sort();
  for (const key of keys) {
    const drive = parseDrive(settings[key] ?? "");
    const made = yield* makeDisk(maker, key, { drive, made: disks.made });
    disks.settings[key] = printDrive(maker.isTemplate === true ? asBase(maker, made) : made);
    yield* maker.cluster.step(`made ${key}`);
  }
}

function asBase({ cluster, worker }: DiskMaker, drive: Drive): Drive {
  if (isCdrom(drive) || !drive.file.includes(":")) return drive;
  return { ...drive, file: makeBase(cluster, worker.node, drive.file) };
}

interface Wanted {
  readonly drive: Drive;
  readonly made: string[];
}

function* makeDisk(maker: DiskMaker, key: string, { drive, made }: Wanted): Process<Drive> {
  if (drive.file === "none" || drive.file === "cdrom" || drive.file.startsWith("/")) return drive;
  const cloudinit = newCloudinitOf(drive.file);
  if (cloudinit !== undefined) return yield* makeCloudinit(maker, key, { drive, made });
  const asked = newDiskOf(drive.file);
  if (asked === undefined || isCdrom(drive)) return existing(maker, drive);
  if (drive.options.has("import-from")) return yield* importDisk(maker, key, { drive, made });
  const format = formatFor(maker, asked.storage, drive.options.get("format"));
  const sizeBytes =
    fixedBytes(maker, key, { drive, storage: asked.storage }) ?? Math.floor(asked.gib * 1024 ** 3);
  const wanted = { storage: asked.storage, vmid: maker.vmid, format, sizeBytes };
  const volid = yield* allocate(maker.cluster, maker.worker, wanted);
  made.push(volid);
  return told(maker, key, finished(drive, volid, sizeBytes));
}

/** Firmware variables and TPM state have sizes of their own, whatever is asked for. */
function fixedBytes(
  { cluster }: DiskMaker,
  key: string,
  { drive, storage }: { readonly drive: Drive; readonly storage: string },
): number | undefined {
  if (key === "tpmstate0") return 4 * 1024 ** 2;
  if (key !== "efidisk0") return undefined;
  const bytes = drive.options.get("efitype") === "4m" ? 528 * 1024 : 128 * 1024;
  const unit = smallestBytes(storageConfig(cluster, storage).type);
  return Math.ceil(bytes / unit) * unit;
}

/** Block devices come in whole units only: a variable store takes more there than in a file. */
function smallestBytes(type: string): number {
  if (type === "lvm" || type === "lvmthin") return 4 * 1024 ** 2;
  return type === "zfspool" || type === "rbd" ? 1024 ** 2 : 1;
}

function formatFor(maker: DiskMaker, id: string, asked: string | undefined): Format {
  const storage = storageConfig(maker.cluster, id);
  return isFileBased(storage) ? formatOf(asked ?? storage.format ?? "raw") : "raw";
}

function finished(drive: Drive, file: string, sizeBytes: number): Drive {
  const changes = { size: printSize(sizeBytes), format: undefined, "import-from": undefined };
  return withOptions({ file, options: drive.options }, changes);
}

function told(maker: DiskMaker, key: string, drive: Drive): Drive {
  maker.worker.log(`${key}: successfully created disk '${printDrive(drive)}'`);
  return drive;
}

/** The drive's volume has one fixed name: a leftover of it is in the way. */
function* makeCloudinit(maker: DiskMaker, key: string, { drive, made }: Wanted): Process<Drive> {
  const storage = newCloudinitOf(drive.file) ?? "";
  const isFile = isFileBased(storageConfig(maker.cluster, storage));
  const asked = drive.options.get("format") ?? "qcow2";
  const format = isFile ? formatOf(asked) : "raw";
  const file = `vm-${maker.vmid}-cloudinit${isFile ? `.${format}` : ""}`;
  const wanted = { storage, vmid: maker.vmid, format, sizeBytes: cloudinitBytes, file };
  const volid = yield* allocate(maker.cluster, maker.worker, wanted);
  made.push(volid);
  const options = withOptions(drive, { media: "cdrom", format: undefined }).options;
  return told(maker, key, { file: volid, options });
}

/** A volume that is there already: it must be, and its size is noted down. */
function existing({ cluster, worker }: DiskMaker, drive: Drive): Drive {
  const { volume } = findVolume(cluster, worker.node, drive.file);
  if (volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
  if (isCdrom(drive)) return withOptions(drive, { size: sizeOfCdrom(drive, volume.sizeBytes) });
  return withOptions(drive, { size: printSize(volume.sizeBytes) });
}

function sizeOfCdrom(drive: Drive, bytes: number): string | undefined {
  return /cloudinit/.test(drive.file) ? drive.options.get("size") : printSize(bytes);
}

interface Source {
  readonly sizeBytes: number;
  readonly format: Format;
  /** What is on it; nothing, for a blank disk. */
  readonly data?: string;
  /** The guest that owns the source; it must not change meanwhile. */
  readonly owner?: number;
}

function* importDisk(maker: DiskMaker, key: string, { drive, made }: Wanted): Process<Drive> {
  const { cluster, worker, vmid } = maker;
  const volid = drive.options.get("import-from") ?? "";
  const source = sourceOf(maker, volid);
  const body = function* (): Process<Drive> {
    worker.log(`create full clone of drive${sourceKey(maker, source, volid)} (${volid})`);
    const storage = newDiskOf(drive.file)?.storage ?? "";
    const asked = drive.options.get("format") ?? source.format;
    const format = formatFor(maker, storage, asked);
    const { sizeBytes } = source;
    const target = yield* allocate(cluster, worker, { storage, vmid, format, sizeBytes });
    made.push(target);
    if (cluster.quirks.logsTargets) worker.log(`allocated target volume '${target}'`);
    const data = source.data === undefined ? {} : { data: source.data };
    yield* copyInto(cluster, worker, { target, sizeBytes, ...data });
    return told(maker, key, finished(drive, target, sizeBytes));
  };
  if (source.owner === undefined || source.owner === vmid) return yield* body();
  const isShared = !cluster.isRunning(worker.node, source.owner);
  const lock = guestLock(worker.node, source.owner, { timeoutMs: 30_000, isShared });
  return yield* locked(lock, body);
}

function sourceKey({ cluster, worker }: DiskMaker, source: Source, volid: string): string {
  if (source.owner === undefined || !cluster.hasGuest(worker.node, source.owner)) return "";
  const { main } = cluster.readGuest(worker.node, source.owner);
  const key = [...main].find(([name, text]) => isDriveKey(name) && parseDrive(text).file === volid);
  return key === undefined ? "" : ` ${key[0]}`;
}

function sourceOf({ cluster, worker }: DiskMaker, source: string): Source {
  const volid = source.startsWith("/") ? volumeAtPath(cluster, worker.node, source) : source;
  const found = findVolume(cluster, worker.node, volid);
  if (found.parsed.content === "import") return importSource(found, volid);
  const failure = `cannot import from '${source}' - `;
  const { volume, parsed } = found;
  if (volume === undefined) throw new PveError(`${failure}could not get size of ${volid}`);
  const owner = parsed.vmid === undefined ? undefined : cluster.nodeOfGuest(parsed.vmid);
  if (owner !== undefined && owner !== worker.node) {
    throw new PveError(`${failure}owner VM ${parsed.vmid} not on local node`);
  }
  const { sizeBytes, format, data } = volume;
  const common = { sizeBytes, format, ...(data === undefined ? {} : { data }) };
  if (owner === undefined || parsed.vmid === undefined) return common;
  return { ...common, owner: parsed.vmid };
}

function importSource({ storage, parsed, volume }: FoundVolume, volid: string): Source {
  const path = pathOfVolume(storage, `import/${parsed.file}`);
  if (volume === undefined) throw new PveError(`failed to stat '${path}'`);
  const sizeBytes = volume.virtualBytes ?? volume.sizeBytes;
  return { sizeBytes, format: volume.format, data: volume.data ?? volid };
}

function volumeAtPath(cluster: Cluster, node: string, path: string): string {
  for (const storage of cluster.state.storages.filter((each) => isOnNode(each, node))) {
    const volumes = volumesOf(cluster, storage, node);
    const found = volumes.find(({ name }) => pathOfVolume(storage, name) === path);
    if (found !== undefined) return `${storage.storage}:${found.name}`;
  }
  throw new PveError(`failed to stat '${path}'`);
}
