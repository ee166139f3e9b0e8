import { copyConfig, type GuestConfig } from "../config-file.ts";
import {
  type Call,
  demandDigest,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { parseVolumeId } from "../storage/names.ts";
import type { StorageConfig } from "../state.ts";
import { isReserved } from "../storage/operations.ts";
import { activate, findVolume, spaceOf } from "../storage/storages.ts";
import {
  type Drive,
  isCdrom,
  isCloudinit,
  parseDrive,
  parseSize,
  printDrive,
  printSize,
  withOptions,
} from "./drive.ts";

/** PUT …/resize: a worker since qemu-server 8.0.2, the call itself before. */
export function* resizeDisk(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  const { cluster, node } = call;
  const lock = guestLock(node, vmidOf(call));
  yield* cluster.step("resize request");
  if (cluster.quirks.resizeIsTask) {
    return fork(call, { type: "resize" }, (task) => locked(lock, () => grow(call, task.log)));
  }
  yield* locked(lock, () => grow(call, () => undefined));
  return null;
}

function* grow(call: Call, log: (line: string) => void): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  demandDigest(call);
  demandUnlocked(config, isSet(parameters["skiplock"]));
  const { disk: key = "", size = "" } = parameters;
  const drive = resizableDrive(config, key);
  const { storage, volume } = findVolume(cluster, node, drive.file);
  activate(cluster, storage.storage, node);
  if (volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
  const wanted = wantedBytes(size, volume.sizeBytes);
  if (wanted < volume.sizeBytes) throw new PveError("shrinking disks is not supported");
  if (wanted === volume.sizeBytes) return;
  if (config.snapshots.size > 0 && !cluster.quirks.resizeWithSnapshots) {
    throw new PveError(`can't resize volume: ${key} if snapshot exists`);
  }
  demandSpace(call, storage, wanted - volume.sizeBytes);
  yield* cluster.step("grow volume");
  volume.sizeBytes = wanted;
  if (isReserved(storage)) volume.usedBytes = wanted;
  if (volume.format === "qcow2") log("Image resized.");
  // A crash here leaves a volume that is larger than its config says.
  yield* cluster.step("note size");
  config.main.set(key, printDrive(withOptions(drive, { size: printSize(wanted) })));
  cluster.writeGuest(node, vmid, config);
}

function resizableDrive(config: GuestConfig, key: string): Drive {
  const text = config.main.get(key);
  if (text === undefined) throw new PveError(`disk '${key}' does not exist`);
  const drive = parseDrive(text);
  parseVolumeId(drive.file);
  if (isCdrom(drive) || isCloudinit(drive)) throw new PveError("you can't resize a cdrom");
  return drive;
}

function demandSpace({ cluster, node }: Call, storage: StorageConfig, moreBytes: number): void {
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, node);
  if (storage.type !== "zfspool" || usedBytes + moreBytes <= totalBytes) return;
  throw new PveError(`zfs error: cannot set property for '${storage.pool}': out of space`);
}

function wantedBytes(size: string, current: number): number {
  const isRelative = size.startsWith("+");
  const bytes = parseSize(isRelative ? size.slice(1) : size) ?? 0;
  return isRelative ? current + bytes : bytes;
}
