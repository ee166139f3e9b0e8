import type { Cluster } from "./cluster.ts";
import { PveError, taskTextOf } from "./errors.ts";
import type { Outcome, Process } from "./process.ts";
import type { NodeState, TaskState } from "./state.ts";

/** A worker's own task: it writes its log. */
export interface Task {
  readonly state: TaskState;
  readonly log: (line: string) => void;
  /** Counts: a task with warnings ends "WARNINGS: n". */
  readonly warn: (line: string) => void;
}

export interface TaskOptions {
  readonly node: string;
  readonly type: string;
  readonly id: string;
  readonly user: string;
  /** A fault of this request: the worker cannot be started. */
  readonly isRefused?: boolean;
}

/** Forks a worker and returns its UPID. The worker lives on its own from here. */
export function forkTask(
  cluster: Cluster,
  options: TaskOptions,
  body: (task: Task) => Process<void>,
): string {
  if (options.isRefused === true) {
    throw new PveError("got no worker upid - start worker failed");
  }
  const state = newTask(cluster, options);
  cluster.node(options.node).tasks.push(state);
  const task: Task = {
    state,
    log: (line) => void state.log.push(line),
    warn: (line) => {
      state.warnings++;
      state.log.push(`WARN: ${line}`);
    },
  };
  cluster.processes.start({
    pid: state.pid,
    node: options.node,
    name: `${options.type}:${options.id}`,
    body: workerOf(cluster, body, task),
    onEnd: (outcome) => endTask(cluster, state, outcome),
  });
  return state.upid;
}

/** A worker does nothing before its parent has replied: there is a step before its first effect. */
function* workerOf(
  cluster: Cluster,
  body: (task: Task) => Process<void>,
  task: Task,
): Process<void> {
  yield* cluster.step("start of worker");
  yield* body(task);
}

function newTask(cluster: Cluster, { node, type, id, user }: TaskOptions): TaskState {
  const pid = cluster.nextPid();
  const startMs = cluster.clock.nowMs();
  // The kernel counts a process' start in hundredths of a second since the node was booted.
  const pstart = Math.max(1, Math.floor((startMs - cluster.node(node).bootedMs) / 10) + pid);
  const { clockAheadMs } = cluster.node(node);
  const start = Math.floor((startMs + (clockAheadMs ?? 0)) / 1000);
  const upid = `UPID:${node}:${hex(pid)}:${hex(pstart)}:${hex(start)}:${type}:${id}:${user}:`;
  const ahead = clockAheadMs === undefined ? {} : { clockAheadMs };
  return { upid, node, pid, pstart, startMs, ...ahead, type, id, user, log: [], warnings: 0 };
}

function hex(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, "0");
}

function endTask(cluster: Cluster, state: TaskState, outcome: Outcome<void>): void {
  const endMs = cluster.clock.nowMs();
  if (outcome.kind === "done") {
    const status = state.warnings > 0 ? `WARNINGS: ${state.warnings}` : "OK";
    finish(state, { endMs, status, line: `TASK ${status}` });
  } else if (outcome.kind === "failed") {
    const text = taskTextOf(outcome.error);
    finish(state, { endMs, status: text, line: `TASK ERROR: ${text}` });
  } else finish(state, { endMs, status: "unexpected status" });
  enter(cluster.node(state.node), state);
}

function finish(
  state: TaskState,
  end: { readonly endMs: number; readonly status: string; readonly line?: string },
): void {
  state.endMs = end.endMs;
  state.exitStatus = end.status;
  if (end.line !== undefined) state.log.push(end.line);
}

/** Whatever was running when the power failed has no last line in its log. */
export function abandonTasks(tasks: readonly TaskState[], nowMs: number): void {
  for (const task of tasks) {
    if (task.endMs === undefined) finish(task, { endMs: nowMs, status: "unexpected status" });
  }
}

/** The index is rotated at this size, and one older generation is kept. */
const indexBytesMax = 50_000;
const dayMs = 24 * 60 * 60 * 1000;
/** Logs that no index names are deleted daily; a simulator does not keep more than these. */
const unlistedMax = 1_000;

/** Enters a finished task into the index; a full index pushes the one before it out. */
function enter(node: NodeState, { upid, exitStatus, endMs = 0 }: TaskState): void {
  node.indexBytes = (node.indexBytes ?? 0) + upid.length + (exitStatus?.length ?? 0) + 11;
  if (node.indexBytes > indexBytesMax) rotate(node, endMs);
  const day = Math.floor(endMs / dayMs);
  node.cleanedDay ??= day;
  if (day === node.cleanedDay) return;
  node.cleanedDay = day;
  node.tasks = node.tasks.filter((task) => isListed(node, task));
}

function rotate(node: NodeState, nowMs: number): void {
  node.indexBytes = 0;
  node.listedFromMs = node.indexFromMs ?? 0;
  node.indexFromMs = nowMs;
  // The oldest come first.
  let surplus = node.tasks.filter((task) => !isListed(node, task)).length - unlistedMax;
  node.tasks = node.tasks.filter((task) => isListed(node, task) || surplus-- <= 0);
}

/** Whether an index still names the task: what runs is in a list of its own. */
export function isListed({ listedFromMs = 0 }: NodeState, { endMs }: TaskState): boolean {
  return endMs === undefined || endMs >= listedFromMs;
}

export function findTask(cluster: Cluster, node: string, upid: string): TaskState | undefined {
  // The one that is asked for is nearly always a late one.
  return cluster.node(node).tasks.findLast((task) => task.upid === upid);
}
