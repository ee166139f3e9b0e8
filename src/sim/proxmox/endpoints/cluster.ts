import { type Call, type Endpoint, immediate } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import type { Cluster } from "../cluster.ts";
import { isShared, spaceOf, isOnNode } from "../storage/storages.ts";
import type { NodeState } from "../state.ts";
import type { BroadcastRow } from "../status-board.ts";
import { taskRow } from "./task-rows.ts";

function mayAudit({ cluster, caller }: Call, path: string, privileges: string[]): boolean {
  return cluster.rights.may(caller, path, { privileges, isAny: true });
}

/** GET /cluster/resources: what the caller may see, as the last broadcasts told it. */
function resources(call: Call): unknown {
  const { type } = call.parameters;
  const rows: object[] = [];
  if (type === undefined || type === "vm") rows.push(...vmRows(call));
  if (type === undefined || type === "node") rows.push(...nodeRows(call));
  if (type === undefined || type === "storage") rows.push(...storageRows(call));
  return rows;
}

function vmRows(call: Call): object[] {
  const { cluster } = call;
  return Object.keys(cluster.state.guests)
    .map(Number)
    .filter((vmid) => mayAudit(call, `/vms/${vmid}`, ["VM.Audit"]))
    .map((vmid) => vmRow(cluster, vmid));
}

/** Existence, node, lock, tags and pool are live; all else is as old as the last broadcast. */
function vmRow(cluster: Cluster, vmid: number): object {
  const node = cluster.nodeOfGuest(vmid) ?? "";
  const isUp = cluster.findNode(node)?.isOnline === true;
  const told = isUp ? cluster.board.rowOf(vmid) : undefined;
  return { ...liveFields(cluster, node, vmid), ...broadcastFields(cluster, told) };
}

function liveFields(cluster: Cluster, node: string, vmid: number): object {
  const { main } = cluster.readGuest(node, vmid);
  const pool = cluster.state.pools.find(({ vms }) => vms.includes(vmid))?.poolid;
  return {
    id: `qemu/${vmid}`,
    vmid,
    node,
    type: "qemu",
    ...(main.has("lock") ? { lock: main.get("lock") } : {}),
    ...(main.has("tags") ? { tags: main.get("tags") } : {}),
    ...(pool === undefined ? {} : { pool }),
    ...haState(cluster, vmid),
  };
}

function broadcastFields(cluster: Cluster, told: BroadcastRow | undefined): object {
  if (told === undefined) return { status: "unknown" };
  const { startedMs, ...shown } = told;
  const uptime = startedMs === undefined ? 0 : cluster.clock.nowMs() - startedMs;
  const counters = { cpu: 0, disk: 0, diskread: 0, diskwrite: 0, mem: 0, netin: 0, netout: 0 };
  const isMeasured = cluster.quirks.memhost && startedMs !== undefined;
  return {
    ...shown,
    ...counters,
    uptime: Math.floor(uptime / 1000),
    ...(isMeasured ? { memhost: 0 } : {}),
  };
}

function haState(cluster: Cluster, vmid: number): object {
  const resource = cluster.state.ha[`vm:${vmid}`];
  return resource === undefined ? {} : { hastate: resource.state };
}

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
      .map((storage) => {
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
      }),
  );
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

/** "100" and "vm:100" are the same resource. */
function haName(sid: string): string {
  return sid.includes(":") ? sid : `vm:${sid}`;
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
  "GET /cluster/ha/resources": immediate(({ cluster }) =>
    Object.entries(cluster.state.ha).map(([sid, { state }]) => ({ sid, state, type: "vm" })),
  ),
  "POST /cluster/ha/resources": immediate(({ cluster, parameters }) => {
    const sid = haName(parameters["sid"] ?? "");
    if (cluster.state.ha[sid] !== undefined) {
      throw new PveError(`create resource failed: resource ID '${sid}' already defined`);
    }
    cluster.state.ha[sid] = { state: parameters["state"] ?? "started" };
    return null;
  }),
  "DELETE /cluster/ha/resources/{sid}": immediate(({ cluster, parameters }) => {
    const sid = haName(parameters["sid"] ?? "");
    if (cluster.state.ha[sid] === undefined) throw new PveError(`no such resource '${sid}'`);
    Reflect.deleteProperty(cluster.state.ha, sid);
    return null;
  }),
  "GET /cluster/ha/status/current": immediate(({ cluster }) =>
    Object.entries(cluster.state.ha).map(([sid, { state }]) => ({
      id: `service:${sid}`,
      sid,
      state,
      type: "service",
    })),
  ),
};
