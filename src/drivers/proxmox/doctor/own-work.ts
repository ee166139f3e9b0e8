import { answered, failed } from "../../../hypervisor/index.ts";
import type { Answer, OwnTask, OwnWork } from "../../../hypervisor/index.ts";
import type { TaskSource } from "../context.ts";
import { readFailureOf } from "../errors.ts";
import { listOwnTasks } from "../tasks.ts";
import { rowsOf, textOf } from "../wire/rows.ts";

/** What this token began since a moment, from the task lists of all nodes. */
export async function readOwnWork(
  from: TaskSource,
  query: { readonly user: string; readonly sinceMs: number },
): Promise<Answer<OwnWork>> {
  const nodes = await from.api.get("/nodes");
  if (nodes.type !== "data") return failed(readFailureOf(nodes, "list the nodes"));
  const tasks: OwnTask[] = [];
  const unread: string[] = [];
  for (const row of rowsOf(nodes.data)) {
    const node = textOf(row, "node");
    const isOnline = textOf(row, "status") === "online";
    const listed = isOnline ? await listOwnTasks(from, { ...query, node }) : undefined;
    if (listed?.ok === true) tasks.push(...listed.value);
    else unread.push(node);
  }
  return answered({ tasks: tasks.toSorted((a, b) => b.sinceMs - a.sinceMs), unread });
}
