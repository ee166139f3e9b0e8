import type { Failure } from "../../hypervisor/index.ts";
import { again, stalled, type Outcome } from "../../runtime/index.ts";
import { describeFailure, type StatusFailure } from "../failures/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import {
  isRetryAsked,
  declarationDigest,
  failedBefore,
  failureAgain,
  heldLookMs,
  judgeFailure,
  type FailedStep,
  type OperationRecord,
  type Verdict,
} from "../operations/index.ts";
import { comingCopy, copyAt, countedCopy, withCopy, withFailure } from "./copies.ts";
import type { Copy, CopyPlace } from "./plan.ts";
import { isUnreachable } from "./status.ts";
import { copiesOf, writeImage, type ImageTurn } from "./turn.ts";

/** What a look was enough to refuse is looked at again: somebody may have mended it. */
const lookMs = 60_000;

export interface CopyFailure {
  readonly failure: Failure;
  /** The operation that failed; absent: nothing was tried, or what was tried is still open. */
  readonly record?: OperationRecord | undefined;
  /** What is known of the copy by now; absent: what its status says. */
  readonly copy?: Copy;
}

/** Says what failed with a copy, and when it is tried again, by the one table of categories. */
export async function failCopy(
  turn: ImageTurn,
  { place, connection }: { readonly place: CopyPlace; readonly connection: Connection },
  { failure, record, copy: known }: CopyFailure,
): Promise<Outcome> {
  const { deps } = turn;
  const step = record?.step;
  const counted = countedCopy(turn.image, place);
  const { failure: old } = counted.status ?? {};
  const verdict = judgeFailure(counted, failure, { step, random: deps.random });
  const { attempts, isStalled, afterMs, retriesOnTimer } = verdict;
  const nowMs = deps.clock.nowMs();
  const nextRetryMs = retriesOnTimer ? nowMs + afterMs : undefined;
  const declaration = declarationDigest(counted);
  const before = failedBefore(counted, step, failure.category) ?? old;
  const moment = { nowMs, old: before, attempts, step, nextRetryMs, declaration };
  const copy = known ?? failedCopy(turn, place, { category: failure.category, record });
  await tell(turn, copy, describeFailure(failure, moment));
  deps.reports.failed(turn.image, failure, {
    hypervisor: connection.name,
    step,
    operation: record,
    attempts,
    isNew: old?.category !== failure.category,
    isStalled,
    wasStalled: old !== undefined && old.nextRetryAt === undefined,
    retryInMs: retriesOnTimer && !isStalled ? afterMs : undefined,
  });
  return nextOf(failure, verdict, step);
}

async function tell(turn: ImageTurn, copy: Copy, failure: StatusFailure): Promise<void> {
  const failed = withFailure(turn.image, copy, failure);
  await writeImage(turn, { copies: withCopy(copiesOf(turn), failed) });
}

/** A step at a place is held back: its failure is told again, if another one was meanwhile. */
export async function tellHeld(
  turn: ImageTurn,
  place: CopyPlace,
  failed: FailedStep,
): Promise<void> {
  const copy = copyAt(copiesOf(turn), place);
  const failure = failureAgain(countedCopy(turn.image, place), failed);
  if (copy !== undefined && failure !== copy.failure) await tell(turn, copy, failure);
}

/** How long a place is left alone at which a look failed; undefined: nothing holds it back. */
export function heldLook(
  { image, deps }: ImageTurn,
  { place }: { readonly place: CopyPlace },
): Outcome | undefined {
  const counted = countedCopy(image, place);
  if (isRetryAsked(image)) return undefined;
  const leftMs = heldLookMs(counted, deps.clock.nowMs());
  return leftMs > 0 ? again("Backoff", leftMs) : undefined;
}

function nextOf(
  { category }: Failure,
  { isStalled, retriesOnTimer, afterMs }: Verdict,
  step: string | undefined,
): Outcome {
  if (!isStalled || retriesOnTimer) return again(category, afterMs);
  return step === undefined ? again("Look", lookMs) : stalled(category);
}

interface CopyEnd {
  readonly category: Failure["category"];
  readonly record: OperationRecord | undefined;
}

/**
 * Of an operation that nobody could look at the outcome is still open; and where the hypervisor
 * does not answer, nothing has failed.
 */
export function failedCopy(turn: ImageTurn, place: CopyPlace, { category, record }: CopyEnd): Copy {
  const known = copyAt(copiesOf(turn), place) ?? comingCopy(turn.image, place);
  const { operation, ...copy } = known;
  const isOpen = record === undefined && operation !== undefined;
  const isKept = copy.state === "Present" || isUnreachable({ category, step: record?.step });
  const state = isKept ? copy.state : "Failed";
  return { ...copy, ...(isOpen ? { operation } : {}), state };
}
