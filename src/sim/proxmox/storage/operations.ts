import type { Cluster } from "../cluster.ts";
import { PveError } from "../errors.ts";
import { child, locked, type Process, work } from "../process.ts";
import type { Format, StorageConfig, Volume } from "../state.ts";
import { varied } from "../timing.ts";
import { isFileBased, parseVolumeName, pathOfVolume } from "./names.ts";
import {
  findVolume,
  fullName,
  spaceOf,
  storageLock,
  usableStorage,
  volumesOf,
} from "./storages.ts";

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
  const storage = usableStorage(cluster, wanted.storage, worker.node);
  return yield* locked(storageLock(storage, worker.node), function* () {
    const volumes = volumesOf(cluster, storage, worker.node);
    const file = wanted.file ?? nextName(volumes, storage, wanted);
    const name = isFileBased(storage) ? `${wanted.vmid}/${file}` : file;
    demandFree({ cluster, storage, worker }, volumes, { ...wanted, name });
    worker.log(formattingLine(storage, name, wanted));
    const durationMs = varied(cluster.random, cluster.timing.allocateMs) + cluster.slowStorageMs;
    yield* createImage(durationMs, () => {
      volumes.push({
        name,
        content: "images",
        format: wanted.format,
        sizeBytes: wanted.sizeBytes,
        usedBytes: 0,
        createdMs: cluster.clock.nowMs(),
        vmid: wanted.vmid,
        ...(wanted.data === undefined ? {} : { data: wanted.data }),
      });
    });
    yield* cluster.step("allocated");
    return `${wanted.storage}:${name}`;
  });
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

/** The lowest free number, whoever made the others: leftovers count. */
function nextName(volumes: readonly Volume[], storage: StorageConfig, wanted: NewVolume): string {
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
  const { name } = wanted;
  if (volumes.some((volume) => volume.name === name)) throw existsError(storage, name);
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, worker.node);
  // Files, thin pools and RBD are sparse and promise more than they have; a zvol is reserved.
  const taken = storage.type === "zfspool" ? usedBytes + wanted.sizeBytes : usedBytes;
  if (taken <= totalBytes) return;
  if (storage.type !== "zfspool")
    throw new PveError("unable to create image: No space left on device");
  throw new PveError(`zfs error: cannot create '${storage.pool}/${name}': out of space`);
}

function existsError(storage: StorageConfig, name: string): PveError {
  switch (storage.type) {
    case "zfspool": {
      const volume = `${storage.pool ?? ""}/${name}`;
      return new PveError(`zfs error: cannot create '${volume}': dataset already exists`);
    }
    case "lvmthin": {
      const what = `Logical Volume "${name}" already exists in volume group "${storage.vgname}"`;
      return new PveError(`lvcreate '${storage.vgname}/${name}' error:   ${what}`);
    }
    case "rbd":
      return new PveError(`rbd create '${name}' error: rbd: create error: (17) File exists`);
    default:
      return new PveError(`disk image '${pathOfVolume(storage, name)}' already exists`);
  }
}

function formattingLine(
  storage: StorageConfig,
  name: string,
  { format, sizeBytes }: NewVolume,
): string {
  const path = pathOfVolume(storage, name);
  if (format === "qcow2") {
    const first = "cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib";
    const last = "lazy_refcounts=off refcount_bits=16";
    return `Formatting '${path}', fmt=qcow2 ${first} size=${sizeBytes} ${last}`;
  }
  return `Formatting '${path}', fmt=${format} size=${sizeBytes} preallocation=off`;
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
  yield* child("qemu-img convert", durationMs + cluster.slowStorageMs, () => {
    const { usedBytes, totalBytes } = spaceOf(cluster, storage, worker.node);
    if (usedBytes + copy.sizeBytes > totalBytes) {
      throw new PveError("copy failed: qemu-img: error while writing: No space left on device");
    }
    if (volume === undefined) return;
    volume.usedBytes = copy.sizeBytes;
    if (copy.data !== undefined) volume.data = copy.data;
    delete volume.isPartial;
  });
}

/** A copy-on-write child of a base volume; returns its id. */
export function* linkClone(
  cluster: Cluster,
  worker: Worker,
  { base: baseId, vmid }: { readonly base: string; readonly vmid: number },
): Process<string> {
  const { storage, volume: base } = findVolume(cluster, worker.node, baseId);
  if (base === undefined) throw new PveError(`volume '${baseId}' does not exist`);
  return yield* locked(storageLock(storage, worker.node), function* () {
    const volumes = volumesOf(cluster, storage, worker.node);
    const wanted = {
      storage: storage.storage,
      vmid,
      format: base.format,
      sizeBytes: base.sizeBytes,
    };
    const file = nextName(volumes, storage, wanted);
    const name = isFileBased(storage) ? `${vmid}/${file}` : file;
    const how = `images, ${file}, ${vmid} to ${file} (base=../${base.name})`;
    worker.log(`clone ${base.name}: ${how}`);
    const made: Volume = {
      name,
      content: "images",
      format: base.format,
      sizeBytes: base.sizeBytes,
      usedBytes: 0,
      createdMs: cluster.clock.nowMs(),
      vmid,
      ...(base.data === undefined ? {} : { data: base.data }),
      ...(storage.type === "lvmthin" ? {} : { base: base.name }),
    };
    yield* child("link clone", varied(cluster.random, cluster.timing.allocateMs), () => {
      volumes.push(made);
    });
    return `${storage.storage}:${fullName(made)}`;
  });
}

/** Frees a volume. What is not there is only mentioned; a base in use is kept. */
export function* free(cluster: Cluster, worker: Worker, volid: string): Process<void> {
  const { storage, volume } = findVolume(cluster, worker.node, volid);
  yield* locked(storageLock(storage, worker.node), function* () {
    demandUnused(cluster, worker.node, volid);
    yield* cluster.step(`free ${volid}`);
    const volumes = volumesOf(cluster, storage, worker.node);
    const index = volume === undefined ? -1 : volumes.indexOf(volume);
    if (index >= 0) volumes.splice(index, 1);
    else if (isFileBased(storage)) {
      const name = volid.slice(storage.storage.length + 1);
      worker.log(`disk image '${pathOfVolume(storage, name)}' does not exist`);
    }
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
