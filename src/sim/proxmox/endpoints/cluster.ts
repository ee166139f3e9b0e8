import { type Call, type Endpoint, immediate } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import type { Cluster } from "../cluster.ts";
import { isShared, spaceOf, isOnNode } from "../storage/storages.ts";
import type { NodeState, StorageConfig } from "../state.ts";
import type { BroadcastRow } from "../status-board.ts";
import { haStateOf } from "../vm/ha.ts";
import { taskRow } from "./task-rows.ts";

function mayAudit({ cluster, caller }: Call, path: string, privileges: string[]): boolean {
  return cluster.rights.may(caller, path, { privileges, isAny: true });
}

/** GET /cluster/resources: what the caller may see, as the last broadcasts told it. */
function resources(call: Call): unknown {
  const { type } = call.parameters;
  const rows: object[] = [];
  if (type === undefined) rows.push(...poolRows(call));
  if (type === undefined || type === "vm") rows.push(...vmRows(call));
  if (type === undefined || type === "node") rows.push(...nodeRows(call));
  if (type === undefined || type === "storage") rows.push(...storageRows(call));
  return rows;
}

/** Read from source, pve-manager stable-7 to master: figures of running guests are left out. */
function poolRows(call: Call): object[] {
  return call.cluster.state.pools
    .filter(({ poolid }) => mayAudit(call, `/pool/${poolid}`, ["Pool.Audit"]))
    .map(({ poolid }) => ({ id: `/pool/${poolid}`, pool: poolid, type: "pool" }));
}

function vmRows(call: Call): object[] {
  const { cluster, caller } = call;
  const isSeen = cluster.rights.mayOnGuests(caller, { privileges: ["VM.Audit"] });
  const pools = cluster.rights.poolsOfGuests();
  const hasManaged = Object.keys(cluster.state.ha).length > 0;
  const rows: object[] = [];
  for (const id in cluster.state.guests) {
    const vmid = Number(id);
    if (!isSeen(vmid)) continue;
    const hastate = hasManaged ? haStateOf(cluster, vmid) : undefined;
    rows.push(vmRow(cluster, vmid, { pool: pools.get(vmid), hastate }));
  }
  return rows;
}

/** Existence, node, lock, tags and pool are live; all else is as old as the last broadcast. */
function vmRow(
  cluster: Cluster,
  vmid: number,
  { pool, hastate }: { pool: string | undefined; hastate: string | undefined },
): object {
  const { main } = cluster.readGuest(cluster.nodeOfGuest(vmid) ?? "", vmid);
  const row = guestStats(cluster, vmid);
  const lock = main.get("lock");
  const tags = main.get("tags");
  if (lock !== undefined) row["lock"] = lock;
  if (tags !== undefined) row["tags"] = tags;
  if (pool !== undefined) row["pool"] = pool;
  if (hastate !== undefined) row["hastate"] = hastate;
  return row;
}

/** A guest as lists of the whole cluster show it: as its node told last, if it tells anything. */
export function guestStats(cluster: Cluster, vmid: number): Record<string, unknown> {
  const node = cluster.nodeOfGuest(vmid) ?? "";
  const isUp = cluster.findNode(node)?.isOnline === true;
  const told = isUp ? cluster.board.rowOf(vmid) : undefined;
  const row: Record<string, unknown> = { id: `qemu/${vmid}`, vmid, node, type: "qemu" };
  if (told === undefined) row["status"] = "unknown";
  else addBroadcast(cluster, row, told);
  return row;
}

function addBroadcast(cluster: Cluster, row: Record<string, unknown>, told: BroadcastRow): void {
  const { startedMs } = told;
  const uptimeMs = startedMs === undefined ? 0 : cluster.clock.nowMs() - startedMs;
  // One by one, for there may be thousands of rows: copying objects takes several times as long.
  row["name"] = told.name;
  row["status"] = told.status;
  row["maxcpu"] = told.maxcpu;
  row["maxmem"] = told.maxmem;
  row["maxdisk"] = told.maxdisk;
  row["template"] = told.template;
  for (const name of usage) row[name] = 0;
  row["uptime"] = Math.floor(uptimeMs / 1000);
  if (cluster.quirks.memhost && startedMs !== undefined) row["memhost"] = 0;
}

const usage = ["cpu", "disk", "diskread", "diskwrite", "mem", "netin", "netout"];

function nodeRows(call: Call): object[] {
  return call.cluster.state.nodes.map((node) => nodeRow(call, node, "uptime"));
}

