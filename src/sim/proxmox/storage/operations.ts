import type { Cluster } from "../cluster.ts";
import { PveError } from "../errors.ts";
import { child, locked, type Process, work } from "../process.ts";
import type { Format, StorageConfig, Volume } from "../state.ts";
import { varied } from "../timing.ts";
import { isFileBased, parseVolumeName } from "./names.ts";
import {
  activate,
  findVolume,
  fullName,
  isShared,
  spaceOf,
  storageLock,
  volumesOf,
} from "./storages.ts";
import {
  busyError,
  cloneLine,
  creationLine,
  existsError,
  fullError,
  missingLine,
} from "./texts.ts";
import { isWritten, write } from "./writers.ts";

/** Who works on volumes: on which node, and where it says so. */
export interface Worker {
  readonly node: string;
  readonly log: (line: string) => void;
}

export interface NewVolume {
  readonly storage: string;
  readonly vmid: number;
  readonly format: Format;
  readonly sizeBytes: number;
  /** The whole name, where it is fixed; otherwise the next free disk number is taken. */
  readonly file?: string;
  /** What it will hold. */
  readonly data?: string;
}

/** Makes an empty volume and returns its id. A kill may leave it behind. */
export function* allocate(cluster: Cluster, worker: Worker, wanted: NewVolume): Process<string> {
  const storage = activate(cluster, wanted.storage, worker.node);
  return yield* locked(storageLock(storage, worker.node), function* () {
    demandReplies(cluster, storage);
    const volumes = volumesOf(cluster, storage, worker.node);
    const file = wanted.file ?? nextName(volumes, storage, wanted);
    const name = isFileBased(storage) ? `${wanted.vmid}/${file}` : file;
    demandFree({ cluster, storage, worker }, volumes, { ...wanted, name });
    const line = creationLine(storage, { ...wanted, name });
    if (line !== undefined) worker.log(line);
    const durationMs = varied(cluster.random, cluster.timing.allocateMs) + cluster.slowStorageMs;
    const create = isFileBased(storage) ? createImage : createDevice;
    yield* appear(volumes, storage, {
      name,
      make: (effect) => create(durationMs, effect),
      describe: () => ({
        name,
        content: "images",
        format: wanted.format,
        sizeBytes: wanted.sizeBytes,
        usedBytes: isReserved(storage) ? wanted.sizeBytes : 0,
        createdMs: cluster.clock.nowMs(),
        vmid: wanted.vmid,
        ...(wanted.data === undefined ? {} : { data: wanted.data }),
      }),
    });
    yield* cluster.step("allocated");
    return `${wanted.storage}:${name}`;
  });
}

/**
 * A volume appears when its program ends. The child of a killed worker no longer holds the lock, so
 * two may be at work on one name: the first to end makes it, the other fails.
 */
function* appear(
  volumes: Volume[],
  storage: StorageConfig,
  {
    name,
    make,
    describe,
  }: {
    readonly name: string;
    readonly make: (effect: () => void) => Process<void>;
    readonly describe: () => Volume;
  },
): Process<void> {
  let isTaken = false;
  yield* make(() => {
    isTaken = volumes.some((volume) => volume.name === name);
    if (!isTaken) volumes.push(describe());
  });
  if (isTaken) throw existsError(storage, name);
}

/** Space is set aside for the whole volume when it is made. */
export function isReserved({ type }: StorageConfig): boolean {
  return type === "zfspool" || type === "lvm";
}

/** A lock of the whole cluster needs the cluster. */
function demandReplies(cluster: Cluster, storage: StorageConfig): void {
  if (!isShared(storage) || cluster.isQuorate()) return;
  throw new PveError(`cfs-lock 'storage-${storage.storage}' error: no quorum!`);
}

/**
 * `qemu-img create` says what it is about to do before it does it: if its parent is gone by then,
 * the closed pipe ends it, and nothing is made.
 */
