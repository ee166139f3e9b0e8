import { copyConfig, type GuestConfig } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { parameterError, PveError, prefixed } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { formatOf, parseVolumeId } from "../storage/names.ts";
import { free, type Worker } from "../storage/operations.ts";
import { findVolume, fullName, storageConfig } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { addUnused } from "./apply.ts";
import { copyVolume } from "./clone.ts";
import { cleanUp } from "./create.ts";
import { type Drive, isCdrom, parseDrive, printDrive, volumesOfSection } from "./drive.ts";
import { demandImages } from "./rights.ts";

/** POST …/move_disk: to another storage or format, or to another guest. */
export function* moveDisk(call: Call): Process<unknown> {
  const { parameters } = call;
  const both = "both 'storage' and 'target-vmid' missing, either needs to be set";
  if (parameters["storage"] === undefined && parameters["target-vmid"] === undefined) {
    throw parameterError({ storage: both, "target-vmid": both });
  }
  yield* call.cluster.step("move request");
  return parameters["target-vmid"] === undefined
    ? yield* moveToStorage(call)
    : yield* reassign(call);
}

function* moveToStorage(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { disk: key = "", storage = "" } = parameters;
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(call.caller, `/storage/${storage}`, { privileges });
  return yield* locked(guestLock(node, vmidOf(call)), function* () {
    const config = cluster.readGuest(node, vmidOf(call));
    demandSame(call);
    demandUnlocked(config);
    const drive = driveOf(config, key);
    if (cluster.quirks.checksTargetStorage) demandImages(call, storage);
    demandOther(call, drive, storage);
    demandNoSnapshots(call, config, drive);
    yield* cluster.step("fork");
    return fork(call, { type: "qmmove" }, (task) => {
      return locked(guestLock(node, vmidOf(call)), () => moveWorker(call, task, drive));
    });
  });
}

function demandSame({ cluster, node, parameters }: Call): void {
  const { digest, vmid } = parameters;
  if (digest === undefined || digest === cluster.digest(node, Number(vmid))) return;
  throw new PveError("detected modified configuration - file changed by other user? Try again.");
}

function driveOf(config: GuestConfig, key: string): Drive {
  const text = config.main.get(key);
  if (text === undefined) throw new PveError(`disk '${key}' does not exist`);
  const drive = parseDrive(text);
  if (isCdrom(drive)) throw new PveError("you can't move a cdrom");
  return drive;
}

function demandOther({ cluster, node, parameters }: Call, drive: Drive, storage: string): void {
  const { volume } = findVolume(cluster, node, drive.file);
  const format = parameters["format"] ?? volume?.format;
  if (
    parseVolumeId(drive.file).storage === storage &&
    formatOf(format ?? "raw") === volume?.format
  ) {
    throw new PveError("you can't move to the same storage with same format");
  }
}

function demandNoSnapshots({ parameters }: Call, config: GuestConfig, drive: Drive): void {
  const isUsed = [...config.snapshots.values()].some((part) => {
    return volumesOfSection(part).includes(drive.file);
  });
  if (isUsed && isSet(parameters["delete"])) {
    throw new PveError("you can't move a disk with snapshots and delete the source");
  }
}

function* moveWorker(call: Call, task: Task, drive: Drive): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const { disk: key = "", storage, format } = parameters;
  const worker: Worker = { node, log: task.log };
  const made: string[] = [];
  try {
    storageConfig(cluster, storage ?? "");
    const { logsTargets } = cluster.quirks;
    const from = parseVolumeId(drive.file).storage;
    const where = `from current storage '${from}' to target storage '${storage}'`;
    if (logsTargets) task.log(`copying volume '${drive.file}' ${where}`);
    task.log(`create full clone of drive ${key} (${drive.file})`);
    const moved = yield* copyVolume(call, worker, { drive, vmid, made, storage, format });
    const config = copyConfig(cluster.readGuest(node, vmid));
    config.main.set(key, printDrive(moved));
    const unused = isSet(parameters["delete"]) ? undefined : addUnused(config, drive.file);
    if (logsTargets && unused !== undefined) {
      task.log(`adding source volume '${drive.file}' as '${unused}' to config`);
    }
    yield* cluster.step("write config");
    cluster.writeGuest(node, vmid, config);
  } catch (error) {
    yield* cleanUp(cluster, worker, made);
    throw prefixed("storage migration failed: ", error);
  }
  // From here the config names the copy: a failure leaks the source, and only says so.
  if (!isSet(parameters["delete"])) return;
  if (cluster.quirks.logsTargets) {
    task.log(`removing source volume '${drive.file}' after successful copy`);
  }
  yield* free(cluster, worker, drive.file);
}

/** Hands a disk over to another guest of the node: its volume is renamed, no data moves. */
function* reassign(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const target = Number(parameters["target-vmid"]);
  const { disk: key = "" } = parameters;
  cluster.rights.demand(call.caller, `/vms/${target}`, { privileges: ["VM.Config.Disk"] });
  if (vmid === target) throw new PveError("cannot reassign disk to the same VM");
  const source = cluster.readGuest(node, vmid);
  demandSame(call);
  demandUnlocked(source);
  demandUnlocked(cluster.readGuest(node, target));
  driveOf(source, key);
  const targetKey = parameters["target-disk"] ?? key;
  if (cluster.readGuest(node, target).main.has(targetKey)) {
    throw new PveError(`Target disk key '${targetKey}' is already in use for VM ${target}`);
  }
  yield* cluster.step("fork");
  return fork(
    call,
    { type: "qmmove", id: `${vmid}-${key}>${target}-${targetKey}`.replaceAll(/[^\w-]/g, "-") },
    (task) =>
      locked(guestLock(node, vmid), () =>
        locked(guestLock(node, target), () =>
          reassignWorker(call, task, { key, target, targetKey }),
        ),
      ),
  );
}

function* reassignWorker(
  { cluster, node, parameters }: Call,
  task: Task,
  { key, target, targetKey }: { key: string; target: number; targetKey: string },
): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const from = copyConfig(cluster.readGuest(node, vmid));
  const drive = driveOf(from, key);
  const { storage, volume } = findVolume(cluster, node, drive.file);
  if (volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
  if (cluster.isRunning(node, vmid)) {
    throw new PveError(`cannot move disk '${key}' of a running VM to another one`);
  }
  yield* cluster.step("rename volume");
  volume.name = renamed(volume.name, vmid, target);
  volume.vmid = target;
  yield* cluster.step("write source config");
  from.main.delete(key);
  cluster.writeGuest(node, vmid, from);
  yield* cluster.step("write target config");
  const to = copyConfig(cluster.readGuest(node, target));
  to.main.set(targetKey, printDrive({ ...drive, file: `${storage.storage}:${fullName(volume)}` }));
  cluster.writeGuest(node, target, to);
  task.log(`renaming volume to ${volume.name}`);
}

function renamed(name: string, from: number, to: number): string {
  return name.replace(`${from}/`, `${to}/`).replace(`vm-${from}-`, `vm-${to}-`);
}
