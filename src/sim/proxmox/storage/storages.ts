import type { Caller } from "../access/rights.ts";
import type { Cluster } from "../cluster.ts";
import { PveError } from "../errors.ts";
import type { LockRequest } from "../locks.ts";
import type { StorageConfig, Volume } from "../state.ts";
import { parseVolumeId, parseVolumeName, rootPath, type VolumeName } from "./names.ts";

export function storageConfig(cluster: Cluster, id: string): StorageConfig {
  const found = cluster.state.storages.find(({ storage }) => storage === id);
  if (found === undefined) throw new PveError(`storage '${id}' does not exist`);
  return found;
}

/** The storage, if it can be used on this node right now. */
export function usableStorage(cluster: Cluster, id: string, node: string): StorageConfig {
  const storage = storageConfig(cluster, id);
  if (storage.disable === 1) throw new PveError(`storage '${id}' is disabled`);
  if (!isOnNode(storage, node)) {
    throw new PveError(`storage '${id}' is not available on node '${node}'`);
  }
  return storage;
}

/** The storage, if it can be used and reached from this node right now. */
export function activate(cluster: Cluster, id: string, node: string): StorageConfig {
  const storage = usableStorage(cluster, id, node);
  if (isReachable(cluster, storage, node)) return storage;
  throw new PveError(unreachable(storage));
}

export function isReachable(cluster: Cluster, storage: StorageConfig, node: string): boolean {
  const { offline } = cluster.faults;
  return offline.size === 0 || !offline.has(backingOf(storage, node));
}

function unreachable({ storage, type, pool, vgname, ...rest }: StorageConfig): string {
  switch (type) {
    case "zfspool": {
      const root = pool?.split("/")[0] ?? "";
      const what = `zfs error: cannot import '${root}': no such pool available`;
      return `could not activate storage '${storage}', ${what}`;
    }
    case "lvmthin":
    case "lvm":
      return `no such volume group '${vgname ?? ""}'`;
    case "rbd":
      return "rbd error: rbd: couldn't connect to the cluster!";
    case "dir": {
      const what = "directory is expected to be a mount point but is not mounted";
      return `unable to activate storage '${storage}' - ${what}: '${rest.path ?? ""}'`;
    }
    default:
      return `storage '${storage}' is not online`;
  }
}

export function isOnNode(storage: StorageConfig, node: string): boolean {
  return storage.nodes === undefined || storage.nodes.split(",").includes(node);
}

export function isShared(storage: StorageConfig): boolean {
  return storage.shared === 1 || ["nfs", "cifs", "rbd", "cephfs"].includes(storage.type);
}

export function hasContent(storage: StorageConfig, content: string): boolean {
  return storage.content.split(",").includes(content);
}

/**
 * Where the bytes are. Two storages over one export, or one in two clusters, see the same volumes;
 * local ones exist once per node.
 */
export function backingOf(storage: StorageConfig, node: string): string {
  const place = isShared(storage) ? "shared" : node;
  const own: Readonly<Record<string, string | undefined>> = {
    zfspool: storage.pool,
    rbd: storage.pool,
    lvmthin: `${storage.vgname}/${storage.thinpool}`,
    nfs: `${storage.server}:${storage.export}`,
  };
  return `${place}:${own[storage.type] ?? rootPath(storage)}`;
}

/** The volumes of a storage as a node sees them. The list may be changed. */
export function volumesOf(cluster: Cluster, storage: StorageConfig, node: string): Volume[] {
  const backing = backingOf(storage, node);
  cluster.touched.backings.add(backing);
  const known = cluster.state.volumes[backing];
  if (known !== undefined) return known;
  const volumes: Volume[] = [];
  cluster.state.volumes[backing] = volumes;
  return volumes;
}

export interface FoundVolume {
  readonly storage: StorageConfig;
  readonly parsed: VolumeName;
  /** Undefined if the name is well-formed but nothing is there. */
  readonly volume: Volume | undefined;
}

/** What a volume id stands for on a node. */
export function findVolume(cluster: Cluster, node: string, volid: string): FoundVolume {
  const { storage: id, name } = parseVolumeId(volid);
  const storage = usableStorage(cluster, id, node);
  const parsed = parseVolumeName(storage, name);
  const volumes = volumesOf(cluster, storage, node);
  return { storage, parsed, volume: volumes.find((volume) => isNamed(volume, name)) };
}

/** The name with its base in front and the one without are the same volume. */
function isNamed(volume: Volume, name: string): boolean {
  return volume.name === name || fullName(volume) === name;
}

/** The name as configurations and lists show it: linked clones carry their base in it. */
export function fullName({ name, base }: Volume): string {
  return base === undefined ? name : `${base}/${name}`;
}

/** Bytes that are taken, and all there are. */
export function spaceOf(
  cluster: Cluster,
  storage: StorageConfig,
  node: string,
): { usedBytes: number; totalBytes: number } {
  const backing = backingOf(storage, node);
  const volumes = cluster.state.volumes[backing] ?? [];
  const usedBytes = volumes.reduce((sum, volume) => sum + volume.usedBytes, 0);
  return { usedBytes, totalBytes: cluster.state.capacities[backing] ?? defaultCapacityBytes };
}

const defaultCapacityBytes = 1024 ** 4;

/** Allocations of one storage go one after the other: on the node, or in the whole cluster. */
export function storageLock(storage: StorageConfig, node: string): LockRequest {
  const id = storage.storage;
  if (isShared(storage)) {
    const timeoutText = `cfs-lock 'storage-${id}' error: got lock request timeout`;
    return { key: `cfs:storage-${id}`, timeoutMs: 10_000, timeoutText };
  }
  const file = `/var/lock/pve-manager/pve-storage-${id}`;
  const timeoutText = `can't lock file '${file}' - got timeout`;
  return { key: `${node}:${file}`, timeoutMs: 10_000, timeoutText };
}

/** Throws unless the caller may use the volume: as its own guest's disk, or by other rights. */
export function demandVolumeAccess(
  cluster: Cluster,
  caller: Caller,
  { volid, vmid }: { readonly volid: string; readonly vmid?: number },
): void {
  if (volid.startsWith("/")) {
    if (caller.id === "root@pam") return;
    const where = "at /usr/share/perl5/PVE/Storage.pm line 651.";
    throw new PveError(`Only root can pass arbitrary filesystem paths. ${where}`);
  }
  const { storage: id, name } = parseVolumeId(volid);
  const { content, vmid: owner } = parseVolumeName(storageConfig(cluster, id), name);
  const path = `/storage/${id}`;
  const { rights } = cluster;
  if (rights.may(caller, path, { privileges: ["Datastore.Allocate"] })) return;
  if (["iso", "vztmpl", "import"].includes(content)) {
    const privileges = ["Datastore.AllocateSpace", "Datastore.Audit"];
    rights.demand(caller, path, { privileges, isAny: true });
  } else if (content !== "images" || owner === undefined) {
    rights.demand(caller, path, { privileges: ["Datastore.Allocate"] });
  } else {
    rights.demand(caller, path, { privileges: ["Datastore.Audit"] });
    if (owner !== vmid) {
      rights.demand(caller, `/vms/${owner}`, { privileges: ["VM.Config.Disk"] });
    }
  }
}