/** A node in lists; what is behind a right is left out without it. */
export function nodeRow(call: Call, node: NodeState, ...extra: string[]): object {
  const base = {
    id: `node/${node.name}`,
    node: node.name,
    type: "node",
    status: node.isOnline ? "online" : "offline",
  };
  const isDetailed = mayAudit(call, `/nodes/${node.name}`, ["Sys.Audit"]);
  if (!node.isOnline || !isDetailed) return base;
  return {
    ...base,
    cpu: 0.02,
    maxcpu: node.cpus,
    mem: node.memoryBytes / 8,
    maxmem: node.memoryBytes,
    disk: 8 * 1024 ** 3,
    maxdisk: 64 * 1024 ** 3,
    level: "",
    uptime: Math.floor((call.cluster.clock.nowMs() - node.bootedMs) / 1e3),
    ...(extra.includes("fingerprint") ? { ssl_fingerprint: "00:00" } : {}),
  };
}

function storageRows(call: Call): object[] {
  const { cluster } = call;
  return cluster.state.nodes.flatMap((node) =>
    cluster.state.storages
      .filter((storage) => isOnNode(storage, node.name))
      .filter(({ storage }) =>
        mayAudit(call, `/storage/${storage}`, ["Datastore.Audit", "Datastore.AllocateSpace"]),
      )
      .map((storage) => storageStats(cluster, storage, node)),
  );
}

/** A storage of a node as lists of the whole cluster show it. */
export function storageStats(cluster: Cluster, storage: StorageConfig, node: NodeState): object {
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, node.name);
  return {
    id: `storage/${node.name}/${storage.storage}`,
    node: node.name,
    type: "storage",
    storage: storage.storage,
    plugintype: storage.type,
    content: storage.content,
    shared: isShared(storage) ? 1 : 0,
    status: node.isOnline && storage.disable !== 1 ? "available" : "unknown",
    disk: usedBytes,
    maxdisk: totalBytes,
  };
}

/** GET /cluster/status. A single node has no entry for a cluster. */
function status({ cluster, node: local }: Call): unknown {
  const { nodes, clusterName } = cluster.state;
  const rows = nodes.map((node, index) => ({
    id: `node/${node.name}`,
    name: node.name,
    type: "node",
    ip: node.address,
    level: "",
    nodeid: nodes.length > 1 ? index + 1 : 0,
    online: node.isOnline ? 1 : 0,
    local: node.name === local ? 1 : 0,
  }));
  if (nodes.length === 1) return rows;
  const quorate = cluster.isQuorate() ? 1 : 0;
  const entry = {
    id: "cluster",
    type: "cluster",
    name: clusterName,
    nodes: nodes.length,
    quorate,
    version: nodes.length,
  };
  return [entry, ...rows];
}

const idRange = { from: 100, below: 1_000_000 };

/** GET /cluster/nextid: a look, no reservation. It tells of every guest, whoever may see it. */
function nextId({ cluster, parameters }: Call): unknown {
  const { vmid } = parameters;
  if (vmid !== undefined) {
    if (cluster.nodeOfGuest(Number(vmid)) === undefined) return vmid;
    throw parameterError({ vmid: `VM ${vmid} already exists` });
  }
  for (let id = idRange.from; id < idRange.below; id++) {
    if (cluster.nodeOfGuest(id) === undefined) return String(id);
  }
  throw new PveError(
    `unable to get any free VMID in range [${idRange.from}, ${idRange.below - 1}]`,
  );
}

const finishedPerNode = 25;

/**
 * GET /cluster/tasks. The token is cut off the task's user before it is compared with the caller:
 * a token without Sys.Audit sees nothing, not even its own.
 */
function clusterTasks(call: Call): unknown {
  const { cluster, caller } = call;
  const isAuditor = mayAudit(call, "/", ["Sys.Audit"]);
  return cluster.state.nodes.flatMap((node) => {
    const running = node.tasks.filter(({ endMs }) => endMs === undefined);
    const finished = node.tasks.filter(({ endMs }) => endMs !== undefined).slice(-finishedPerNode);
    return [...finished, ...running]
      .filter((task) => isAuditor || task.user.split("!")[0] === caller.id)
      .map((task) => taskRow(task, { isSaved: true }));
  });
}

export const clusterEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /version": immediate(({ cluster }) => {
    const { version, repoId } = cluster.quirks;
    return { version, release: cluster.state.release, repoid: repoId };
  }),
  "GET /cluster": immediate(() =>
    ["resources", "status", "nextid", "tasks"].map((name) => ({ name })),
  ),
  "GET /cluster/resources": immediate(resources),
  "GET /cluster/status": immediate(status),
  "GET /cluster/nextid": immediate(nextId),
  "GET /cluster/tasks": immediate(clusterTasks),
  "GET /cluster/options": immediate(() => ({ keyboard: "en-us" })),
};
