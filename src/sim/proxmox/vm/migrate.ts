import type { Cluster } from "../cluster.ts";
import { copyConfig } from "../config-file.ts";
import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import type { Volume } from "../state.ts";
import { findVolume, isShared, volumesOf } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { varied } from "../timing.ts";
import { volumesNamedBy } from "./drive.ts";
import { queueHa } from "./ha.ts";

/** GET …/migrate: whether and where to it could go. */
export function migrationState({ cluster, node, parameters }: Call): unknown {
  const vmid = Number(parameters["vmid"]);
  const others = cluster.state.nodes.filter((each) => each.name !== node && each.isOnline);
  const localDisks = localVolumes(cluster, node, vmid).map(({ volid, volume }) => {
    return { volid, size: volume.sizeBytes, cdrom: 0, is_unused: 0 };
  });
  return {
    running: cluster.isRunning(node, vmid) ? 1 : 0,
    allowed_nodes: others.map((each) => each.name),
    local_disks: localDisks,
    local_resources: [],
  };
}

/** POST …/migrate: the worker runs on the source; the config moves at its end. */
export function* migrateVm(call: Call): Process<unknown> {
  demandRootFor(call, "force", "migration_type", "migration_network");
  const { cluster, node, parameters } = call;
  const { target = "" } = parameters;
  if (target === node) throw parameterError({ target: "target is local node." });
  const vmid = vmidOf(call);
  demandUnlocked(cluster.readGuest(node, vmid));
  yield* cluster.step("migrate request");
  if (!cluster.node(target).isOnline) throw new PveError(`target node '${target}' is offline`);
  if (cluster.isRunning(node, vmid) && !isSet(parameters["online"])) {
    throw new PveError("can't migrate running VM without --online");
  }
  const queued = queueHa(call, { state: "started", type: "hamigrate" });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmigrate" }, (task) => {
    return locked(guestLock(node, vmid), () => migrateWorker(call, task, target));
  });
}

function* migrateWorker(call: Call, task: Task, target: string): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  demandUnlocked(config);
  const local = localVolumes(cluster, node, vmid);
  const isAllowed = isSet(parameters["with-local-disks"]) || !cluster.isRunning(node, vmid);
  if (local.length > 0 && !isAllowed)
    throw new PveError("can't migrate live: local disks attached");
  config.main.set("lock", "migrate");
  cluster.writeGuest(node, vmid, config);
  const copies: { readonly volumes: Volume[]; readonly copy: Volume }[] = [];
  try {
    for (const { volid, volume } of local) {
      task.log(`copying local disk image: ${volid}`);
      copies.push(yield* copyAcross(call, { volid, volume, target }));
    }
  } catch (error) {
    for (const { volumes, copy } of copies) volumes.splice(volumes.indexOf(copy), 1);
    config.main.delete("lock");
    cluster.writeGuest(node, vmid, config);
    throw error;
  }
  yield* cluster.step("move config");
  const machine = cluster.machine(vmid);
  config.main.delete("lock");
  cluster.setMachine(node, vmid, undefined);
  cluster.writeGuest(target, vmid, config);
  if (machine !== undefined) cluster.setMachine(target, vmid, machine);
  for (const { volid, volume } of local) {
    yield* cluster.step(`remove ${volid}`);
    const volumes = volumesOf(cluster, findVolume(cluster, node, volid).storage, node);
    const at = volumes.indexOf(volume);
    if (at >= 0) volumes.splice(at, 1);
  }
  task.log(`migration finished successfully`);
}

function* copyAcross(
  { cluster, node }: Call,
  { volid, volume, target }: { volid: string; volume: Volume; target: string },
): Process<{ volumes: Volume[]; copy: Volume }> {
  const { storage } = findVolume(cluster, node, volid);
  const volumes = volumesOf(cluster, storage, target);
  const copy: Volume = { ...volume, isPartial: true };
  if (volumes.some(({ name }) => name === volume.name)) {
    throw new PveError(
      `storage migration for '${volid}' to storage '${storage.storage}' failed - volume exists`,
    );
  }
  volumes.push(copy);
  const durationMs = (volume.usedBytes / 1024 ** 3) * cluster.timing.copyPerGibMs;
  yield { kind: "work", name: `copy ${volid}`, durationMs: varied(cluster.random, durationMs) };
  delete copy.isPartial;
  return { volumes, copy };
}

function localVolumes(
  cluster: Cluster,
  node: string,
  vmid: number,
): { readonly volid: string; readonly volume: Volume }[] {
  return [...volumesNamedBy(cluster.readGuest(node, vmid))].flatMap((volid) => {
    const { storage, volume } = findVolume(cluster, node, volid);
    return isShared(storage) || volume === undefined ? [] : [{ volid, volume }];
  });
}