function* createImage(durationMs: number, effect: () => void): Process<void> {
  try {
    yield* work("qemu-img create", durationMs);
    effect();
  } catch (error) {
    if (error instanceof PveError && error.message === "received interrupt") {
      throw new PveError("unable to create image: received interrupt");
    }
    throw error;
  }
}

/** `zfs create`, `lvcreate` and `rbd create` are silent: they end what they began. */
function createDevice(durationMs: number, effect: () => void): Process<void> {
  return child("create device", durationMs, effect);
}

/** The lowest free number, whoever made the others: leftovers count. */
export function nextName(
  volumes: readonly Volume[],
  storage: StorageConfig,
  wanted: NewVolume,
): string {
  const { vmid, format } = wanted;
  const own = new RegExp(`(?:^|/)(?:vm|base)-${vmid}-disk-(\\d+)`);
  const taken = new Set(
    volumes.flatMap(({ name }) => {
      const found = own.exec(name)?.[1];
      return found === undefined ? [] : [Number(found)];
    }),
  );
  let number = 0;
  while (taken.has(number)) number++;
  const extension = isFileBased(storage) ? `.${format}` : "";
  return `vm-${vmid}-disk-${number}${extension}`;
}

function demandFree(
  { cluster, storage, worker }: { cluster: Cluster; storage: StorageConfig; worker: Worker },
  volumes: readonly Volume[],
  wanted: { readonly name: string; readonly sizeBytes: number },
): void {
  const { name, sizeBytes } = wanted;
  if (volumes.some((volume) => volume.name === name)) throw existsError(storage, name);
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, worker.node);
  const error = fullError(storage, { name, sizeBytes, freeBytes: totalBytes - usedBytes });
  if (error !== undefined) throw error;
}

/** Copies data into a volume that is there. It takes its time, and can fill the storage. */
export function* copyInto(
  cluster: Cluster,
  worker: Worker,
  copy: { readonly target: string; readonly sizeBytes: number; readonly data?: string },
): Process<void> {
  const { storage, volume } = findVolume(cluster, worker.node, copy.target);
  if (volume !== undefined) volume.isPartial = true;
  yield* cluster.step("copy begins");
  const gib = copy.sizeBytes / 1024 ** 3;
  const durationMs = varied(cluster.random, gib * cluster.timing.copyPerGibMs);
  const wholeMs = durationMs + cluster.slowStorageMs;
  yield* write(cluster, { node: worker.node, volume, durationMs: wholeMs }, () => {
    fill(cluster, { storage, node: worker.node }, { volume, ...copy });
  });
}

function fill(
  cluster: Cluster,
  { storage, node }: { storage: StorageConfig; node: string },
  copy: { volume: Volume | undefined; sizeBytes: number; data?: string },
): void {
  const { volume, sizeBytes, data } = copy;
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, node);
  const moreBytes = Math.max(0, sizeBytes - (volume?.usedBytes ?? 0));
  if (usedBytes + moreBytes > totalBytes) {
    throw new PveError("copy failed: qemu-img: error while writing: No space left on device");
  }
  if (volume === undefined) return;
  volume.usedBytes = Math.max(volume.usedBytes, sizeBytes);
  if (data !== undefined) volume.data = data;
  delete volume.isPartial;
}

/** A copy-on-write child of a base volume; returns its id. */
export function* linkClone(
  cluster: Cluster,
  worker: Worker,
  { base: baseId, vmid }: { readonly base: string; readonly vmid: number },
): Process<string> {
  const { storage, volume: base } = findVolume(cluster, worker.node, baseId);
  if (base === undefined) throw new PveError(`volume '${baseId}' does not exist`);
  activate(cluster, storage.storage, worker.node);
  return yield* locked(storageLock(storage, worker.node), function* () {
    const volumes = volumesOf(cluster, storage, worker.node);
    // A file on another one is a qcow2 whatever the base is.
    const format: Format = isFileBased(storage) ? "qcow2" : base.format;
    const wanted = { storage: storage.storage, vmid, format, sizeBytes: base.sizeBytes };
    const file = nextName(volumes, storage, wanted);
    const name = isFileBased(storage) ? `${vmid}/${file}` : file;
    const line = cloneLine(storage, { base: base.name, file, vmid });
    if (line !== undefined) worker.log(line);
    const made: Volume = {
      name,
      content: "images",
      format,
      sizeBytes: base.sizeBytes,
      usedBytes: 0,
      createdMs: cluster.clock.nowMs(),
      vmid,
      ...(base.data === undefined ? {} : { data: base.data }),
      ...(storage.type === "lvmthin" ? {} : { base: base.name }),
    };
    const durationMs = varied(cluster.random, cluster.timing.allocateMs);
    yield* appear(volumes, storage, {
      name,
      make: (effect) => child("link clone", durationMs, effect),
      describe: () => made,
    });
    return `${storage.storage}:${fullName(made)}`;
  });
}

