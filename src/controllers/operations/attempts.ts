import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { Random } from "../../kernel/random.ts";
import { nextAttempt } from "../../runtime/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import { isRetryAsked } from "./annotation-token.ts";
import {
  declarationDigest,
  failedBefore,
  refusedPolicy,
  unansweredPolicy,
  type CountingObject,
} from "./failed-steps.ts";

/** What is tried again by the clock, so that its attempts count. */
const countedNexts: ReadonlySet<string> = new Set(["retry", "look"]);

/** What follows from a failure. */
export interface Verdict {
  /** How often it failed in this way, this time included. */
  readonly attempts: number;
  /** Only a person, or a change of the world, ends it. */
  readonly isStalled: boolean;
  readonly afterMs: number;
  /** It is tried again after that time, by the clock alone. */
  readonly retriesOnTimer: boolean;
}

/** Decides what follows from a failure, by the one table of categories. Pure but for the jitter. */
export function judgeFailure(
  object: CountingObject,
  failure: Failure,
  { step, random }: { readonly step: string | undefined; readonly random: Random },
): Verdict {
  const attempts = attemptsBefore(object, failure, step) + 1;
  const policy = categoryPolicies[failure.category];
  const isResent = step !== undefined && failure.isUnanswered === true;
  const next = nextAttempt(isResent ? unansweredPolicy : policy, attempts, random);
  if (next.type === "retry") {
    // What was tried and waits for another thing is tried again ever more seldom, by the clock.
    const retriesOnTimer = countedNexts.has(policy.next) || step !== undefined;
    return { attempts, isStalled: false, afterMs: next.afterMs, retriesOnTimer };
  }
  // A step that only a person can mend is tried again all the same, seldom.
  const isRefused = step !== undefined && policy.next === "stall";
  const later = isRefused ? nextAttempt(refusedPolicy, attempts, random) : next;
  if (later.type === "retry") {
    return { attempts, isStalled: true, afterMs: later.afterMs, retriesOnTimer: true };
  }
  return { attempts, isStalled: true, afterMs: 0, retriesOnTimer: false };
}

/** How often this very failure happened before. A person's request starts from the beginning. */
function attemptsBefore(
  object: CountingObject,
  { category }: Failure,
  step: string | undefined,
): number {
  if (step !== undefined) return failedBefore(object, step, category)?.attempts ?? 0;
  const { failure: old } = object.status ?? {};
  const isAsked = isRetryAsked(object);
  const isCounted = countedNexts.has(categoryPolicies[category].next);
  if (old === undefined || isAsked || !isCounted) return 0;
  return old.category === category && old.step === step ? old.attempts : 0;
}

/** The failure that the status tells happened under what is declared now. */
function currentFailure(object: CountingObject): StatusFailure | undefined {
  const { failure } = object.status ?? {};
  return failure?.declaration === declarationDigest(object) ? failure : undefined;
}

/**
 * How long a failure still waits for its next retry. It is read from the status, so that a restart
 * brings no attempt forward. A clock that was set back makes the wait no longer than it was.
 */
export function retryWaitMs(object: CountingObject, nowMs: number): number {
  const failure = currentFailure(object);
  if (failure?.nextRetryAt === undefined) return 0;
  // What stalls is observed meanwhile: somebody may be mending it. Only its step is held back.
  if (categoryPolicies[failure.category].next === "stall") return 0;
  const retryMs = Date.parse(failure.nextRetryAt);
  return Math.min(retryMs - nowMs, retryMs - Date.parse(failure.lastAt));
}

/** A look that failed is not repeated so soon because something else wakes the object. */
const lookAgainMs = 10_000;

/**
 * How long a look that failed and was counted is not repeated, and does not count again. Looks at
 * several places share one object, and each of them wakes it.
 */
export function heldLookMs(object: CountingObject, nowMs: number): number {
  const failure = currentFailure(object);
  if (failure?.nextRetryAt === undefined || failure.step !== undefined) return 0;
  const dueMs = Math.min(Date.parse(failure.nextRetryAt), Date.parse(failure.lastAt) + lookAgainMs);
  return Math.min(dueMs - nowMs, lookAgainMs);
}

/** The epoch is written before anything else is done: soon, but no more often than each second. */
const epochDelaysMs = [1_000, 2_000, 5_000, 10_000, 30_000];
const epochMsMost = 60_000;

/**
 * How soon the epoch of an installation is written again after it could not be written so often in
 * a row. It has no record: each run reads it and writes it anew, and a restart tries at once.
 */
export function epochRetryMs(category: Failure["category"], attempts: number): number {
  if (categoryPolicies[category].next === "stall") return epochMsMost;
  return epochDelaysMs[attempts - 1] ?? epochMsMost;
}

/**
 * A step that failed as often as it may. It stays so until the declaration changes or a person asks
 * for another try. Work is given up, observing is not: what failed at no step is observed again.
 */
export function isGivenUp(object: CountingObject): boolean {
  const failure = currentFailure(object);
  if (failure?.step === undefined || failure.nextRetryAt !== undefined) return false;
  return categoryPolicies[failure.category].next === "retry";
}
