import type { Failure } from "../../hypervisor/index.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { describeFailure, type StatusFailure } from "../failures/index.ts";
import type { Reach } from "../hypervisor/index.ts";
import { declarationDigest, heldLookMs, judgeFailure, type Verdict } from "../operations/index.ts";
import type { Copy } from "./plan.ts";
import { copiesOf, writeImage, type ImageTurn } from "./turn.ts";

/** All is as it should be, as far as it was observed. */
export async function rest(
  turn: ImageTurn,
  copies: readonly Copy[],
  more: { readonly isWanted?: boolean; readonly isListed?: boolean } = {},
): Promise<Outcome> {
  await writeImage(turn, { copies, ...more });
  return settled;
}

interface TroubleAt {
  readonly copies?: readonly Copy[];
  readonly hypervisor?: string;
}

/** Something is wrong with the image as a whole: nothing was tried, so it is looked at again. */
export async function trouble(
  turn: ImageTurn,
  failure: Failure,
  { copies = copiesOf(turn), hypervisor }: TroubleAt = {},
): Promise<Outcome> {
  const heldBackMs = heldTrouble(turn, failure);
  if (heldBackMs > 0) {
    turn.trouble ??= { failure: oldFailure(turn) };
    await writeImage(turn, { copies });
    return again(failure.category, heldBackMs);
  }
  const { deps, image } = turn;
  const verdict = judgeFailure(image, failure, { step: undefined, random: deps.random });
  const { isStalled, afterMs } = verdict;
  const isFirst = turn.trouble === undefined;
  const described = describeTrouble(turn, failure, verdict);
  turn.trouble ??= { failure: described, isStalled };
  await writeImage(turn, { copies });
  if (isFirst) reportTrouble(turn, failure, { verdict, described, hypervisor });
  return again(failure.category, isStalled ? lookMs : afterMs);
}

/** What the status told when the turn began: its own writes are no older failures. */
function oldFailure({ failure, image }: ImageTurn): StatusFailure | undefined {
  return failure ?? image.status?.failure;
}

/** For how long the same failure does not count again. */
function heldTrouble(turn: ImageTurn, { category }: Failure): number {
  const old = oldFailure(turn);
  if (old?.category !== category) return 0;
  const { metadata } = turn.image;
  return heldLookMs({ metadata, status: { failure: old } }, turn.deps.clock.nowMs());
}

function describeTrouble(turn: ImageTurn, failure: Failure, verdict: Verdict): StatusFailure {
  const { attempts, isStalled, afterMs, retriesOnTimer } = verdict;
  const nowMs = turn.deps.clock.nowMs();
  const nextRetryMs = retriesOnTimer && !isStalled ? nowMs + afterMs : undefined;
  const declaration = declarationDigest(turn.image);
  return describeFailure(failure, {
    nowMs,
    old: oldFailure(turn),
    attempts,
    nextRetryMs,
    declaration,
  });
}

interface Troubled {
  readonly verdict: Verdict;
  readonly described: StatusFailure;
  readonly hypervisor: string | undefined;
}

function reportTrouble(
  turn: ImageTurn,
  failure: Failure,
  { verdict, described, hypervisor }: Troubled,
): void {
  const { attempts, isStalled, afterMs } = verdict;
  const old = oldFailure(turn);
  const isNew = old?.category !== failure.category;
  turn.deps.reports.failed(turn.image, failure, {
    hypervisor,
    attempts,
    isNew,
    isStalled,
    wasStalled: !isNew && old.nextRetryAt === undefined,
    retryInMs: described.nextRetryAt === undefined ? undefined : afterMs,
  });
}

/** What a look was enough to refuse is looked at again: somebody may have mended it. */
const lookMs = 60_000;
/** Somebody looks after the Hypervisor; this is for the case that what it finds wakes nobody. */
const overdueMs = 60_000;

/**
 * The Hypervisor is away, and only the one who looks after it asks it anything. Nothing was tried,
 * so no attempt is counted, however often the image is looked at meanwhile.
 */
export async function waitForHypervisor(turn: ImageTurn, waiting: Waiting): Promise<Outcome> {
  const { away, hypervisor, copies = copiesOf(turn) } = waiting;
  const { failure, nextLookMs } = away;
  if (nextLookMs === undefined) return trouble(turn, failure, { copies, hypervisor });
  const { deps } = turn;
  const old = oldFailure(turn);
  const isNew = old?.category !== failure.category;
  const attempts = isNew ? 1 : old.attempts;
  const waitingFor = { kind: "Dependency", name: `Hypervisor ${hypervisor}` } as const;
  const nowMs = deps.clock.nowMs();
  const described = describeFailure(failure, { nowMs, old, attempts });
  const waitMs = Math.max(nextLookMs - nowMs, overdueMs);
  const isFirst = turn.trouble === undefined;
  turn.trouble ??= { failure: described, waitingFor };
  await writeImage(turn, { copies });
  if (!isFirst) return again(failure.category, waitMs);
  const told = { attempts, isNew, isStalled: false, wasStalled: false, hypervisor };
  deps.reports.failed(turn.image, failure, told);
  return again(failure.category, waitMs);
}

export interface Waiting {
  readonly away: Reach & { readonly is: "away" };
  readonly hypervisor: string;
  readonly copies?: readonly Copy[];
}
