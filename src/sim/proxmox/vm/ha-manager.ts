import type { Cluster } from "../cluster.ts";
import { guestLock } from "../endpoint.ts";
import { locked, type Process } from "../process.ts";
import type { HaResource } from "../state.ts";
import { forkTask, type Task } from "../tasks.ts";
import { shutDown } from "./machine.ts";
import { migrateGuest } from "./migrate.ts";
import { stopWorker } from "./power.ts";
import { startWorker } from "./start.ts";

/** How often the manager looks. */
const cycleMs = 10_000;
/** How long a node must be gone until its guests are taken over: it has fenced itself by then. */
const fenceMs = 60_000;

/**
 * The high availability manager: it does later what calls only queue, restarts what ended, and
 * takes guests over from a node that is gone. It sleeps while nothing is left to do, so that a
 * cluster at rest has no timers.
 */
export function watchHa(cluster: Cluster): void {
  let isAwake = false;
  const wake = (): void => {
    if (isAwake || Object.keys(cluster.state.ha).length === 0) return;
    isAwake = true;
    cluster.clock.after(cycleMs, () => {
      isAwake = false;
      if (!lookAtAll(cluster)) wake();
    });
  };
  cluster.wakeHa = wake;
  wake();
}

function lookAtAll(cluster: Cluster): boolean {
  let isAtRest = true;
  for (const [sid, resource] of Object.entries(cluster.state.ha)) {
    if (!look(cluster, Number(sid.slice("vm:".length)), resource)) isAtRest = false;
  }
  return isAtRest;
}

/** Does what is due for one resource; tells whether nothing is left to do. */
function look(cluster: Cluster, vmid: number, resource: HaResource): boolean {
  const node = cluster.nodeOfGuest(vmid);
  if (node === undefined || resource.state === "ignored") return true;
  if (!cluster.isQuorate()) return false;
  if (cluster.findNode(node)?.isOnline !== true) return takeOver(cluster, vmid, resource);
  delete resource.lostMs;
  if (isBusy(cluster, node, vmid)) return false;
  const { target } = resource;
  if (target === node) delete resource.target;
  else if (target !== undefined) return move(cluster, { node, vmid, target }, resource);
  return setPower(cluster, { node, vmid }, resource);
}

function move(
  cluster: Cluster,
  { node, vmid, target }: { node: string; vmid: number; target: string },
  resource: HaResource,
): boolean {
  delete resource.target;
  const isOnline = cluster.isRunning(node, vmid);
  fork(cluster, { node, vmid, type: "qmigrate" }, ({ log }) => {
    return migrateGuest({ cluster, node, vmid, target, log }, { isOnline });
  });
  return false;
}

function setPower(
  cluster: Cluster,
  place: { node: string; vmid: number },
  resource: HaResource,
): boolean {
  const isRunning = cluster.isRunning(place.node, place.vmid);
  if (resource.state !== "started") return !isRunning || stop(cluster, place, resource);
  if (!isRunning) return restart(cluster, place, resource);
  delete resource.failures;
  return true;
}

function isBusy(cluster: Cluster, node: string, vmid: number): boolean {
  return cluster.node(node).tasks.some(({ id, endMs, type }) => {
    return (
      endMs === undefined && id === String(vmid) && /^qm(start|stop|shutdown|igrate)$/.test(type)
    );
  });
}

function restart(
  cluster: Cluster,
  { node, vmid }: { node: string; vmid: number },
  resource: HaResource,
): boolean {
  if ((resource.failures ?? 0) > (resource.max_restart ?? 1)) return true;
  resource.failures = (resource.failures ?? 0) + 1;
  fork(cluster, { node, vmid, type: "qmstart" }, ({ log }) => {
    return startWorker(cluster, { node, vmid }, { log });
  });
  return false;
}

function stop(
  cluster: Cluster,
  { node, vmid }: { node: string; vmid: number },
  { stopTimeoutMs = 60_000 }: HaResource,
): boolean {
  const place = { cluster, node, vmid };
  const type = stopTimeoutMs === 0 ? "qmstop" : "qmshutdown";
  fork(cluster, { node, vmid, type }, ({ log }) => {
    const options = { timeoutMs: stopTimeoutMs, isForced: true, skipsLock: false, log };
    return locked(guestLock(node, vmid), () => {
      return stopTimeoutMs === 0 ? stopWorker(place) : shutDown(place, options);
    });
  });
  return false;
}

/** Moves the configuration of a guest whose node is gone to one that is there. */
function takeOver(cluster: Cluster, vmid: number, resource: HaResource): boolean {
  const nowMs = cluster.clock.nowMs();
  resource.lostMs ??= nowMs;
  if (nowMs - resource.lostMs < fenceMs) return false;
  const heir = cluster.state.nodes.find(({ isOnline }) => isOnline);
  const file = cluster.state.guests[String(vmid)];
  if (heir === undefined || file === undefined) return false;
  delete resource.lostMs;
  // Only the lock of a backup is removed; every other one stays in the way.
  cluster.writeText(heir.name, vmid, file.text.replaceAll(/^lock: (backup|mounted)\n/gm, ""));
  return false;
}

function fork(
  cluster: Cluster,
  { node, vmid, type }: { node: string; vmid: number; type: string },
  body: (task: Task) => Process<void>,
): void {
  forkTask(cluster, { node, type, id: String(vmid), user: "root@pam" }, body);
}
