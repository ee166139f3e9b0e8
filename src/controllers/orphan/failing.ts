import type { Orphan } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { again, stalled, type Outcome } from "../../runtime/index.ts";
import { describeFailure, type StatusFailure } from "../failures/index.ts";
import {
  declarationDigest,
  failedBefore,
  failedStepsOf,
  failureAgain,
  heldStep,
  isGivenUp,
  judgeFailure,
  retryWaitMs,
  withFailed,
  type Verdict,
} from "../operations/index.ts";
import { writeOrphan, type OrphanTurn } from "./turn.ts";

/** What was tried; absent: a look was enough. */
export interface Tried {
  readonly step: string;
  /** The key of the operation. */
  readonly key: string | undefined;
}

/** Says what failed and what comes next, by the one table of categories. */
export async function failOrphan(
  turn: OrphanTurn,
  failure: Failure,
  tried?: Tried,
): Promise<Outcome> {
  const { deps, orphan } = turn;
  const step = tried?.step;
  const verdict = judgeFailure(orphan, failure, { step, random: deps.operations.random });
  const { isStalled, afterMs, retriesOnTimer } = verdict;
  const described = describe(turn, failure, { step, verdict });
  const state = { is: "failed", failure: described, isStalled } as const;
  await writeOrphan(turn, state, { failedSteps: failedStepsWith(turn, described, tried) });
  report(turn, failure, { step, verdict, before: orphan });
  if (isStalled && !retriesOnTimer) return stalled(failure.category);
  return again(failure.category, afterMs);
}

interface Judged {
  readonly step: string | undefined;
  readonly verdict: Verdict;
}

function describe(
  { deps, orphan }: OrphanTurn,
  failure: Failure,
  { step, verdict: { attempts, afterMs, retriesOnTimer } }: Judged,
): StatusFailure {
  const nowMs = deps.clock.nowMs();
  return describeFailure(failure, {
    nowMs,
    old: failedBefore(orphan, step, failure.category) ?? orphan.status?.failure,
    attempts,
    step,
    nextRetryMs: retriesOnTimer ? nowMs + afterMs : undefined,
    declaration: declarationDigest(orphan),
  });
}

function report(
  { deps, orphan, operation }: OrphanTurn,
  failure: Failure,
  { step, verdict, before }: Judged & { readonly before: Orphan },
): void {
  const { attempts, isStalled, afterMs, retriesOnTimer } = verdict;
  deps.reports.failed(orphan, failure, {
    step,
    operation: step === undefined ? undefined : operation?.record,
    attempts,
    isNew: before.status?.failure?.category !== failure.category,
    isStalled,
    wasStalled: wasStalled(before),
    retryInMs: retriesOnTimer && !isStalled ? afterMs : undefined,
  });
}

function failedStepsWith(
  { orphan }: OrphanTurn,
  failure: StatusFailure,
  tried: Tried | undefined,
): ReturnType<typeof failedStepsOf> {
  if (tried === undefined) return failedStepsOf(orphan);
  return withFailed(orphan, tried.step, { failure, tried: tried.key });
}

function wasStalled({ status }: Orphan): boolean {
  const { conditions = [] } = status ?? {};
  return conditions.some((one) => one.type === "Stalled" && one.status === "True");
}

/** Whether a failure still waits for its next retry, or is the last one. */
export function waitsForRetry({ orphan, deps }: OrphanTurn): Outcome | undefined {
  const waitMs = retryWaitMs(orphan, deps.clock.nowMs());
  if (waitMs > 0) return again("Backoff", waitMs);
  return isGivenUp(orphan) ? stalled("GivenUp") : undefined;
}

/** Exactly this failed before, and its time has not come again, whatever was reported since. */
export async function holdBack(
  turn: OrphanTurn,
  { step, tried }: { readonly step: string; readonly tried: string },
): Promise<Outcome | undefined> {
  const { orphan, deps } = turn;
  const held = heldStep(orphan, { step, tried }, deps.clock.nowMs());
  if (held === undefined) return undefined;
  const { waitMs, isStalled } = held;
  const failure = failureAgain(orphan, held.failed);
  await writeOrphan(turn, { is: "failed", failure, isStalled });
  return Number.isFinite(waitMs) ? again(failure.category, waitMs) : stalled(failure.category);
}
