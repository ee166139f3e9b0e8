import { vmReasons } from "../../api/index.ts";
import type { VirtualMachineStatus } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { tellsOfLock } from "../failures/index.ts";

type StatusWaiting = NonNullable<VirtualMachineStatus["waitingFor"]>;

/** What a run waits for; since when is in the status. */
export interface Waiting extends Omit<StatusWaiting, "since"> {
  /** The lock itself, without who holds it. */
  readonly lock?: string | undefined;
}

/** A wait that goes on keeps its beginning. */
export function sinceWhen(
  waiting: Waiting | undefined,
  old: StatusWaiting | undefined,
  nowMs: number,
): StatusWaiting | undefined {
  if (waiting === undefined) return undefined;
  const isSame = old !== undefined && isSameWait(old, waiting);
  const { kind, name } = waiting;
  return { kind, name, since: isSame ? old.since : formatTime(nowMs) };
}

/** Whether it goes on waiting for the same, though more or less may be known of it by now. */
export function isSameWait(old: Waiting, { kind, name, lock }: Waiting): boolean {
  if (old.kind !== kind) return false;
  return old.name === name || (lock !== undefined && tellsOfLock(old.name, lock));
}

/** A wait as conditions and Events tell of it. */
export function waitingSummary(waiting: Waiting): {
  readonly reason: string;
  readonly message: string;
} {
  const reason = waiting.kind === "Approval" ? vmReasons.AwaitingApproval : vmReasons.Waiting;
  return { reason, message: waitingText(waiting) };
}

/** A lock is known by the hypervisor's word for it alone; all else is named in our words. */
function waitingText({ kind, name }: Waiting): string {
  return `Waits for ${kind === "Lock" ? "the lock: " : ""}${name.replace(/\.$/, "")}.`;
}
