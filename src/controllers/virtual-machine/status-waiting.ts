import { vmReasons } from "../../api/index.ts";
import type { VirtualMachineStatus } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { lockOf } from "../failures/index.ts";

type StatusWaiting = NonNullable<VirtualMachineStatus["waitingFor"]>;

/** What a run waits for; since when is in the status. */
export type Waiting = Omit<StatusWaiting, "since">;

/** A wait that goes on keeps its beginning. */
export function sinceWhen(
  waiting: Waiting | undefined,
  old: StatusWaiting | undefined,
  nowMs: number,
): StatusWaiting | undefined {
  if (waiting === undefined) return undefined;
  const isSame = old !== undefined && isSameWait(old, waiting);
  return { ...waiting, since: isSame ? old.since : formatTime(nowMs) };
}

/** Whether it goes on waiting for the same, though more may be known of it by now. */
export function isSameWait(left: Waiting, right: Waiting): boolean {
  if (left.kind !== right.kind) return false;
  if (left.name === right.name) return true;
  return left.kind === "Lock" && lockOf(left.name) === lockOf(right.name);
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
