import type { Failure } from "../../hypervisor/index.ts";
import { again, settled, stalled, type Outcome } from "../../runtime/index.ts";
import { declarationDigest, type OperationRecord, type Resumed } from "../operations/index.ts";
import { adopt } from "./adopt.ts";
import { planOrphan, type DecisionInput, type OrphanNext } from "./decide.ts";
import { perform } from "./effects.ts";
import { failOrphan, waitsForRetry } from "./failing.ts";
import { changedText, decidedForOf, observationOf } from "./observation.ts";
import { orphanName } from "./orphan-name.ts";
import { endedAtSweep, isToBeListed, settleOperation } from "./settling.ts";
import { isLongAbsent } from "./sightings.ts";
import { prepareDestruction, retireClaim } from "./steps.ts";
import {
  forgetOrphan,
  leaveSlots,
  removeOrphan,
  writeOrphan,
  type OrphanDeps,
  type OrphanTurn,
} from "./turn.ts";

const unseenMs = 30_000;
const listMs = 1_000;
const taskMs = 1_000;
const fencedMs = 1_000;
/** What was reclaimed can be read for so long. */
const goneMs = 60 * 60_000;

/** Carries out what was decided about one Orphan, one step at a time. */
export async function reconcileOrphan(key: string, deps: OrphanDeps): Promise<Outcome> {
  const orphan = deps.orphans.get(key);
  if (orphan === undefined || orphan.metadata.deletionTimestamp !== undefined) {
    forgetOrphan(key, deps);
    return settled;
  }
  const { hypervisor } = orphan.spec;
  // Of a Hypervisor that is gone nothing can be said any more, and nothing is done.
  if (deps.hypervisors.get(hypervisor) === undefined) return removeOrphan(orphan, deps);
  const reach = deps.connections.of(hypervisor);
  if (reach.is === "away") return again("Unseen", unseenMs);
  const memory = deps.memory.get(key) ?? {};
  deps.memory.set(key, memory);
  const { connection } = reach;
  const sweep = deps.sweeps.of(hypervisor);
  const seen = { find: undefined, sighting: undefined };
  const turn: OrphanTurn = { key, deps, memory, connection, sweep, ...seen, orphan };
  observe(turn);
  try {
    return await settleAndPlan(turn);
  } finally {
    leaveSlots(turn);
  }
}

/** What the last sweep of this process shows of it. */
function observe(turn: OrphanTurn): void {
  const { sweep, connection, orphan } = turn;
  const name = orphanName(connection.systemId, orphan.spec);
  turn.find = sweep.finds.get(name);
  turn.sighting = sweep.sightings.get(name);
}

/** It was destroyed. What it freed stays readable for a while; then the object goes. */
async function rememberGone({ deps, orphan, find }: OrphanTurn): Promise<Outcome> {
  const { conditions = [] } = orphan.status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  const goneAtMs = Date.parse(ready?.lastTransitionTime ?? "") || 0;
  const leftMs = Math.min(goneAtMs + goneMs - deps.clock.nowMs(), goneMs);
  // The same id again is another thing: a person has to decide about it anew.
  return leftMs <= 0 || find !== undefined ? removeOrphan(orphan, deps) : again("Gone", leftMs);
}

/**
 * What was begun is settled first: a sweep shows what it did only if it begins after its end. A
 * process that has made no sweep yet makes one then, so it needs to remember none.
 */
async function settleAndPlan(turn: OrphanTurn): Promise<Outcome> {
  const { deps, sweep, connection } = turn;
  const isGone = turn.orphan.status?.reclaimed !== undefined;
  const outcome = isGone ? undefined : await settleBegun(turn);
  if (outcome !== undefined) return outcome;
  const { operation } = turn;
  const ended = operation !== undefined && isToBeListed(operation) ? operation.record : undefined;
  const settledAt = ended && endedAtSweep(turn, ended);
  if (!(await deps.sweepFor(connection.name)) || sweep.swept === undefined) {
    return again("Unseen", unseenMs);
  }
  observe(turn);
  return isGone ? rememberGone(turn) : plan(turn, { swept: sweep.swept, ended, settledAt });
}

interface Settled extends Pick<DecisionInput, "swept" | "settledAt"> {
  readonly ended: OperationRecord | undefined;
}

