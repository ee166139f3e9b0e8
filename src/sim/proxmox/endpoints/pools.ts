import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";
import type { PoolState } from "../state.ts";
import { isOnNode } from "../storage/storages.ts";
import { guestStats, storageStats } from "./cluster.ts";

function poolOf({ cluster, parameters }: Call, prefix = ""): PoolState {
  const { poolid = "" } = parameters;
  const pool = cluster.state.pools.find((each) => each.poolid === poolid);
  if (pool === undefined) throw new PveError(`${prefix}pool '${poolid}' does not exist`);
  return pool;
}

function createPool({ cluster, parameters }: Call): unknown {
  const { poolid = "", comment } = parameters;
  if (cluster.state.pools.some((each) => each.poolid === poolid)) {
    throw new PveError(`create pool failed: pool '${poolid}' already exists`);
  }
  const pool = { poolid, vms: [], storages: [], ...(comment === undefined ? {} : { comment }) };
  cluster.state.pools.push(pool);
  return null;
}

function deletePool(call: Call): unknown {
  const pool = poolOf(call, "delete pool failed: ");
  const { cluster } = call;
  const guest = pool.vms.find((vmid) => cluster.nodeOfGuest(vmid) !== undefined);
  const member =
    guest === undefined ? pool.storages[0] && `storage ${pool.storages[0]}` : `VM ${guest}`;
  if (member !== undefined && member !== "") {
    throw new PveError(
      `delete pool failed: pool '${pool.poolid}' is not empty (contains ${member})`,
    );
  }
  cluster.state.pools = cluster.state.pools.filter((each) => each !== pool);
  return null;
}

function changePool(call: Call): unknown {
  const pool = poolOf(call, "update pools failed: ");
  const { vms, storage, comment } = call.parameters;
  const isRemoval = isSet(call.parameters["delete"]);
  if (comment !== undefined) pool.comment = comment;
  for (const vmid of splitList(vms ?? "").map(Number))
    changeMember(call, { pool, vmid, isRemoval });
  for (const id of splitList(storage ?? "")) {
    const others = pool.storages.filter((each) => each !== id);
    if (isRemoval && others.length === pool.storages.length) {
      throw new PveError(`update pools failed: Storage '${id}' is not a pool member`);
    }
    pool.storages = isRemoval ? others : [...others, id];
  }
  return null;
}

function changeMember(
  { cluster }: Call,
  { pool, vmid, isRemoval }: { pool: PoolState; vmid: number; isRemoval: boolean },
): void {
  const isMember = pool.vms.includes(vmid);
  if (isMember !== isRemoval) {
    const what = isRemoval ? "not" : "already";
    throw new PveError(`update pools failed: VM ${vmid} is ${what} a pool member`);
  }
  const other = cluster.state.pools.find((each) => each !== pool && each.vms.includes(vmid));
  if (other !== undefined && !isRemoval) {
    throw new PveError(`update pools failed: VM ${vmid} belongs already to pool '${other.poolid}'`);
  }
  pool.vms = isRemoval ? pool.vms.filter((each) => each !== vmid) : [...pool.vms, vmid];
}

function readPool(call: Call): unknown {
  const { cluster, parameters } = call;
  const pool = poolOf(call);
  const guests = pool.vms
    .filter((vmid) => cluster.nodeOfGuest(vmid) !== undefined)
    .map((vmid) => guestStats(cluster, vmid));
  const storages = pool.storages.flatMap((id) => storageMember(call, id));
  const { type } = parameters;
  return {
    members: [
      ...(type === undefined || type === "qemu" ? guests : []),
      ...(type === undefined || type === "storage" ? storages : []),
    ],
    ...(cluster.quirks.poolIdInPool ? { poolid: pool.poolid } : {}),
    ...(pool.comment === undefined ? {} : { comment: pool.comment }),
  };
}

/** A storage is shown as it is on the node that was asked, or else on the first that has it. */
function storageMember({ cluster, node: asked }: Call, id: string): object[] {
  const storage = cluster.state.storages.find((each) => each.storage === id);
  if (storage === undefined) return [];
  const nodes = cluster.state.nodes.filter(({ name }) => isOnNode(storage, name));
  const shown = nodes.find(({ name }) => name === asked) ?? nodes[0];
  return shown === undefined ? [] : [storageStats(cluster, storage, shown)];
}

/** GET /pools: the pools that the caller may see; one that is named, with its members. */
function listPools(call: Call): unknown {
  const { cluster, caller, parameters } = call;
  // The real one looks whether the caller may see a named pool, and then does not mind the answer.
  if (parameters["poolid"] !== undefined) return [readPool(call)];
  return cluster.state.pools
    .filter(({ poolid }) =>
      cluster.rights.may(caller, `/pool/${poolid}`, { privileges: ["Pool.Audit"] }),
    )
    .map(({ poolid, comment }) => ({ poolid, ...(comment === undefined ? {} : { comment }) }));
}

export const poolEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /pools": immediate(listPools),
  "POST /pools": immediate(createPool),
  "PUT /pools": immediate(changePool),
  "DELETE /pools": immediate(deletePool),
  "GET /pools/{poolid}": immediate(readPool),
  "PUT /pools/{poolid}": immediate(changePool),
  "DELETE /pools/{poolid}": immediate(deletePool),
};
