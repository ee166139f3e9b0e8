import type { Cluster } from "../cluster.ts";
import { copyConfig, type GuestConfig } from "../config-file.ts";
import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { isFileBased, parseVolumeId } from "../storage/names.ts";
import { allocate, copyInto, free, type Worker } from "../storage/operations.ts";
import { isShared, storageConfig } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { memoryBytes } from "./hardware.ts";
import { startWorker } from "./start.ts";

/** POST …/status/suspend: the machine pauses, or its memory is saved and QEMU ends. */
export function* suspendVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("power request");
  if (!cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} not running`);
  if (!isSet(parameters["todisk"])) {
    return fork(call, { type: "qmpause" }, () => setPaused(call, true));
  }
  const storage = demandHibernation(call);
  return fork(call, { type: "qmsuspend" }, (task) => hibernate(call, task, storage));
}

/** Throws unless the memory can be saved; tells on which storage. */
function demandHibernation(call: Call): string {
  const { cluster, node, caller, parameters } = call;
  const vmid = vmidOf(call);
  if (cluster.state.ha[`vm:${vmid}`] !== undefined) {
    throw new PveError("Cannot suspend HA managed VM to disk");
  }
  cluster.rights.demand(caller, `/vms/${vmid}`, { privileges: ["VM.Config.Disk"] });
  const config = cluster.readGuest(node, vmid);
  if ([...config.main.keys()].some((key) => /^hostpci\d+$/.test(key))) {
    const why = "which lack the possibility to save/restore their internal state";
    throw new PveError(`cannot suspend VM to disk due to passed-through PCI device(s), ${why}`);
  }
  const storage = parameters["statestorage"] ?? stateStorage(cluster, config);
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(caller, `/storage/${storage}`, { privileges });
  return storage;
}

/** Where memory is saved: where it is set, else beside the disks, shared ones first. */
export function stateStorage(cluster: Cluster, config: GuestConfig): string {
  const chosen = config.main.get("vmstatestorage");
  if (chosen !== undefined) return chosen;
  const used = drivesOf(config.main)
    .filter(([, drive]) => !isCdrom(drive) && drive.file.includes(":"))
    .map(([, drive]) => storageConfig(cluster, parseVolumeId(drive.file).storage));
  // Files are preferred to block devices, and the last one named to the first.
  const best = (storages: typeof used): string | undefined =>
    (storages.findLast(isFileBased) ?? storages[0])?.storage;
  const local = best(used.filter((storage) => !isShared(storage)));
  return best(used.filter(isShared)) ?? local ?? "local";
}

const driverStateBytes = 500 * 1024 ** 2;

/** Makes the volume for a saved memory, under its fixed name. */
export function* makeState(
  cluster: Cluster,
  worker: Worker,
  { vmid, storage, name }: { vmid: number; storage: string; name: string },
): Process<string> {
  const config = cluster.readGuest(worker.node, vmid);
  const isFile = isFileBased(storageConfig(cluster, storage));
  return yield* allocate(cluster, worker, {
    storage,
    vmid,
    format: "raw",
    sizeBytes: 2 * memoryBytes(config) + driverStateBytes,
    file: `vm-${vmid}-state-${name}${isFile ? ".raw" : ""}`,
  });
}

export function runningMachine(cluster: Cluster): string {
  return `pc-i440fx-${cluster.quirks.qemuVersion.replace(/\.\d+$/, "")}+pve0`;
}

/** The lock tells how far it came: "suspending" until the memory is saved, then "suspended". */
function* hibernate(call: Call, task: Task, storage: string): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const worker: Worker = { node, log: task.log };
  const date = new Date(cluster.nodeTimeMs(node)).toISOString().slice(0, 10);
  const state = yield* locked(guestLock(node, vmid), function* () {
    const config = cluster.readGuest(node, vmid);
    const lock = config.main.get("lock");
    demandUnlocked(config, isSet(call.parameters["skiplock"]) || lock === "backup");
    if (lock === "backup") throw new PveError("cannot suspend to disk during backup");
    const volid = yield* makeState(cluster, worker, { vmid, storage, name: `suspend-${date}` });
    const changed = copyConfig(cluster.readGuest(node, vmid));
    changed.main.set("lock", "suspending");
    changed.main.set("vmstate", volid);
    changed.main.set("runningmachine", runningMachine(cluster));
    changed.main.set("runningcpu", "kvm64,+ep");
    cluster.writeGuest(node, vmid, changed);
    return volid;
  });
  const failure = yield* saveMemory(call, worker, state);
  yield* locked(guestLock(node, vmid), () => endHibernation(call, worker, { state, failure }));
}

/** The failure, if there was one. */
function* saveMemory(call: Call, worker: Worker, target: string): Process<Error | undefined> {
  const { cluster, node } = call;
  try {
    const sizeBytes = memoryBytes(cluster.readGuest(node, vmidOf(call)));
    yield* copyInto(cluster, worker, { target, sizeBytes });
    worker.log("State saved, quitting");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new PveError(String(error));
  }
}

function* endHibernation(
  { cluster, node, parameters }: Call,
  worker: Worker,
  { state, failure }: { readonly state: string; readonly failure: Error | undefined },
): Process<void> {
  const vmid = Number(parameters["vmid"]);
  if (failure !== undefined) {
    yield* free(cluster, worker, state);
    const config = copyConfig(cluster.readGuest(node, vmid));
    for (const key of ["vmstate", "runningmachine", "runningcpu"]) config.main.delete(key);
    // The lock stays, to show that something went wrong.
    cluster.writeGuest(node, vmid, config);
    throw failure;
  }
  const config = copyConfig(cluster.readGuest(node, vmid));
  if (config.main.get("lock") !== "suspending") throw new PveError("lock changed unexpectedly");
  cluster.setMachine(node, vmid, undefined);
  yield* cluster.step("QEMU ended");
  config.main.set("lock", "suspended");
  cluster.writeGuest(node, vmid, config);
}

/** POST …/status/resume: goes on, from a pause or from what was saved. */
export function* resumeVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "nocheck");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const lock = cluster.readGuest(node, vmid).main.get("lock");
  yield* cluster.step("power request");
  const isSaved = lock === "suspended";
  if (!isSaved && !cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} not running`);
  return fork(call, { type: "qmresume" }, (task) => {
    if (!isSaved) return setPaused(call, false);
    const skipsLock = isSet(parameters["skiplock"]);
    return startWorker(cluster, { node, vmid }, { skipsLock, log: task.log });
  });
}

function setPaused({ cluster, node, parameters }: Call, isPaused: boolean): Process<void> {
  const vmid = Number(parameters["vmid"]);
  return locked(guestLock(node, vmid), function* () {
    const config = cluster.readGuest(node, vmid);
    yield* cluster.step("pause");
    const machine = cluster.machine(vmid);
    if (machine === undefined || machine.isPaused === isPaused) return;
    const isBackup = config.main.get("lock") === "backup";
    demandUnlocked(config, isSet(parameters["skiplock"]) || isBackup);
    cluster.setMachine(node, vmid, { ...machine, isPaused });
  });
}
