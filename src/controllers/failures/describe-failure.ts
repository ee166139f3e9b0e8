import type { VirtualMachineStatus } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { defined } from "./defined.ts";

/** A failure as every status of ours shows it. */
export type StatusFailure = NonNullable<VirtualMachineStatus["failure"]>;

export interface FailureMoment {
  readonly nowMs: number;
  readonly old: StatusFailure | undefined;
  readonly attempts: number;
  readonly step?: string | undefined;
  /** When it is tried again; absent: not before something changes. */
  readonly nextRetryMs?: number | undefined;
  /** A digest of what was declared when it failed. */
  readonly declaration?: string | undefined;
}

const none: Partial<StatusFailure> = {};
const causeMax = 8192;
const textMax = 2048;
/** As much as the message of a condition may have, with room to spare. */
const conditionMax = 4000;

/**
 * A failure with when it began and what comes next. One that only waits or stalls keeps its times:
 * otherwise every look at it would be a write.
 */
export function describeFailure(failure: Failure, moment: FailureMoment): StatusFailure {
  const { nowMs, old, attempts, step, nextRetryMs, declaration } = moment;
  const { category, message, cause, remedy } = failure;
  const now = formatTime(nowMs);
  const same = old?.category === category ? old : none;
  const { firstAt = now, lastAt = now } = same;
  const isRepeated = same.attempts === attempts && nextRetryMs === undefined;
  return defined<StatusFailure>({
    category,
    message: sentenceOf(message).slice(0, textMax),
    cause: cause?.slice(0, causeMax),
    step,
    attempts,
    firstAt,
    lastAt: isRepeated ? lastAt : now,
    nextRetryAt: timeOf(nextRetryMs),
    remedy: remedy?.slice(0, textMax),
    declaration,
  });
}

/** A failure in one text: what is the matter, and what can be done. */
export function failureText({ message, remedy }: Pick<Failure, "message" | "remedy">): string {
  const text = remedy === undefined ? message : `${sentenceOf(message)} ${remedy}`;
  return sentenceOf(text).slice(0, conditionMax);
}

/** Drivers say it as a part of a sentence; people are told whole ones. */
function sentenceOf(text: string): string {
  // A field or an id that stands first keeps its own spelling.
  const head = /^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?…]$/.test(head) ? head : `${head}.`;
}

function timeOf(timeMs: number | undefined): string | undefined {
  return timeMs === undefined ? undefined : formatTime(timeMs);
}
