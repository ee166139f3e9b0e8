import type { TaskState } from "../state.ts";

/** A task in lists: running ones have no end, finished ones their exit status as status. */
export function taskRow(task: TaskState, { isSaved = false } = {}): object {
  const { endMs, exitStatus, clockAheadMs = 0 } = task;
  return {
    ...identity(task),
    ...(endMs === undefined ? {} : { endtime: Math.floor((endMs + clockAheadMs) / 1000) }),
    status: endMs === undefined ? "RUNNING" : exitStatus,
    ...(isSaved && endMs !== undefined ? { saved: "1" } : {}),
  };
}

/** What a task is, in every place that shows one. */
export function identity(task: TaskState): object {
  const { upid, node, pid, pstart, startMs, clockAheadMs = 0, type, id, user } = task;
  const [userid = "", tokenid] = user.split("!");
  return {
    upid,
    node,
    pid,
    pstart,
    starttime: Math.floor((startMs + clockAheadMs) / 1e3),
    type,
    id,
    user: userid,
    ...(tokenid === undefined ? {} : { tokenid }),
  };
}
