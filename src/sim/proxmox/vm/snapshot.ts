import { copyConfig, type GuestConfig, type Section } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { hasFeature } from "../storage/features.ts";
import { parseVolumeId } from "../storage/names.ts";
import { copyInto, type Worker } from "../storage/operations.ts";
import { findVolume } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { memoryBytes } from "./hardware.ts";
import { typedSection } from "./read.ts";
import { removeSnapshot, rollbackWorker, snapshotOf } from "./rollback.ts";
import { startWorker } from "./start.ts";
import { makeState, runningMachine, stateStorage } from "./suspend.ts";

const notCopied = /^(lock|parent|snaptime|unused\d+|snapstate)$/;

/** GET …/snapshot */
export function* listSnapshots(call: Call): Process<unknown> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  yield* cluster.step("list snapshots");
  const rows = [...config.snapshots].map(([name, section]) => ({
    name,
    description: section.get("description") ?? "",
    snaptime: Number(section.get("snaptime") ?? "0"),
    vmstate: section.has("vmstate") ? 1 : 0,
    ...(section.has("parent") ? { parent: section.get("parent") } : {}),
  }));
  const current = {
    name: "current",
    description: "You are here!",
    digest: cluster.digest(node, vmid),
    running: cluster.isRunning(node, vmid) ? 1 : 0,
    ...(config.main.has("parent") ? { parent: config.main.get("parent") } : {}),
  };
  return [...rows, current];
}

/** POST …/snapshot */
export function* createSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { snapname: name = "" } = parameters;
  if (name === "current" || name === "pending") {
    throw new PveError(`unable to use snapshot name '${name}' (reserved name)`);
  }
  if (cluster.quirks.snapshotLoadsFirst) cluster.readGuest(node, vmidOf(call));
  yield* cluster.step("snapshot request");
  return fork(call, { type: "qmsnapshot" }, (task) => {
    return snapshotWorker(call, name, task);
  });
}

/** The config lock holds others off; the flock is taken only to write. */
function* snapshotWorker(call: Call, name: string, task: Task): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const worker: Worker = { node, log: task.log };
  const section = yield* locked(guestLock(node, vmid), () => prepare(call, name, worker));
  const done: string[] = [];
  try {
    if (section.has("vmstate")) yield* saveMemory(call, worker, section.get("vmstate") ?? "");
    for (const [key, drive] of drivesOf(section).filter(([, each]) => !isCdrom(each))) {
      yield* cluster.step(`snapshot ${key}`);
      task.log(`snapshotting 'drive-${key}' (${drive.file})`);
      const { volume } = findVolume(cluster, node, drive.file);
      if (volume !== undefined) volume.snapshots = [...(volume.snapshots ?? []), name];
      done.push(key);
    }
  } catch (error) {
    task.log("snapshot create failed: starting cleanup");
    yield* removeSnapshot(call, worker, { name, only: done });
    throw error;
  }
  yield* locked(guestLock(node, vmid), () => commit(call, name));
}

function* prepare(call: Call, name: string, worker: Worker): Process<Section> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  if (config.main.get("template") === "1")
    throw new PveError("you can't take a snapshot if it's a template");
  demandUnlocked(config);
  if (config.snapshots.has(name)) throw new PveError(`snapshot name '${name}' already used`);
  demandSnapshotable(call, config);
  const section: Section = new Map([...config.main].filter(([key]) => !notCopied.test(key)));
  section.delete("description");
  if (parameters["description"] !== undefined)
    section.set("description", parameters["description"]);
  section.set("snaptime", String(Math.floor(cluster.clock.nowMs() / 1000)));
  const parent = config.main.get("parent");
  if (parent !== undefined) section.set("parent", parent);
  section.set("snapstate", "prepare");
  if (isSet(parameters["vmstate"]) && cluster.isRunning(node, vmid)) {
    const storage = stateStorage(cluster, config);
    section.set("vmstate", yield* makeState(cluster, worker, { vmid, storage, name }));
    section.set("runningmachine", runningMachine(cluster));
    section.set("runningcpu", "kvm64,+ep");
  }
  config.snapshots.set(name, section);
  config.main.set("lock", "snapshot");
  cluster.writeGuest(node, vmid, config);
  return section;
}

function* saveMemory(
  { cluster, node, parameters }: Call,
  worker: Worker,
  target: string,
): Process<void> {
  const sizeBytes = memoryBytes(cluster.readGuest(node, Number(parameters["vmid"])));
  worker.log(`saving VM state and RAM using storage '${parseVolumeId(target).storage}'`);
  yield* copyInto(cluster, worker, { target, sizeBytes });
}

function* commit({ cluster, node, parameters }: Call, name: string): Process<void> {
  const vmid = Number(parameters["vmid"]);
  yield* cluster.step("commit snapshot");
  const config = copyConfig(cluster.readGuest(node, vmid));
  if (config.main.get("lock") !== "snapshot") throw new PveError("missing snapshot lock");
  snapshotOf(config, name).delete("snapstate");
  config.main.delete("lock");
  config.main.set("parent", name);
  cluster.writeGuest(node, vmid, config);
}

/** Files that hold no snapshots of their own, raw ones, rule the feature out. */
function demandSnapshotable({ cluster, node }: Call, config: GuestConfig): void {
  for (const [, drive] of drivesOf(config.main).filter(([, each]) => !isCdrom(each))) {
    const { storage, volume } = findVolume(cluster, node, drive.file);
    const canSnapshot =
      volume !== undefined && hasFeature(storage, volume, { feature: "snapshot" });
    if (!canSnapshot) throw new PveError("snapshot feature is not available");
  }
}

/** POST …/snapshot/{snapname}/rollback */
export function* rollback(call: Call): Process<unknown> {
  const { cluster, node, parameters, caller } = call;
  const vmid = vmidOf(call);
  yield* cluster.step("rollback request");
  const starts = isSet(parameters["start"]);
  if (starts) cluster.rights.demand(caller, `/vms/${vmid}`, { privileges: ["VM.PowerMgmt"] });
  return fork(call, { type: "qmrollback" }, function* (task) {
    yield* rollbackWorker(call, parameters["snapname"] ?? "", task.log);
    if (starts && !cluster.isRunning(node, vmid)) {
      fork({ ...call, hasNoWorker: false }, { type: "qmstart" }, () => {
        return startWorker(cluster, { node, vmid });
      });
    }
  });
}

/** DELETE …/snapshot/{snapname} */
export function* deleteSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { snapname: name = "" } = parameters;
  yield* cluster.step("delete snapshot request");
  return fork(call, { type: "qmdelsnapshot" }, (task) => {
    return removeSnapshot(call, { node, log: task.log }, { name });
  });
}

/** GET …/snapshot/{snapname}/config */
export function snapshotConfig(call: Call): unknown {
  const { cluster, node, parameters } = call;
  const config = cluster.readGuest(node, vmidOf(call));
  return typedSection(cluster, snapshotOf(config, parameters["snapname"] ?? ""));
}

/** PUT …/snapshot/{snapname}/config */
export function* describeSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  return yield* locked(guestLock(node, vmid), function* () {
    const config = copyConfig(cluster.readGuest(node, vmid));
    const section = snapshotOf(config, parameters["snapname"] ?? "");
    demandUnlocked(config);
    yield* cluster.step("describe snapshot");
    const { description } = parameters;
    if (description !== undefined) section.set("description", description);
    cluster.writeGuest(node, vmid, config);
    return null;
  });
}
