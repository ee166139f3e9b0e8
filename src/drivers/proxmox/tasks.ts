import { guard } from "../../kernel/guard.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { answered, failed, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type {
  Answer,
  Begun,
  Fence,
  HistoryHints,
  OwnTask,
  PastTask,
  RecalledTask,
  RecallHints,
  TaskView,
} from "../../hypervisor/index.ts";
import type { TaskSource } from "./context.ts";
import { causeOf, classifyError, classifyText, readFailureOf } from "./errors.ts";
import { present } from "./translate/present.ts";
import type { Offset } from "./node-clocks.ts";
import { begunOf } from "./operations/begun.ts";
import type { PveApi } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { newestFirst, parseUpid } from "./wire/upid.ts";
import { pathPart } from "./wire/wire.ts";

/** How far a task is, from the node that runs it. */
export async function lookAtTask(api: PveApi, task: string): Promise<TaskView> {
  const upid = parseUpid(task);
  if (upid === undefined) return { state: "lost", cause: `"${task}" is no task of Proxmox` };
  const path = `/nodes/${pathPart(upid.node)}/tasks/${pathPart(task)}/status`;
  const result = await api.get(path);
  if (result.type === "error" && classifyError(result).meaning === "noTask") {
    return { state: "lost", cause: causeOf(result), mayRun: true };
  }
  if (result.type !== "data") {
    return { state: "unknown", failure: readFailureOf(result, `look at the task ${task}`) };
  }
  if (!isJsonObject(result.data)) return { state: "lost", cause: "the status is no object" };
  const { status, exitstatus } = result.data;
  if (status === "running") return { state: "running" };
  return endWithLog(api, task, endOf(typeof exitstatus === "string" ? exitstatus.trim() : ""));
}

/** The end of a task with what only its log tells. */
async function endWithLog(api: PveApi, task: string, end: TaskView): Promise<TaskView> {
  const { node = "", type } = parseUpid(task) ?? {};
  if (end.state === "succeeded" && type === "download") return downloadEnd(api, node, task);
  if (end.state !== "failed" && end.state !== "lost") return end;
  return withLog(end, await logTail(api, node, task));
}

/** What a download says that found the file in its place, with the right checksum. */
const fileWasThere = /OK, got correct file already, no need to download/;
/** It says so before anything else. */
const firstLines = 50;

/**
 * Also a download that fetched nothing ends well: somebody else put the same file there meanwhile,
 * and only the log tells (pve-common Tools.pm, download_file_from_url). Then the file is not ours.
 */
