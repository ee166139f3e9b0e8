import { guard } from "../../kernel/guard.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Answer,
  Inventory,
  InventoryMachine,
  InventoryNode,
  InventoryStorage,
} from "../../hypervisor/index.ts";
import { powerOf } from "./config-reader.ts";
import { epochsOf } from "./epoch.ts";
import { readFailureOf } from "./errors.ts";
import { lockKind } from "./locks.ts";
import { storageContents } from "./storages.ts";
import type { PveApi } from "./wire/api.ts";
import { pathPart } from "./wire/wire.ts";
import { isSet, rowsOf, textOf } from "./wire/rows.ts";

/**
 * Everything in one call, which a node answers from memory. Existence, node, lock and tags are of
 * this moment; names and power lag by up to ten seconds. Rows that the token may not see are left
 * out in silence, so a missing row is never more than a reason to look.
 */
export async function readInventory(api: PveApi): Promise<Answer<Inventory>> {
  const result = await api.get("/cluster/resources");
  if (result.type !== "data") return failed(readFailureOf(result, "look at the cluster"));
  const rows = rowsOf(result.data);
  const nodes = await Promise.all(ofType(rows, "node").map((row) => nodeOf(api, row)));
  const missing = nodes.filter(({ health }) => health !== "Healthy").map(({ name }) => name);
  return answered({
    machines: rows.filter(isGuest).map(machineOf),
    nodes,
    storages: ofType(rows, "storage").map(storageOf),
    isComplete:
      guard("inventory-nodes-healthy", missing.length === 0) &&
      guard("inventory-has-nodes", nodes.length > 0),
    missing: missing.map((name) => `the node ${name}`),
    epochs: epochsOf(rows),
  });
}

/** A lagging list is not a dead node: one that is not shown as online is asked itself. */
async function nodeOf(api: PveApi, row: JsonObject): Promise<InventoryNode> {
  const name = textOf(row, "node");
  if (row["status"] === "online") return { ...nodeFigures(row), name, health: "Healthy" };
  const asked = await api.get(`/nodes/${pathPart(name)}/status`);
  if (asked.type === "data") return { ...nodeFigures(row), name, health: "Healthy" };
  const failure = readFailureOf(asked, `ask the node ${name}`);
  const health = failure.category === "NodeUnhealthy" ? "Unhealthy" : "Unknown";
  return { name, health, detail: failure.cause ?? failure.message };
}

function nodeFigures(row: JsonObject): Pick<InventoryNode, "cpus" | "memoryBytes"> {
  return {
    ...figure("cpus", row["maxcpu"]),
    ...figure("memoryBytes", row["maxmem"]),
    ...figure("memoryUsedBytes", row["mem"]),
  };
}

function machineOf(row: JsonObject): InventoryMachine {
  const { name, lock, pool, template, type } = row;
  const kind = template === 1 ? "Template" : "Machine";
  return {
    externalId: textOf(row, "vmid"),
    node: textOf(row, "node"),
    kind: type === "qemu" ? kind : "Other",
    ...(typeof name === "string" ? { name } : {}),
    power: powerOf(row),
    ...(typeof lock === "string" ? { lock: lockKind(lock) } : {}),
    ...(typeof pool === "string" ? { pool } : {}),
    hint: JSON.stringify(hintOf(row)),
  };
}

/** All that a person can change and a glance can show. Figures that move by themselves are not. */
function hintOf(row: JsonObject): unknown[] {
  const { node, status, lock, name, tags, pool, template, hastate } = row;
  const { maxcpu, maxmem, maxdisk } = row;
  return [node, status, lock, name, tags, pool, template, hastate, maxcpu, maxmem, maxdisk];
}

function storageOf(row: JsonObject): InventoryStorage {
  const { plugintype } = row;
  return {
    name: textOf(row, "storage"),
    node: textOf(row, "node"),
    ...(typeof plugintype === "string" ? { type: plugintype } : {}),
    isShared: isSet(row, "shared"),
    isUsable: row["status"] === "available",
    contents: storageContents(textOf(row, "content").split(",")),
    ...figure("capacityBytes", row["maxdisk"]),
    ...figure("usedBytes", row["disk"]),
  };
}

function figure<K extends string>(key: K, value: unknown): { readonly [key in K]?: number } {
  // cast: a computed key loses its type.
  return (typeof value === "number" ? { [key]: value } : {}) as { readonly [key in K]?: number };
}

function ofType(rows: readonly JsonObject[], type: string): JsonObject[] {
  return rows.filter((row) => row["type"] === type);
}

function isGuest(row: JsonObject): boolean {
  return row["type"] === "qemu" || row["type"] === "lxc";
}
