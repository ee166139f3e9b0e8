import { answered } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import type { TaskSource } from "./context.ts";
import { type ListedTask, listTasks, type TaskQuery } from "./tasks.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/**
 * The tasks that may explain a lock, newest first. A move is logged on the node that it began on,
 * and one that dies near its end leaves its lock on the other (qemu-server, QemuMigrate phase3).
 * So where this node knows of no move that is open or failed, the others are asked: a machine that
 * once left this node has come back since. One node that cannot be asked might know better: then
 * only this node's word counts, and proves nothing.
 */
export async function tasksBehind(
  from: TaskSource,
  lock: string,
  query: TaskQuery,
): Promise<Answer<readonly ListedTask[]>> {
  const here = await listTasks(from, query);
  if (!here.ok || lock !== "migrate") return here;
  const last = here.value.find(({ type }) => type === "qmigrate");
  if (last !== undefined && !last.endedWell) return here;
  const elsewhere = await listElsewhere(from, query);
  return elsewhere === undefined ? here : answered(elsewhere.toSorted(openThenNewest));
}

/** Times of two nodes are known within seconds: what is open is the last, whatever they say. */
function openThenNewest(a: ListedTask, b: ListedTask): number {
  return Number(b.isRunning) - Number(a.isRunning) || b.startMs - a.startMs;
}

async function listElsewhere(
  from: TaskSource,
  query: TaskQuery,
): Promise<ListedTask[] | undefined> {
  const status = await from.api.get("/cluster/status");
  if (status.type !== "data") return undefined;
  const nodes = rowsOf(status.data).filter((row) => row["type"] === "node");
  const found: ListedTask[] = [];
  for (const node of nodes.map((row) => textOf(row, "name"))) {
    if (node === query.node) continue;
    const there = await listTasks(from, { ...query, node });
    if (!there.ok) return undefined;
    found.push(...there.value);
  }
  return found;
}
