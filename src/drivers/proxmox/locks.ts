import type { Lock, LockKind, LockWork } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { ListedTask } from "./tasks.ts";
import { present } from "./translate/present.ts";

/** The words of the schema, and three that are written all the same: import, restore, destroyed. */
const lockKinds: Readonly<Record<string, LockKind>> = {
  create: "Create",
  clone: "Clone",
  backup: "Backup",
  restore: "Restore",
  import: "Restore",
  migrate: "Migrate",
  snapshot: "Snapshot",
  "snapshot-delete": "Snapshot",
  rollback: "Snapshot",
  suspending: "Suspend",
  suspended: "Suspend",
  destroyed: "Destroy",
};

export function lockKind(lock: string): LockKind {
  return lockKinds[lock] ?? "Other";
}

/**
 * The work that sets each lock. Clone is not here: its task is logged under the source's id, so
 * nothing that is found under the new one proves anything.
 */
const lockTasks: Readonly<Record<string, readonly string[]>> = {
  create: ["qmcreate", "qmrestore"],
  destroyed: ["qmdestroy"],
  backup: ["vzdump"],
  migrate: ["qmigrate"],
  suspending: ["qmsuspend"],
  suspended: ["qmstart", "qmresume", "qmconfig"],
  snapshot: ["qmsnapshot"],
  "snapshot-delete": ["qmdelsnapshot"],
  rollback: ["qmrollback"],
};

export interface LockedMachine {
  readonly externalId: string;
  readonly node: string;
  readonly isHusk: boolean;
}

/**
 * Whether anybody still works under a lock, by the tasks that can be seen, newest first. Dead only
 * if the last work that sets such a lock was ours and has ended without success: a task that ended
 * well took its lock away, so what stands now is another's.
 */
export function judgeLock(
  lock: string,
  { tasks, user }: { readonly tasks: readonly ListedTask[]; readonly user: string },
  machine: LockedMachine,
): Lock {
  const kind = lockKind(lock);
  const last = tasks.find((task) => lockTasks[lock]?.includes(task.type));
  const isOurs = guard("lock-task-of-ours", last?.user === user);
  if (last === undefined || !isOurs || !guard("lock-task-failed", !last.endedWell)) {
    return { kind, detail: lock, ...othersLock(last, machine) };
  }
  if (!guard("lock-task-ended", !last.isRunning)) {
    return { kind, detail: lock, state: "Held", ...workOf(last) };
  }
  return deadLock(lock, machine, last);
}

/** Anybody else's is never broken: who waits for it is told whose it is, and how it is cleared. */
function othersLock(
  last: ListedTask | undefined,
  { externalId, node }: LockedMachine,
): Pick<Lock, "state" | "others" | "remedy"> {
  const others = last === undefined || last.endedWell ? undefined : othersWork(last);
  if (last?.isRunning === true) return { state: "Held", ...present({ others }) };
  const remedy = `If nobody works on it any more, on ${node}, as root: qm unlock ${externalId}`;
  return { state: "Unknown", remedy, ...present({ others }) };
}

function othersWork({ user, ...listed }: ListedTask): LockWork {
  const { sinceMs, ...work } = timesOf(listed);
  return { task: listed.task, user, sinceMs, ...work };
}

/** The work behind a lock: which, since when, and how it ended. */
export function workOf(
  listed: ListedTask,
): Pick<Lock, "task" | "sinceMs" | "endedMs" | "aheadMs" | "end"> {
  return { task: listed.task, ...timesOf(listed) };
}

/**
 * Its times on the clock of its node, for people. What is converted differs by a second from one
 * reading of that clock to the next, and every difference would be a write.
 */
function timesOf({
  startMs,
  endMs,
  end,
  aheadMs,
}: Pick<ListedTask, "startMs" | "endMs" | "end" | "aheadMs">): Omit<LockWork, "task" | "user"> {
  const endedMs = endMs === undefined ? undefined : endMs + aheadMs;
  return { sinceMs: startMs + aheadMs, aheadMs, ...present({ endedMs, end }) };
}

/** The command is a person's to run: no API token may unlock (qemu-server: root@pam only). */
export function deadLock(
  lock: string,
  { externalId, node, isHusk }: LockedMachine,
  work?: ListedTask,
): Lock {
  const unlock = `qm unlock ${externalId}`;
  const command = isHusk ? `${unlock} && qm destroy ${externalId} --purge` : unlock;
  return {
    kind: lockKind(lock),
    detail: lock,
    state: "Dead",
    ...(work === undefined ? {} : workOf(work)),
    remedy: `Nobody works on it any more. On ${node}, as root: ${command}`,
  };
}
