import { copyConfig, type GuestConfig } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { messageOf, parameterError, PveError, prefixed } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { formatOf, parseVolumeId } from "../storage/names.ts";
import { free, makeBase, type Worker } from "../storage/operations.ts";
import { findVolume, storageConfig } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { addUnused } from "./apply.ts";
import { copyVolume } from "./clone.ts";
import { cleanUp } from "./create.ts";
import { type Drive, isCdrom, parseDrive, printDrive, volumesOfSection } from "./drive.ts";
import { reassignDisk } from "./reassign.ts";
import { demandImages } from "./rights.ts";

/** POST …/move_disk: to another storage or format, or to another guest. */
export function* moveDisk(call: Call): Process<unknown> {
  const { parameters } = call;
  const { storage, "target-vmid": target } = parameters;
  if (storage === undefined && target === undefined) {
    const why = "both 'storage' and 'target-vmid' missing, either needs to be set";
    throw parameterError({ storage: why, "target-vmid": why });
  }
  if (storage !== undefined && target !== undefined) {
    const why = "either set 'storage' or 'target-vmid', but not both";
    throw parameterError({ storage: why, "target-vmid": why });
  }
  yield* call.cluster.step("move request");
  return target === undefined ? moveToStorage(call) : reassignDisk(call);
}

function moveToStorage(call: Call): string {
  const { cluster, node, parameters } = call;
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(call.caller, `/storage/${parameters["storage"]}`, { privileges });
  demandMovable(call);
  return fork(call, { type: "qmmove" }, (task) => {
    return locked(guestLock(node, vmidOf(call)), () => moveWorker(call, task, demandMovable(call)));
  });
}

/** Throws unless it can be moved: looked at when it is asked for, and again under the lock. */
function demandMovable(call: Call): Drive {
  const { cluster, node, parameters } = call;
  const { disk: key = "", storage = "" } = parameters;
  const config = cluster.readGuest(node, vmidOf(call));
  demandUnlocked(config);
  demandSame(call);
  const drive = driveOf(config, key);
  demandOther(call, drive, storage);
  if (cluster.quirks.checksTargetStorage) demandImages(call, storage);
  demandNoSnapshots(call, config, drive);
  return drive;
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
  const worker: Worker = { node, log: task.log };
  const made: string[] = [];
  try {
    yield* copyDisk(call, worker, { drive, made });
  } catch (error) {
    yield* cleanUp(cluster, worker, made);
    throw prefixed("storage migration failed: ", error);
  }
  // From here the config names the copy: a failure leaks the source, and only says so.
  if (!isSet(parameters["delete"])) return;
  if (cluster.quirks.logsTargets) {
    task.log(`removing source volume '${drive.file}' after successful copy`);
  }
  try {
    yield* free(cluster, worker, drive.file);
  } catch (error) {
    task.log(messageOf(error));
  }
}

function* copyDisk(
  call: Call,
  worker: Worker,
  { drive, made }: { readonly drive: Drive; readonly made: string[] },
): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const { disk: key = "", storage, format } = parameters;
  storageConfig(cluster, storage ?? "");
  const say = cluster.quirks.logsTargets ? worker.log : () => undefined;
  const from = parseVolumeId(drive.file).storage;
  say(
    `copying volume '${drive.file}' from current storage '${from}' to target storage '${storage}'`,
  );
  worker.log(`create full clone of drive ${key} (${drive.file})`);
  const moved = yield* copyVolume(call, worker, { drive, vmid, made, storage, format });
  const config = copyConfig(cluster.readGuest(node, vmid));
  config.main.set(key, printDrive(moved));
  const unused = isSet(parameters["delete"]) ? undefined : addUnused(config, drive.file);
  if (config.main.get("template") === "1") {
    const file = makeBase(cluster, node, moved.file);
    config.main.set(key, printDrive({ ...moved, file }));
  }
  if (unused !== undefined) say(`adding source volume '${drive.file}' as '${unused}' to config`);
  yield* cluster.step("write config");
  cluster.writeGuest(node, vmid, config);
  const [source, copy] = [drive, moved].map(({ file }) => findVolume(cluster, node, file).volume);
  if (source !== undefined && copy !== undefined) cluster.heirs.set(source, copy);
}
