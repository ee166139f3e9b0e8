import { PveError, messageOf } from "../errors.ts";
import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { locked, type Process } from "../process.ts";
import { demandUnused, free, type Worker } from "../storage/operations.ts";
import {
  findVolume,
  fullName,
  hasContent,
  isOnNode,
  storageConfig,
  volumesOf,
} from "../storage/storages.ts";
import { parseVolumeId, parseVolumeName } from "../storage/names.ts";
import type { Task } from "../tasks.ts";
import { volumesNamedBy } from "./drive.ts";

/** DELETE /nodes/{node}/qemu/{vmid} */
export function* destroyVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  yield* cluster.step("delete request");
  demandDestroyable(call, vmid);
  return fork(call, { type: "qmdestroy" }, (task) => {
    return locked(guestLock(node, vmid), () => destroyWorker(call, task, vmid));
  });
}

function demandDestroyable({ cluster, node, parameters }: Call, vmid: number): void {
  const config = cluster.readGuest(node, vmid);
  if (config.main.get("protection") === "1") {
    throw new PveError(`can't remove VM ${vmid} - protection mode enabled`);
  }
  if (cluster.state.ha[`vm:${vmid}`] !== undefined && !isSet(parameters["purge"])) {
    const why = "used in HA resources and purge parameter not set.";
    throw new PveError(`unable to remove VM ${vmid} - ${why}`);
  }
  if (cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} is running - destroy failed`);
}

function* destroyWorker(call: Call, task: Task, vmid: number): Process<void> {
  const { cluster, node, parameters } = call;
  const worker: Worker = { node, log: task.log };
  const config = cluster.readGuest(node, vmid);
  // A suspended guest may be destroyed; every other lock is in the way.
  const isSuspended = config.main.get("lock") === "suspended";
  demandUnlocked(config, isSet(parameters["skiplock"]) || isSuspended);
  if (cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} is running - destroy failed`);
  const volumes = [...volumesNamedBy(config)];
  for (const volid of volumes) demandFreeable(call, volid);
  for (const volid of volumes) yield* freeOwn({ call, task, worker }, vmid, volid);
  if (isSet(parameters["destroy-unreferenced-disks"])) yield* freeAll({ call, task, worker }, vmid);
  yield* cluster.step("write destroyed");
  cluster.writeText(node, vmid, "lock: destroyed\n");
  yield* cluster.step("remove from access lists and pools");
  forget(call, vmid);
  if (isSet(parameters["purge"])) {
    task.log(`purging VM ${vmid} from related configurations..`);
    Reflect.deleteProperty(cluster.state.ha, `vm:${vmid}`);
  }
  yield* cluster.step("remove config");
  cluster.removeGuest(vmid);
}

/** A base that linked clones stand on stops all of it; before 9.2 a vanished storage does too. */
function demandFreeable({ cluster, node }: Call, volid: string): void {
  try {
    demandUnused(cluster, node, volid);
  } catch (error) {
    if (!cluster.quirks.destroyWarns || /still in use/.test(messageOf(error))) throw error;
  }
}

interface Destruction {
  readonly call: Call;
  readonly task: Task;
  readonly worker: Worker;
}

/** Frees a volume if it is the guest's own. A failure is a warning, and the volume is leaked. */
function* freeOwn({ call, task, worker }: Destruction, vmid: number, volid: string): Process<void> {
  const { cluster, node } = call;
  try {
    const { storage, name } = parseVolumeId(volid);
    const isOwn = parseVolumeName(storageConfig(cluster, storage), name).vmid === vmid;
    if (!isOwn) return;
    findVolume(cluster, node, volid);
  } catch (error) {
    if (!cluster.quirks.destroyWarns) throw error;
    task.warn(`failed to get path and owner of volume '${volid}': ${messageOf(error)}`);
    return;
  }
  try {
    yield* free(cluster, worker, volid);
  } catch (error) {
    const text = `Could not remove disk '${volid}', check manually: ${messageOf(error)}`;
    if (cluster.quirks.destroyWarns) task.warn(text);
    else task.log(text);
  }
}

/** Everything with this id in its name, on every storage that the node can use. */
function* freeAll(destruction: Destruction, vmid: number): Process<void> {
  const { cluster, node } = destruction.call;
  const storages = cluster.state.storages.filter((storage) => {
    return storage.disable !== 1 && hasContent(storage, "images") && isOnNode(storage, node);
  });
  for (const storage of storages) {
    const own = volumesOf(cluster, storage, node).filter((volume) => volume.vmid === vmid);
    for (const volume of own) {
      yield* freeOwn(destruction, vmid, `${storage.storage}:${fullName(volume)}`);
    }
  }
}

function forget({ cluster }: Call, vmid: number): void {
  cluster.state.acl = cluster.state.acl.filter(({ path }) => path !== `/vms/${vmid}`);
  for (const pool of cluster.state.pools) pool.vms = pool.vms.filter((each) => each !== vmid);
}
