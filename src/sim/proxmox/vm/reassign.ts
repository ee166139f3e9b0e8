import { copyConfig, type GuestConfig } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, vmidOf } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { hasFeature } from "../storage/features.ts";
import { isFileBased, parseVolumeId } from "../storage/names.ts";
import { nextName } from "../storage/operations.ts";
import { findVolume, type FoundVolume, fullName, volumesOf } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { write } from "./apply.ts";
import { type Drive, isCdrom, parseDrive, printDrive, volumesOfSection } from "./drive.ts";
import { bootOrder } from "./hardware.ts";
import { applyUpdate } from "./update-apply.ts";

/** A disk on its way from one guest to another. */
interface Handover {
  readonly drive: Drive;
  readonly key: string;
  readonly target: number;
  readonly targetKey: string;
}

/** Hands a disk over to another guest of the node: its volume is renamed, no data moves. */
export function reassignDisk(call: Call): string {
  const { cluster, node, caller, parameters } = call;
  const vmid = vmidOf(call);
  const target = Number(parameters["target-vmid"]);
  cluster.rights.demand(caller, `/vms/${target}`, { privileges: ["VM.Config.Disk"] });
  if (vmid === target) {
    const why = "must be different than source VMID to reassign disk";
    throw parameterError({ "target-vmid": why });
  }
  const { drive, key, targetKey } = demandReassignable(call);
  const { storage } = parseVolumeId(drive.file);
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(caller, `/storage/${storage}`, { privileges });
  const id = `${vmid}-${key}>${target}-${targetKey}`;
  return fork(call, { type: "qmmove", id }, (task) =>
    locked(guestLock(node, vmid), () =>
      locked(guestLock(node, target), () => reassignWorker(call, task)),
    ),
  );
}

/** Looked at when it is asked for, and again under both locks. */
function demandReassignable(call: Call): Handover {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const target = Number(parameters["target-vmid"]);
  const { disk: key = "" } = parameters;
  const targetKey = parameters["target-disk"] ?? key;
  const [source, other] = configsOf(call, vmid, target);
  if (source.main.get("template") === "1" || other.main.get("template") === "1") {
    throw new PveError("Can't move disks from or to template VMs");
  }
  demandSame(call, vmid, parameters["digest"]);
  demandSame(call, target, parameters["target-digest"]);
  const text = source.main.get(key);
  if (text === undefined) throw new PveError(`Disk '${key}' for VM '${vmid}' does not exist`);
  if (other.main.has(targetKey)) {
    throw new PveError(`Target disk key '${targetKey}' is already in use for VM '${target}'`);
  }
  const drive = parseDrive(text);
  demandMovable(call, source, drive);
  if (cluster.isRunning(node, vmid) && !/^unused\d+$/.test(key)) {
    throw new PveError(
      "Cannot move disk to another VM while the source VM is running - detach first",
    );
  }
  return { drive, key, target, targetKey };
}

function configsOf(
  { cluster, node }: Call,
  vmid: number,
  target: number,
): [source: GuestConfig, target: GuestConfig] {
  const elsewhere = cluster.nodeOfGuest(target);
  if (elsewhere === undefined) throw new PveError(`could not find target VM ${target}`);
  const source = cluster.readGuest(node, vmid);
  if (elsewhere !== node) {
    throw new PveError(`Both VMs need to be on the same node (${node} != ${elsewhere})`);
  }
  const other = cluster.readGuest(node, target);
  demandUnlocked(source);
  demandUnlocked(other);
  return [source, other];
}

function demandSame({ cluster, node }: Call, vmid: number, digest: string | undefined): void {
  if (digest === undefined || digest === cluster.digest(node, vmid)) return;
  const why = "detected modified configuration - file changed by other user? Try again.";
  throw new PveError(`VM ${vmid}: ${why}`);
}

function demandMovable({ cluster, node }: Call, config: GuestConfig, drive: Drive): void {
  if (isCdrom(drive)) throw new PveError("CD drive contents can't be moved to another VM");
  if (!/^[a-z][\w.-]*:/i.test(drive.file)) {
    throw new PveError(`Volume '${drive.file}' not managed by PVE`);
  }
  const isUsed = [...config.snapshots.values()].some((part) => {
    return volumesOfSection(part).includes(drive.file);
  });
  if (isUsed) throw new PveError("Can't move disk used by a snapshot to another VM");
  const { storage, volume } = findVolume(cluster, node, drive.file);
  if (volume === undefined || !hasFeature(storage, volume, { feature: "rename" })) {
    throw new PveError("Storage does not support moving of this disk to another VM");
  }
}

/** A kill between two of its steps leaves the disk with neither guest, under its new name. */
function* reassignWorker(call: Call, task: Task): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const { drive, key, target, targetKey } = demandReassignable(call);
  const where = `as '${targetKey}' to VM '${target}'`;
  task.log(`reassign disk '${key}' from VM '${vmid}' ${where}`);
  yield* cluster.step("rename volume");
  const file = rename(call, findVolume(cluster, node, drive.file), target);
  const from = copyConfig(cluster.readGuest(node, vmid));
  const order = bootOrder(from.main);
  if (order.includes(key)) {
    task.log(`removing disk '${key}' from boot order config`);
    const rest = order.filter((device) => device !== key);
    from.main.set("boot", rest.length === 0 ? "" : `order=${rest.join(";")}`);
  }
  task.log(`removing disk '${key}' from VM '${vmid}' config`);
  from.main.delete(key);
  yield* cluster.step("write source config");
  cluster.writeGuest(node, vmid, from);
  yield* cluster.step("write target config");
  const applier = { cluster, worker: { node, log: task.log }, vmid: target };
  const to = copyConfig(cluster.readGuest(node, target));
  if (/^unused\d+$/.test(targetKey)) {
    to.main.set(targetKey, file);
    write(applier, to);
    return;
  }
  const settings = { [targetKey]: printDrive({ ...drive, file }) };
  const nothing = { deletes: [], reverts: [], isForced: false, skipsLock: false };
  yield* applyUpdate(applier, to, { settings, ...nothing });
}

/** The volume gets the next free name of its new owner, which is returned with its storage. */
function rename({ cluster, node }: Call, { storage, volume }: FoundVolume, target: number): string {
  if (volume === undefined) throw new PveError("volume does not exist");
  const { format, sizeBytes } = volume;
  const wanted = { storage: storage.storage, vmid: target, format, sizeBytes };
  const file = nextName(volumesOf(cluster, storage, node), storage, wanted);
  volume.name = isFileBased(storage) ? `${target}/${file}` : file;
  volume.vmid = target;
  return `${storage.storage}:${fullName(volume)}`;
}