function plan(turn: OrphanTurn, { swept, ended, settledAt }: Settled): Promise<Outcome> {
  const { orphan, find, key, sweep, connection } = turn;
  const graceMs = connection.spec.orphans.graceSeconds * 1000;
  const next = planOrphan({
    spec: orphan.spec,
    find,
    swept,
    operation: ended,
    settledAt,
    node: orphan.status?.node,
    isLongAbsent: isLongAbsent(sweep.absences.get(key), { sweptMs: sweep.sweptMs, graceMs }),
    isChosen: sweep.chosen === key,
    observation: find && observationOf(orphan, find),
    decidedFor: decidedForOf(orphan)?.observation,
  });
  return act(turn, next);
}

async function settleBegun(turn: OrphanTurn): Promise<Outcome | undefined> {
  const isRecorded = turn.orphan.status?.operation !== undefined;
  const waiting = isRecorded ? waitsForRetry(turn) : undefined;
  return waiting ?? settleOperation(turn);
}

/**
 * The policy tried it, could not, and lets another one go meanwhile: why it is still there stays
 * said, until a person decides something.
 */
function isStoppedByPolicy({ orphan, connection }: OrphanTurn): boolean {
  const { failure } = orphan.status ?? {};
  const isSame = failure?.declaration === declarationDigest(orphan);
  return connection.spec.orphans.policy !== "Report" && failure !== undefined && isSame;
}

/** The one place where what was decided becomes what is done. */
async function act(turn: OrphanTurn, next: OrphanNext): Promise<Outcome> {
  const { deps, orphan } = turn;
  switch (next.do) {
    case "remove":
      return removeOrphan(orphan, deps);
    case "finish":
      return finish(turn);
    case "list":
      deps.sweeps.hurry(orphan.spec.hypervisor);
      return again("List", listMs);
    case "wait":
      return again("Wait", taskMs);
    case "vain":
      return failInVain(turn);
    case "rest":
      if (next.as === "undecided" && isStoppedByPolicy(turn)) return settled;
      await writeOrphan(turn, { is: next.as });
      return settled;
    case "refuse":
      await writeOrphan(turn, { is: "notAllowed", message: next.message });
      return stalled("NotAllowed");
    case "changed":
      await writeOrphan(turn, { is: "changed", message: changedText(orphan, next.find) });
      return stalled("ChangedSinceDecision");
    case "adopt":
      return waitsForRetry(turn) ?? adopt(turn);
    case "destroy":
      return waitsForRetry(turn) ?? destroy(turn, next.byPolicy);
  }
}

async function destroy(turn: OrphanTurn, byPolicy: boolean): Promise<Outcome> {
  if (!turn.deps.operations.fence.mayWrite()) return again("Fenced", fencedMs);
  const prepared = await prepareDestruction(turn);
  return perform(turn, prepared, byPolicy ? "DestroyingByPolicy" : "Destroying");
}

/** It was listed again and is not there: only now is it gone, and its space free. */
async function finish(turn: OrphanTurn): Promise<Outcome> {
  const { deps, orphan, connection } = turn;
  const { kind, externalId, hypervisor: name } = orphan.spec;
  if (!(await retireClaim(turn))) return again("Leftovers", listMs);
  const reclaimedBytes = Number(orphan.status?.size ?? 0);
  await writeOrphan(turn, { is: "gone", reclaimedBytes }, { failedSteps: [] });
  deps.figures.reclaimed(name, reclaimedBytes);
  const message = `Destroyed ${kind} ${externalId}: ${reclaimedBytes} bytes were reclaimed.`;
  const hypervisor = deps.hypervisors.get(connection.name);
  for (const object of [turn.orphan, hypervisor]) {
    if (object) deps.events.event(object, { type: "Normal", reason: "OrphanDestroyed", message });
  }
  deps.destroyed(name, externalId);
  return again("Gone", goneMs);
}

/** It was listed again, and it is there: what is said of the attempt is what was heard of it. */
async function failInVain(turn: OrphanTurn): Promise<Outcome> {
  const { orphan, operation } = turn;
  const { externalId } = orphan.spec;
  const cause = operation && doubtOf(operation);
  const message =
    cause === undefined
      ? `The hypervisor says that it was destroyed, and it is still there: ${externalId}`
      : `Nobody says how the work that was to destroy it ended, and it is still there: ${externalId}`;
  const failure: Failure = {
    category: "CreationFailed",
    message,
    ...(cause === undefined ? {} : { cause }),
  };
  return failOrphan(turn, failure, { step: "Destroy", key: operation?.record.key });
}

/** All that was heard of work of which nobody says how it ended. */
function doubtOf({ settlement }: Resumed): string | undefined {
  if (settlement.is !== "doubtful") return undefined;
  return settlement.outcome === "Lost" ? settlement.failure.cause : "no answer came";
}
