import type { Finding } from "../../../hypervisor/index.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import type { ConfigReader } from "../config-reader.ts";
import { readFailureOf } from "../errors.ts";
import type { PveApi } from "../wire/api.ts";
import { rowsOf, textOf } from "../wire/rows.ts";
import { parseUpid } from "../wire/upid.ts";
import { pathPart } from "../wire/wire.ts";

/** As many locked machines as are looked at one by one; more have one cause. */
const lookedAtMax = 50;

/** Locks that no running task can hold any more. Only a person can take them away. */
export async function examineLocks(
  api: PveApi,
  configs: ConfigReader,
  rows: readonly JsonObject[],
): Promise<Finding[]> {
  const locked = rows.filter(isLocked).slice(0, lookedAtMax);
  const nodes = [...new Set(locked.map((row) => textOf(row, "node")))];
  const running = new Map<string, readonly RunningTask[]>();
  const findings: Finding[] = [];
  for (const node of nodes) {
    const tasks = await runningTasks(api, node);
    if (Array.isArray(tasks)) running.set(node, tasks);
    else findings.push(tasks);
  }
  for (const row of locked) {
    const tasks = running.get(textOf(row, "node"));
    if (tasks !== undefined && !isHeld(row, tasks)) findings.push(...(await dead(configs, row)));
  }
  if (findings.length > 0) return findings;
  const message = locked.length === 0 ? "no machine is locked" : "every lock has its task";
  return [{ check: "Locks", level: "ok", message }];
}

/** A suspended machine keeps its lock for as long as it sleeps: nobody works on it, rightly. */
function isLocked(row: JsonObject): boolean {
  return row["type"] === "qemu" && !["", "suspended"].includes(textOf(row, "lock"));
}

interface RunningTask {
  readonly type: string;
  readonly id: string;
}

async function runningTasks(api: PveApi, node: string): Promise<RunningTask[] | Finding> {
  const result = await api.get(`/nodes/${pathPart(node)}/tasks`, { source: "active", limit: 500 });
  if (result.type !== "data") {
    const { message } = readFailureOf(result, `list the tasks on ${node}`);
    return { check: "Locks", level: "warning", message };
  }
  return rowsOf(result.data).flatMap((row) => {
    const isRunning = row["endtime"] === undefined || row["status"] === "RUNNING";
    const upid = parseUpid(textOf(row, "upid"));
    return isRunning && upid !== undefined ? [{ type: upid.type, id: upid.id }] : [];
  });
}

/**
 * Work that is not logged under the id of the machine that it locks: a clone under its source, a
 * backup of several machines under none.
 */
const elsewhere: Readonly<Record<string, string>> = { clone: "qmclone", backup: "vzdump" };

function isHeld(row: JsonObject, tasks: readonly RunningTask[]): boolean {
  const lock = textOf(row, "lock");
  const id = textOf(row, "vmid");
  return tasks.some((task) => task.id === id || task.type === elsewhere[lock]);
}

/** Read once more: the task may have ended between the two looks, and taken its lock along. */
async function dead(configs: ConfigReader, row: JsonObject): Promise<Finding[]> {
  const place = { node: textOf(row, "node"), externalId: textOf(row, "vmid") };
  const read = await configs.read(place);
  const values = read.type === "config" ? read.config.values : {};
  const lock = values["lock"];
  if (lock === undefined || lock !== textOf(row, "lock")) return [];
  const isEmpty = Object.keys(values).length === 1;
  const name = values["name"] === undefined ? "" : ` (${values["name"]})`;
  const { externalId, node } = place;
  const unlock = `qm unlock ${externalId}`;
  return [
    {
      check: "Locks",
      level: "warning",
      message: isEmpty
        ? `VM ${externalId} on ${node} is empty (lock: ${lock}), and no task works on it`
        : `VM ${externalId}${name} on ${node} is locked (${lock}), and no task works on it`,
      remedy: `Be sure that nobody does, then on ${node}, as root (no API token may unlock):`,
      commands: isEmpty ? [unlock, `qm destroy ${externalId} --purge`] : [unlock],
    },
  ];
}
