import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, TaskHandle, TaskSpan } from "../../hypervisor/index.ts";
import type { TaskSource } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { parseTask, type ListedTask } from "./tasks.ts";
import { present } from "./translate/present.ts";
import type { PveApi } from "./wire/api.ts";
import { rowsOf } from "./wire/rows.ts";
import { parseUpid, type Upid } from "./wire/upid.ts";
import { pathPart } from "./wire/wire.ts";

/** As many as one token can begin on a node within two seconds, and more. */
const tasksRead = 100;
/** Times as the node itself gives them. */
const asTold = { aheadMs: 0, withinMs: 0 };

/**
 * When a task ran, on the clock of `node`: files of a node bear its time. The status of a task does
 * not say when it ended; the list of its node does. There a task has no end until the node has
 * noticed that its worker is gone, some seconds later (pve-common, RESTEnvironment.pm,
 * active_workers). The list keeps some thousand tasks.
 */
export async function spanOfTask(
  from: TaskSource,
  task: TaskHandle,
  node: string,
): Promise<Answer<TaskSpan | undefined>> {
  const upid = parseUpid(task);
  if (upid === undefined) return answered(undefined);
  const listed = await listedTask(from.api, task, upid);
  if (!listed.ok) return listed;
  if (listed.value === undefined) return answered(undefined);
  const { startMs, endMs } = listed.value;
  const ahead = await aheadOf(from, node, upid.node);
  if (!ahead.ok) return ahead;
  const startedMs = startMs + ahead.value;
  return answered({
    startedMs,
    ...present({ endedMs: endMs === undefined ? undefined : endMs + ahead.value }),
  });
}

/** By the second in which it began, so that no newer ones push it out of the answer. */
async function listedTask(
  api: PveApi,
  task: TaskHandle,
  { node, type, startMs }: Upid,
): Promise<Answer<ListedTask | undefined>> {
  const since = startMs / 1000;
  const result = await api.get(`/nodes/${pathPart(node)}/tasks`, {
    source: "all",
    typefilter: type,
    since,
    until: since + 1,
    limit: tasksRead,
  });
  if (result.type !== "data") return failed(readFailureOf(result, `find the task ${task}`));
  const rows = rowsOf(result.data).flatMap((row) => parseTask(row, asTold));
  return answered(rows.find((row) => row.task === task));
}

/** How far the clock of one node is ahead of another's. An upload may run on another node. */
async function aheadOf(
  { api, clocks }: TaskSource,
  node: string,
  other: string,
): Promise<Answer<number>> {
  if (node === other) return answered(0);
  const here = await clocks.aheadMs(api, node);
  if (!here.ok) return here;
  const there = await clocks.aheadMs(api, other);
  return there.ok ? answered(here.value - there.value) : there;
}
