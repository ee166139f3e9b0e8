import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Answer,
  Begun,
  Fence,
  RecalledTask,
  RecallHints,
  TaskView,
} from "../../hypervisor/index.ts";
import { causeOf, classifyError, classifyText, readFailureOf } from "./errors.ts";
import { present } from "./translate/present.ts";
import { begunOf } from "./operations/begun.ts";
import type { PveApi } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { parseUpid } from "./wire/upid.ts";
import { pathPart } from "./wire/wire.ts";

/** How far a task is, from the node that runs it. */
export async function lookAtTask(api: PveApi, task: string): Promise<TaskView> {
  const upid = parseUpid(task);
  if (upid === undefined) return { state: "lost", cause: `"${task}" is no task of Proxmox` };
  const path = `/nodes/${pathPart(upid.node)}/tasks/${pathPart(task)}/status`;
  const result = await api.get(path);
  if (result.type === "error" && classifyError(result).meaning === "noTask") {
    return { state: "lost", cause: causeOf(result) };
  }
  if (result.type !== "data") {
    return { state: "unknown", failure: readFailureOf(result, `look at the task ${task}`) };
  }
  if (!isJsonObject(result.data)) return { state: "lost", cause: "the status is no object" };
  const { status, exitstatus } = result.data;
  if (status === "running") return { state: "running" };
  const end = endOf(typeof exitstatus === "string" ? exitstatus.trim() : "");
  if (end.state !== "failed" && end.state !== "lost") return end;
  return withLog(end, await logTail(api, upid.node, task));
}

/** The exit status is one line, and the reason often stands some lines before it. */
function withLog(
  end: Extract<TaskView, { state: "failed" | "lost" }>,
  log: readonly string[],
): TaskView {
  const { cause: said = "" } = end.state === "lost" ? end : end.failure;
  const cause = [said, ...log].join("\n");
  return end.state === "lost" ? { ...end, cause } : { ...end, failure: { ...end.failure, cause } };
}

const logLinesRead = 1_000;
/** A move under load writes a line each second: so much is some five hours. */
const logLinesMost = 20_000;
const logLinesShown = 12;

/** The end of a task's log, with a line that says so; nothing where there is no more in it. */
async function logTail(api: PveApi, node: string, task: string): Promise<string[]> {
  const path = `/nodes/${pathPart(node)}/tasks/${pathPart(task)}/log`;
  let tail: string[] = [];
  // A log can be read from its beginning only.
  for (let start = 0; start < logLinesMost; start += logLinesRead) {
    const result = await api.get(path, { start, limit: logLinesRead });
    const lines = result.type === "data" ? rowsOf(result.data).map((row) => textOf(row, "t")) : [];
    const said = lines.filter((line) => line.trim() !== "" && !line.startsWith("TASK ERROR:"));
    tail = [...tail, ...said].slice(-logLinesShown);
    if (lines.length < logLinesRead) break;
  }
  return tail.length === 0 ? [] : ["The end of the task's log:", ...tail];
}

/** Asks the worker of a task to end. It gets a signal, and is killed five seconds later. */
export async function cancelTask(api: PveApi, task: string, fence: Fence): Promise<Begun> {
  const upid = parseUpid(task);
  if (upid === undefined) return { outcome: "done" };
  const path = `/nodes/${pathPart(upid.node)}/tasks/${pathPart(task)}`;
  const result = await api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `stop the task ${task}`);
}

/** A worker that was killed leaves no last line; nobody knows what it still did. */
const lostEnds = /^(?:unexpected status|unable to get last line from task log - .*|)$/;

/** What the exit status of a worker says. */
function endOf(exitStatus: string): TaskView {
  if (exitStatus === "OK") return { state: "succeeded" };
  if (/^WARNINGS: \d+$/.test(exitStatus)) return { state: "warned", cause: exitStatus };
  if (lostEnds.test(exitStatus)) return { state: "lost", cause: exitStatus || "no exit status" };
  const { category, meaning, remedy } = classifyText(exitStatus);
  if (meaning === "alreadySo") return { state: "succeeded" };
  // Since 8.0.2 resize looks at the digest in its worker, and says it only there.
  if (meaning === "changed") return { state: "changed", cause: exitStatus };
  if (meaning === "blocked") return { state: "blocked", waitsFor: exitStatus };
  return {
    state: "failed",
    failure: {
      category,
      message: `the task failed: ${exitStatus}`,
      cause: exitStatus,
      ...(remedy === undefined ? {} : { remedy }),
    },
  };
}

