import type { Cluster } from "../cluster.ts";
import { type Call, fork } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import {
  formatOf,
  isFileBased,
  parseVolumeId,
  parseVolumeName,
  pathOfVolume,
} from "../storage/names.ts";
import { allocate, free } from "../storage/operations.ts";
import {
  activate,
  demandVolumeAccess,
  findVolume,
  fullName,
  hasContent,
  storageConfig,
  usableStorage,
  volumesOf,
} from "../storage/storages.ts";
import { splitList } from "../schema/formats.ts";
import type { StorageConfig, Volume } from "../state.ts";
import { parseSize } from "../vm/drive.ts";

/** GET …/content: rows that the caller may not use are left out without a word. */
export function listContent(call: Call): unknown {
  const { cluster, node, parameters } = call;
  const { content, vmid } = parameters;
  const storage = activate(cluster, parameters["storage"] ?? "", node);
  return volumesOf(cluster, storage, node)
    .filter((volume) => hasContent(storage, volume.content))
    .filter((volume) => content === undefined || splitList(content).includes(volume.content))
    .filter(
      (volume) => vmid === undefined || volume.vmid === undefined || volume.vmid === Number(vmid),
    )
    .filter((volume) => maySee(call, `${storage.storage}:${fullName(volume)}`))
    .map((volume) => contentRow(call, storage, volume));
}

function maySee(call: Call, volid: string): boolean {
  try {
    demandVolumeAccess(call.cluster, call.caller, { volid });
    return true;
  } catch (error) {
    if (error instanceof PveError && error.status === 403) return false;
    throw error;
  }
}

function contentRow({ cluster, node }: Call, storage: StorageConfig, volume: Volume): object {
  const createdMs = volume.createdMs + clockAheadMs(cluster, storage, node);
  const base = {
    volid: `${storage.storage}:${fullName(volume)}`,
    content: volume.content,
    ...(tellsCreation(storage) ? { ctime: Math.floor(createdMs / 1e3) } : {}),
  };
  if (volume.content !== "images")
    return { ...base, format: volume.format, size: volume.sizeBytes };
  const isCorrupt = volume.isCorrupt === true && volume.format !== "raw";
  const broken = cluster.quirks.detectsBrokenImages ? "invalid" : "raw";
  return {
    ...base,
    format: isCorrupt ? broken : volume.format,
    size: isCorrupt ? 512 : volume.sizeBytes,
    ...(isFileBased(storage) ? fileFields(volume) : deviceFields(volume)),
    vmid: volume.vmid,
  };
}

/** Files that several nodes share have the time of their server: that of the first node. */
function clockAheadMs(cluster: Cluster, { shared }: StorageConfig, node: string): number {
  const name = shared === 1 ? cluster.state.nodes[0]?.name : node;
  return cluster.findNode(name ?? "")?.clockAheadMs ?? 0;
}

/** The lists of ZFS and RBD have no time (pve-storage, ZFSPoolPlugin and RBDPlugin, 7 to 9). */
function tellsCreation({ type }: StorageConfig): boolean {
  return type !== "zfspool" && type !== "rbd";
}

function fileFields({ base, usedBytes }: Volume): object {
  return { parent: base === undefined ? null : `../${base}`, used: usedBytes };
}

function deviceFields({ name, base }: Volume): object {
  return { name, ...(base === undefined ? {} : { parent: `${base}@__base__` }) };
}

/** The volume that a path names: with its storage in front, or without. */
function volidOf({ parameters }: Call): string {
  const { storage = "", volume = "" } = parameters;
  if (!volume.includes(":")) return `${storage}:${volume}`;
  const named = parseVolumeId(volume).storage;
  if (named !== storage) {
    throw parameterError({ volume: `storage ID mismatch (${named} != ${storage})\n` });
  }
  return volume;
}

export function readVolume(call: Call): unknown {
  const { cluster, node } = call;
  const volid = volidOf(call);
  demandVolumeAccess(cluster, call.caller, { volid });
  const { storage, volume } = findVolume(cluster, node, volid);
  const { name } = parseVolumeId(volid);
  const path = pathOfVolume(storage, name);
  if (volume === undefined) {
    const what = cluster.quirks.messageInBody ? " - no format" : "";
    throw new PveError(`volume_size_info on '${volid}' failed${what}`);
  }
  if (volume.isCorrupt === true && volume.format !== "raw") {
    if (!cluster.quirks.detectsBrokenImages)
      return { format: "raw", path, size: 512, used: volume.usedBytes };
    throw new PveError(
      `qemu-img: Could not open '${path}': Image is not in ${volume.format} format`,
    );
  }
  return {
    format: volume.format,
    path,
    size: volume.virtualBytes ?? volume.sizeBytes,
    used: volume.usedBytes,
  };
}

/** POST …/content: an empty volume under a name of the caller's. */
export function* allocateVolume(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { storage = "", filename = "", vmid, size = "" } = parameters;
  const config = usableStorage(cluster, storage, node);
  const format = formatOf(isFileBased(config) ? askedFormat(parameters, config) : "raw");
  demandName(config, parameters);
  // A bare number is a number of KiB here.
  const sizeBytes = /^\d+$/.test(size) ? Number(size) * 1024 : (parseSize(size) ?? 0);
  const wanted = { storage, vmid: Number(vmid), format, sizeBytes, file: filename };
  return yield* allocate(cluster, { node, log: () => undefined }, wanted);
}

/**
 * Files may have any name with the extension of a format, devices one that begins with the guest's
 * (pve-storage, alloc_image of each plugin, 7 to 9).
 */
function demandName(storage: StorageConfig, { filename = "", vmid }: Call["parameters"]): void {
  if (isFileBased(storage)) {
    if (/^[^/\s]+\.(?:raw|qcow2|vmdk|subvol)$/.test(filename)) return;
    throw new PveError(`unable to parse volume filename '${filename}'`);
  }
  if (filename.startsWith(`vm-${vmid}-`)) return;
  throw new PveError(`illegal name '${filename}' - should be 'vm-${vmid}-*'`);
}

function askedFormat(
  { filename = "", format }: Call["parameters"],
  { format: usual = "raw" }: StorageConfig,
): string {
  const extension = /\.(raw|qcow2|vmdk)$/.exec(filename)?.[1];
  if (format === undefined) return extension ?? usual;
  if (extension !== undefined && format !== extension) {
    throw parameterError({ format: `different storage formats (${format} != ${extension})` });
  }
  return format;
}

/** DELETE …/content/{volume}: nobody asks whether a guest uses it. */
export function* deleteVolume(call: Call): Process<unknown> {
  const { cluster, caller, node, parameters } = call;
  const volid = volidOf(call);
  const { storage, name } = parseVolumeId(volid);
  const config = storageConfig(cluster, storage);
  const { vmid } = parseVolumeName(config, name);
  cluster.rights.demand(caller, `/storage/${storage}`, { privileges: ["Datastore.Allocate"] });
  const id = vmid === undefined ? storage : `${vmid}@${storage}`;
  const state = { isOver: false };
  const upid = fork(call, { type: "imgdel", id }, function* (task) {
    yield* free(cluster, { node, log: task.log }, volid);
    task.log(`Removed volume '${volid}'`);
    state.isOver = true;
  });
  const delayMs = Number(parameters["delay"] ?? "0") * 1000;
  for (let waited = 0; waited < delayMs && !state.isOver; waited += 100)
    yield* work("wait for worker", 100);
  return state.isOver && delayMs > 0 ? null : upid;
}
