import { answered } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { type ListedTask, listTasks, type TaskQuery } from "./tasks.ts";
import type { PveApi } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/**
 * The tasks that may explain a lock, newest first. A move is logged on the node that it began on,
 * and one that dies near its end leaves its lock on the other (qemu-server, QemuMigrate phase3).
 * So where this node knows of no move that is open or failed, the others are asked: a machine that
 * once left this node has come back since. One node that cannot be asked might know better: then
 * only this node's word counts, and proves nothing.
 */
export async function tasksBehind(
  api: PveApi,
  lock: string,
  query: TaskQuery,
): Promise<Answer<readonly ListedTask[]>> {
  const here = await listTasks(api, query);
  if (!here.ok || lock !== "migrate") return here;
  const last = here.value.find(({ type }) => type === "qmigrate");
  if (last !== undefined && !last.endedWell) return here;
  const elsewhere = await listElsewhere(api, query);
  return elsewhere === undefined ? here : answered(elsewhere.toSorted(openThenNewest));
}

/** The clocks of two nodes need not agree: what is still open is the last, whatever they say. */
function openThenNewest(a: ListedTask, b: ListedTask): number {
  return Number(b.isRunning) - Number(a.isRunning) || b.startMs - a.startMs;
}

async function listElsewhere(api: PveApi, query: TaskQuery): Promise<ListedTask[] | undefined> {
  const status = await api.get("/cluster/status");
  if (status.type !== "data") return undefined;
  const nodes = rowsOf(status.data).filter((row) => row["type"] === "node");
  const found: ListedTask[] = [];
  for (const node of nodes.map((row) => textOf(row, "name"))) {
    if (node === query.node) continue;
    const there = await listTasks(api, { ...query, node });
    if (!there.ok) return undefined;
    found.push(...there.value);
  }
  return found;
}
