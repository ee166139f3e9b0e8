import { type Call, type Endpoint, immediate, isSet, Listing } from "../endpoint.ts";
import { forbidden, parameterError } from "../errors.ts";
import type { Process } from "../process.ts";
import { splitList } from "../schema/formats.ts";
import type { TaskState } from "../state.ts";
import { findTask, isListed } from "../tasks.ts";
import { identity, taskRow } from "./task-rows.ts";

/** GET /nodes/{node}/tasks: finished ones unless the source says otherwise, newest first. */
function listTasks(call: Call): unknown {
  const { cluster, caller, node, parameters } = call;
  const isAuditor = cluster.rights.may(caller, `/nodes/${node}`, { privileges: ["Sys.Audit"] });
  const home = cluster.node(node);
  const found = home.tasks
    .filter((task) => isAuditor || task.user === caller.id)
    .filter((task) => isListed(home, task))
    .filter((task) => isOfSource(task, parameters["source"] ?? "archive"))
    .filter((task) => matches(task, parameters))
    .reverse();
  const start = Number(parameters["start"] ?? "0");
  const limit = Number(parameters["limit"] ?? "50");
  const shown = found.slice(start, start + limit).map((task) => taskRow(task));
  return new Listing(shown, found.length);
}

function isOfSource({ endMs }: TaskState, source: string): boolean {
  if (source === "all") return true;
  return source === "active" ? endMs === undefined : endMs !== undefined;
}

type Filter = (task: TaskState, value: string) => boolean;

/** The filters of a task list, by parameter. */
const filters: Readonly<Record<string, Filter>> = {
  vmid: (task, vmid) => task.id === vmid,
  typefilter: (task, type) => task.type === type,
  userfilter: (task, user) => task.user.toLowerCase().includes(user.toLowerCase()),
  since: (task, seconds) => startedOn(task) >= Number(seconds),
  until: (task, seconds) => startedOn(task) <= Number(seconds),
  errors: (task, value) => !isSet(value) || kindOf(task) !== "ok",
  statusfilter: (task, kinds) => splitList(kinds).includes(kindOf(task)),
};

/** In seconds, on the clock of its node. */
function startedOn({ startMs, clockAheadMs = 0 }: TaskState): number {
  return (startMs + clockAheadMs) / 1000;
}

function matches(task: TaskState, parameters: Call["parameters"]): boolean {
  return Object.entries(filters).every(([name, filter]) => {
    const value = parameters[name];
    return value === undefined || filter(task, value);
  });
}

function kindOf({ exitStatus }: TaskState): string {
  if (exitStatus === "OK") return "ok";
  if (exitStatus?.startsWith("WARNINGS") === true) return "warning";
  return exitStatus === undefined || exitStatus === "unexpected status" ? "unknown" : "error";
}

/** "UPID:pve1:000003E8:0000A1B2:65A1B2C3:qmcreate:100:root@pam:" */
const upidForm = /^UPID:[^:\s]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[^:\s]+:[^:\s]*:[^:\s]+:$/;

function taskOf(call: Call): TaskState {
  const { upid = "" } = call.parameters;
  if (!upidForm.test(upid)) throw parameterError({ upid: "unable to parse worker upid" });
  const task = findTask(call.cluster, call.node, upid);
  if (task === undefined) throw parameterError({ upid: "no such task" });
  return task;
}

/** One's own tasks are open; those of others are for auditors. */
function demandLook(call: Call): void {
  const { cluster, caller, node, parameters } = call;
  const user = (parameters["upid"] ?? "").split(":")[7];
  if (user === caller.id) return;
  cluster.rights.demand(caller, `/nodes/${node}`, { privileges: ["Sys.Audit"] });
}

function* taskStatus(call: Call): Process<unknown> {
  demandLook(call);
  const task = taskOf(call);
  yield* call.cluster.step("read task");
  const { endMs, exitStatus } = task;
  const state =
    endMs === undefined ? { status: "running" } : { status: "stopped", exitstatus: exitStatus };
  return { ...identity(task), ...state };
}

function* taskLog(call: Call): Process<unknown> {
  demandLook(call);
  yield* call.cluster.step("read log");
  const task = findTask(call.cluster, call.node, call.parameters["upid"] ?? "");
  if (task === undefined) return missingLog(call);
  const { log } = task;
  const start = Number(call.parameters["start"] ?? "0");
  const limit = Number(call.parameters["limit"] ?? "50");
  const lines = log.length === 0 ? ["no content"] : log;
  const shown = limit === 0 ? lines.slice(start) : lines.slice(start, start + limit);
  return new Listing(
    shown.map((t, index) => ({ n: start + index + 1, t })),
    lines.length,
  );
}

/** A log that is not there reads as one line that says so; up to 8.4 not even as a list. */
function missingLog(call: Call): unknown {
  const { upid = "" } = call.parameters;
  if (!upidForm.test(upid)) throw parameterError({ upid: "unable to parse worker upid" });
  const line = { n: 1, t: "unable to open file - No such file or directory" };
  return new Listing(call.cluster.quirks.missingLogIsList ? [line] : line, 1);
}

/** DELETE: SIGTERM to the worker's group, SIGKILL after five seconds. */
function* stopTask(call: Call): Process<unknown> {
  const { cluster, caller, node } = call;
  const task = taskOf(call);
  const isOwn = task.user === caller.id || task.user.split("!")[0] === caller.id;
  if (!isOwn && !cluster.rights.may(caller, `/nodes/${node}`, { privileges: ["Sys.Modify"] })) {
    throw forbidden("Permission check failed");
  }
  yield* cluster.step("stop task");
  cluster.processes.terminate(task.pid);
  return null;
}

export const taskEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /nodes/{node}/tasks": immediate(listTasks),
  "GET /nodes/{node}/tasks/{upid}": immediate(() => [{ name: "log" }, { name: "status" }]),
  "GET /nodes/{node}/tasks/{upid}/status": taskStatus,
  "GET /nodes/{node}/tasks/{upid}/log": taskLog,
  "DELETE /nodes/{node}/tasks/{upid}": stopTask,
};
