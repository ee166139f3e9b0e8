import type {
  Basis,
  ClaimedMachine,
  Failure,
  Lock,
  LockWork,
  Unlock,
} from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";

/** As much as the status keeps of what is waited for. */
const lockTextMax = 512;

/** A lock that is not ours to break: its word, who holds it and since when, or who left it. */
export function lockText({ detail, task, sinceMs, others, remedy }: Lock): string {
  const holder =
    others ?? (task === undefined || sinceMs === undefined ? undefined : { task, sinceMs });
  return `${detail}${holderText(holder)}${remedy === undefined ? "" : `. ${remedy}`}`.slice(
    0,
    lockTextMax,
  );
}

/** Whether such a text tells of this lock: who holds it may be found out later, or may end. */
export function tellsOfLock(text: string, lock: string): boolean {
  return text === lock || text.startsWith(`${lock}, `) || text.startsWith(`${lock}. `);
}

function holderText(holder: Partial<LockWork> | undefined): string {
  if (holder === undefined) return "";
  const { task = "", sinceMs = 0, endedMs, end } = holder;
  const since = formatTime(sinceMs);
  if (endedMs === undefined) return `, held by the task ${task} since ${since}`;
  const how = end === undefined ? "" : ` (${end})`;
  return `, left by the task ${task}, which ended at ${formatTime(endedMs)}${how}`;
}

/** What clears a dead lock of ours, where an account may; it is proven dead in the same step. */
export function clearingOf(
  { claim, at }: { readonly claim: ClaimedMachine; readonly at: Basis },
  { detail: lock, task }: Lock,
): { readonly operation: Unlock; readonly intent: string } {
  const by = task === undefined ? "" : ` that the dead task ${task} left`;
  const intent = `Clear the lock (${lock}) of the machine ${claim.externalId}${by}.`;
  return { operation: { kind: "unlock", claim, at, lock }, intent };
}

/** A dead lock that Berth may not clear, with the command that does. */
export function deadLock(at: object, lock: Lock): Failure {
  const id = "externalId" in at ? ` ${String(at.externalId)}` : "";
  return {
    category: "LockError",
    message: `The machine${id} is locked, and the work that locked it has ended.`,
    cause: lock.detail,
    ...(lock.remedy === undefined ? {} : { remedy: lock.remedy }),
  };
}