/** Frees a volume. What is not there is only mentioned; a base in use is kept. */
export function* free(cluster: Cluster, worker: Worker, volid: string): Process<void> {
  const { storage, volume } = findVolume(cluster, worker.node, volid);
  activate(cluster, storage.storage, worker.node);
  yield* locked(storageLock(storage, worker.node), function* () {
    demandReplies(cluster, storage);
    demandUnused(cluster, worker.node, volid);
    yield* cluster.step(`free ${volid}`);
    if (volume !== undefined) yield* demandIdle(cluster, storage, volume);
    const volumes = volumesOf(cluster, storage, worker.node);
    const index = volume === undefined ? -1 : volumes.indexOf(volume);
    if (index >= 0) volumes.splice(index, 1);
    else {
      const line = missingLine(storage, volid.slice(storage.storage.length + 1));
      if (line !== undefined) worker.log(line);
    }
  });
}

const busyTries = 6;

/** Throws if a device is open: its guest runs, or a copy still goes into it. zfs tries again. */
function* demandIdle(cluster: Cluster, storage: StorageConfig, volume: Volume): Process<void> {
  const tries = storage.type === "zfspool" ? busyTries : 1;
  for (let attempt = 1; isOpen(cluster, storage, volume); attempt++) {
    const error = busyError(storage, volume.name);
    if (error === undefined) return;
    if (attempt >= tries) throw error;
    yield* work("dataset is busy", 1_000);
  }
}

function isOpen(cluster: Cluster, { storage }: StorageConfig, volume: Volume): boolean {
  const { vmid } = volume;
  const isRunning = vmid !== undefined && cluster.machine(vmid) !== undefined;
  return (isRunning && isDrive(cluster, storage, volume)) || isWritten(cluster, volume);
}

/**
 * Whether the running owner has it as a drive: an unused volume, or memory read back, is not, and
 * neither is the volume of another storage that has the same name.
 */
function isDrive(cluster: Cluster, storage: string, volume: Volume): boolean {
  const { vmid = 0 } = volume;
  const { main } = cluster.readGuest(cluster.nodeOfGuest(vmid) ?? "", vmid);
  const volid = `${storage}:${fullName(volume)}`;
  return [...main].some(([key, value]) => {
    return !/^(unused|vmstate)/.test(key) && value.split(",").includes(volid);
  });
}

/** Throws if linked clones still stand on it. */
export function demandUnused(cluster: Cluster, node: string, volid: string): void {
  const { storage, parsed, volume } = findVolume(cluster, node, volid);
  if (!parsed.isBase || volume === undefined) return;
  if (volumesOf(cluster, storage, node).some(({ base }) => base === volume.name)) {
    throw new PveError(`base volume '${volid}' is still in use by linked cloned`);
  }
}

/** Makes a volume the base of linked clones: it gets another name, which is returned. */
export function makeBase(cluster: Cluster, node: string, volid: string): string {
  const { storage, volume } = findVolume(cluster, node, volid);
  if (volume === undefined) throw new PveError(`volume '${volid}' does not exist`);
  const { isBase } = parseVolumeName(storage, volume.name);
  if (!isBase) volume.name = volume.name.replace(/(^|\/)vm-(\d+-)/, "$1base-$2");
  return `${storage.storage}:${fullName(volume)}`;
}