export interface ListedTask {
  readonly task: string;
  readonly type: string;
  readonly id: string;
  readonly user: string;
  readonly startMs: number;
  readonly isRunning: boolean;
  /** It ended well: then it left nothing half-made behind. */
  readonly endedWell: boolean;
  /** When and how it ended. */
  readonly endMs?: number;
  readonly end?: string;
}

const does: Readonly<Record<string, RecalledTask["does"]>> = {
  qmcreate: "Create",
  qmconfig: "Configure",
  resize: "Grow",
  qmstart: "Start",
  qmstop: "Stop",
  qmshutdown: "Stop",
  qmdestroy: "Destroy",
  qmclone: "Clone",
  qmmove: "MoveDisk",
  qmreboot: "Reboot",
  qmsuspend: "Suspend",
  qmresume: "Resume",
  qmigrate: "Migrate",
  // Of a machine that is watched over these end when the request is queued, not when it is done.
  hastart: "Start",
  hastop: "Stop",
  hashutdown: "Stop",
  hamigrate: "Migrate",
};

/** Our own tasks about a machine: what is ours is ours by the token in the task's name. */
export async function recallTasks(
  api: PveApi,
  query: TaskQuery & RecallHints & { readonly user: string },
): Promise<Answer<readonly RecalledTask[]>> {
  const { clonedFrom, user } = query;
  const listed = await listTasks(api, query);
  if (!listed.ok) return listed;
  const source = clonedFrom === undefined ? answered([]) : await listClones(api, query, clonedFrom);
  if (!source.ok) return source;
  const own = [...listed.value, ...source.value].filter((task) => task.user === user);
  return answered(own.toSorted((a, b) => b.startMs - a.startMs).map(recalled));
}

/** A clone is logged under the machine that it was made from. */
async function listClones(
  api: PveApi,
  query: TaskQuery,
  source: string,
): Promise<Answer<readonly ListedTask[]>> {
  const listed = await listTasks(api, { ...query, externalId: source });
  if (!listed.ok) return listed;
  return answered(listed.value.filter(({ type }) => type === "qmclone"));
}

function recalled({ task, type, isRunning, startMs }: ListedTask): RecalledTask {
  return { task, does: does[type] ?? "Other", isRunning, sinceMs: startMs };
}

export interface TaskQuery {
  readonly node: string;
  readonly externalId: string;
  readonly sinceMs: number;
}

/** `source=archive`, the default, hides what still runs. Newest first. */
export async function listTasks(
  api: PveApi,
  { node, externalId, sinceMs }: TaskQuery,
): Promise<Answer<readonly ListedTask[]>> {
  const result = await api.get(`/nodes/${pathPart(node)}/tasks`, {
    source: "all",
    vmid: externalId,
    limit: 100,
    // The server compares whole seconds, and its clock need not be ours.
    since: Math.max(0, Math.floor((sinceMs - clockSlackMs) / 1000)),
  });
  if (result.type !== "data") return failed(readFailureOf(result, `list the tasks on ${node}`));
  const rows = Array.isArray(result.data) ? result.data : [];
  return answered(rows.flatMap(parseTask).toSorted((a, b) => b.startMs - a.startMs));
}

/** As far as the clocks of a node and of Berth may be apart without a task being overlooked. */
const clockSlackMs = 5 * 60_000;

function parseTask(row: unknown): ListedTask[] {
  if (!isJsonObject(row) || typeof row["upid"] !== "string") return [];
  const upid = parseUpid(row["upid"]);
  if (upid === undefined) return [];
  const { type, id, user, startMs } = upid;
  // A running task has no end; 8 and 9 also say RUNNING.
  const isRunning = row["endtime"] === undefined || row["status"] === "RUNNING";
  const endedWell = !isRunning && row["status"] === "OK";
  const task = { task: row["upid"], type, id, user, startMs, isRunning, endedWell };
  return [isRunning ? task : { ...task, ...endOfRow(row) }];
}

function endOfRow({ endtime, status }: JsonObject): Pick<ListedTask, "endMs" | "end"> {
  return present({
    endMs: typeof endtime === "number" ? endtime * 1000 : undefined,
    end: typeof status === "string" ? status : undefined,
  });
}