async function downloadEnd(api: PveApi, node: string, task: string): Promise<TaskView> {
  const path = `/nodes/${pathPart(node)}/tasks/${pathPart(task)}/log`;
  const result = await api.get(path, { start: 0, limit: firstLines });
  if (result.type !== "data") {
    return { state: "unknown", failure: readFailureOf(result, `read the log of the task ${task}`) };
  }
  const lines = rowsOf(result.data).map((row) => textOf(row, "t"));
  const found = lines.find((line) => fileWasThere.test(line));
  return guard("download-fetched-file", found === undefined)
    ? { state: "succeeded" }
    : { state: "changed", cause: found ?? "" };
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

/** All lines of a task's log; undefined where it cannot be read whole. */
export async function wholeLog(api: PveApi, task: string): Promise<readonly string[] | undefined> {
  const node = parseUpid(task)?.node ?? "";
  const path = `/nodes/${pathPart(node)}/tasks/${pathPart(task)}/log`;
  const lines: string[] = [];
  for (let start = 0; start < logLinesMost; start += logLinesRead) {
    const result = await api.get(path, { start, limit: logLinesRead });
    if (result.type !== "data") return undefined;
    const read = rowsOf(result.data).map((row) => textOf(row, "t"));
    lines.push(...read);
    if (read.length < logLinesRead) return lines;
  }
  return undefined;
}

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
export const lostEnds = /^(?:unexpected status|unable to get last line from task log - .*|)$/;

/** What the exit status of a worker says. */
function endOf(exitStatus: string): TaskView {
  if (exitStatus === "OK") return { state: "succeeded" };
  if (/^WARNINGS: \d+$/.test(exitStatus)) return { state: "warned", cause: exitStatus };
  if (lostEnds.test(exitStatus)) return { state: "lost", cause: exitStatus || "no exit status" };
  const { category, meaning, remedy } = classifyText(exitStatus);
  if (meaning === "alreadySo") return { state: "succeeded" };
  // Since 8.0.2 resize looks at the digest in its worker, and says it only there. So does every
  // worker that finds no configuration on its node: the VM may be on another.
  if (meaning === "changed" || meaning === "notHere") {
    return { state: "changed", cause: exitStatus };
  }
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
  /** On Berth's clock, as are all its times: taskTimeSlackMs says how exactly. */
  readonly startMs: number;
  /** How far the clock of its node is ahead of Berth's; and how much later it may have begun. */
  readonly aheadMs: number;
  readonly withinMs: number;
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
  qmrestore: "Restore",
  qmrollback: "Restore",
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
  download: "Download",
  imgcopy: "Upload",
  imgdel: "RemoveFile",
};

/**
 * Our own downloads of a file. The worker of download-url is named by the file (pve-storage,
 * API2/Storage/Status.pm), so that the task tells which one it brings.
 */
export async function recallDownloads(
  from: TaskSource,
  { node, fileName, sinceMs, user }: FileQuery,
): Promise<Answer<readonly RecalledTask[]>> {
  const query = { typefilter: "download" };
  const listed = await listTasksBy(from, { node, sinceMs, query });
  if (!listed.ok) return listed;
  const own = listed.value.filter((task) => task.user === user && task.id === fileName);
  return answered(own.map(recalled));
}

export interface FileQuery {
  readonly node: string;
  readonly fileName: string;
  readonly sinceMs: number;
  readonly user: string;
}

/** Our own tasks about a machine: what is ours is ours by the token in the task's name. */
export async function recallTasks(
  from: TaskSource,
  query: TaskQuery & RecallHints & { readonly user: string },
): Promise<Answer<readonly RecalledTask[]>> {
  const { clonedFrom, user } = query;
  const listed = await listTasks(from, query);
  if (!listed.ok) return listed;
  const source =
    clonedFrom === undefined ? answered([]) : await listClones(from, query, clonedFrom);
  if (!source.ok) return source;
  const own = [...listed.value, ...source.value].filter((task) => task.user === user);
  return answered(own.toSorted(newestFirst).map(recalled));
}

/**
 * Everybody's tasks about a machine; those of others only with Sys.Audit, which Berth needs. Each
 * node lists what ran on it: a migration is on the node that the machine left.
 */
export async function pastTasks(
  from: TaskSource,
  query: TaskQuery & { readonly user: string },
  { everywhere = false }: HistoryHints = {},
): Promise<Answer<readonly PastTask[]>> {
  const listed = await listTasks(from, query);
  if (!listed.ok) return listed;
  const others = everywhere ? await tasksOfOtherNodes(from, query) : [];
  const since = [...listed.value, ...others]
    .filter(({ startMs }) => startMs >= query.sinceMs - taskTimeSlackMs)
    .toSorted((a, b) => b.startMs - a.startMs);
  return answered(
    since.map(({ type, startMs, user }) => {
      return { does: does[type] ?? "Other", sinceMs: startMs, user, isOurs: user === query.user };
    }),
  );
}

/** As far as they answer: it is asked only to name somebody. */
async function tasksOfOtherNodes(
  from: TaskSource,
  query: TaskQuery,
): Promise<readonly ListedTask[]> {
  const names = await onlineNodes(from.api);
  const others = names.ok ? names.value.filter((node) => node !== query.node) : [];
  const lists: (readonly ListedTask[])[] = [];
  for (const node of others) {
    const listed = await listTasks(from, { ...query, node });
    if (listed.ok) lists.push(listed.value);
  }
  return lists.flat();
}

async function onlineNodes(api: PveApi): Promise<Answer<readonly string[]>> {
  const result = await api.get("/nodes");
  if (result.type !== "data") return failed(readFailureOf(result, "list the nodes"));
  const online = rowsOf(result.data).filter((row) => textOf(row, "status") === "online");
  return answered(online.map((row) => textOf(row, "node")));
}

/** What this token began on a node, on whatever; the server's filter finds parts of names too. */
export async function listOwnTasks(
  from: TaskSource,
  { node, user, sinceMs }: { readonly node: string; readonly user: string; sinceMs: number },
): Promise<Answer<readonly OwnTask[]>> {
  const listed = await listTasksBy(from, { node, sinceMs, query: { userfilter: user } });
  if (!listed.ok) return listed;
  const own = listed.value.filter((task) => task.user === user && task.startMs >= sinceMs);
  return answered(
    own.map(({ type, id, startMs, isRunning }) => {
      const target = id === "" ? `on ${node}` : `of ${id} on ${node}`;
      return { does: does[type] ?? "Other", target, sinceMs: startMs, isRunning };
    }),
  );
}

/** A clone is logged under the machine that it was made from. */
async function listClones(
  from: TaskSource,
  query: TaskQuery,
  source: string,
): Promise<Answer<readonly ListedTask[]>> {
  const listed = await listTasks(from, { ...query, externalId: source });
  if (!listed.ok) return listed;
  return answered(listed.value.filter(({ type }) => type === "qmclone"));
}

export function recalled(listed: ListedTask): RecalledTask {
  const { task, type, isRunning, startMs, withinMs } = listed;
  return { task, does: does[type] ?? "Other", isRunning, sinceMs: startMs, withinMs };
}

export interface TaskQuery {
  readonly node: string;
  readonly externalId: string;
  readonly sinceMs: number;
}

/** `source=archive`, the default, hides what still runs. Newest first. */
export async function listTasks(
  from: TaskSource,
  { node, externalId, sinceMs }: TaskQuery,
): Promise<Answer<readonly ListedTask[]>> {
  return listTasksBy(from, { node, sinceMs, query: { vmid: externalId } });
}

/** Tasks of one type, on whatever. A transfer between two VMs bears neither of their ids alone. */
export async function listTasksOfType(
  from: TaskSource,
  { node, type, sinceMs }: Pick<TaskQuery, "node" | "sinceMs"> & { readonly type: string },
): Promise<Answer<readonly ListedTask[]>> {
  return listTasksBy(from, { node, sinceMs, query: { typefilter: type } });
}

interface ListQuery extends Pick<TaskQuery, "node" | "sinceMs"> {
  readonly query: Readonly<Record<string, string>>;
}

async function listTasksBy(
  { api, clocks }: TaskSource,
  { node, sinceMs, query }: ListQuery,
): Promise<Answer<readonly ListedTask[]>> {
  const offset = await clocks.offset(api, node);
  if (!offset.ok) return offset;
  const result = await api.get(`/nodes/${pathPart(node)}/tasks`, {
    source: "all",
    ...query,
    limit: 100,
    // The server compares whole seconds, on its own clock.
    since: Math.max(0, Math.floor((sinceMs + offset.value.aheadMs - taskTimeSlackMs) / 1000)),
  });
  if (result.type !== "data") return failed(readFailureOf(result, `list the tasks on ${node}`));
  const rows = Array.isArray(result.data) ? result.data : [];
  return answered(rows.flatMap((row) => parseTask(row, offset.value)).toSorted(newestFirst));
}

/** The row of a list, from a node whose clock is so far ahead. */
export function parseTask(row: unknown, { aheadMs, withinMs }: Offset): ListedTask[] {
  if (!isJsonObject(row) || typeof row["upid"] !== "string") return [];
  const upid = parseUpid(row["upid"]);
  if (upid === undefined) return [];
  const { type, id, user } = upid;
  const startMs = upid.startMs - aheadMs;
  // A running task has no end; 8 and 9 also say RUNNING.
  const isRunning = row["endtime"] === undefined || row["status"] === "RUNNING";
  const endedWell = !isRunning && row["status"] === "OK";
  const known = { task: row["upid"], type, id, user, startMs, aheadMs, withinMs };
  const task = { ...known, isRunning, endedWell };
  return [isRunning ? task : { ...task, ...endOfRow(row, aheadMs) }];
}

function endOfRow(
  { endtime, status }: JsonObject,
  aheadMs: number,
): Pick<ListedTask, "endMs" | "end"> {
  return present({
    endMs: typeof endtime === "number" ? endtime * 1000 - aheadMs : undefined,
    end: typeof status === "string" ? status : undefined,
  });
}
