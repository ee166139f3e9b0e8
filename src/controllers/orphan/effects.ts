import { again, type Outcome } from "../../runtime/index.ts";
import { nodeOf } from "../hypervisor/index.ts";
import {
  failedStepsOf,
  failedTimes,
  isDone,
  keyOf,
  performOperation,
  type FailedStep,
  type OperationRecord,
  type Performed,
  type PlannedOperation,
} from "../operations/index.ts";
import { failOrphan, holdBack } from "./failing.ts";
import { observationOf, seenPart, thingText } from "./observation.ts";
import {
  changedState,
  concludeSettlement,
  endedAtSweep,
  failOperation,
  isToBeListed,
  slotsFor,
  subjectOf,
  waitUnconfirmed,
  type WorkReason,
} from "./settling.ts";
import type { Prepared } from "./steps.ts";
import { writeOrphan, type OrphanTurn, type OrphanWrite } from "./turn.ts";

/** Soon while somebody may be about to end it, and seldom when it has gone on for long. */
const waitMsFirst = 5_000;
const waitMsMost = 60_000;
/** A place in line is kept by whoever asks for it now and then. */
const slotMs = 30_000;
const fencedMs = 1_000;
const lookMs = 1_000;

/** Does what was prepared, or says why nothing is done. */
export async function perform(
  turn: OrphanTurn,
  prepared: Prepared,
  reason: WorkReason,
): Promise<Outcome> {
  switch (prepared.do) {
    case "begin":
      return begin(turn, prepared, reason);
    case "fail":
      return failOrphan(turn, prepared.failure, prepared.tried);
    case "wait":
      await writeOrphan(turn, { is: "waiting", for: "Lock", name: prepared.name });
      return again("Waiting", rarerMs(turn));
    case "look":
      return lookAgain(turn);
  }
}

/** It is not as the sweep saw it. A sweep wakes whoever asked for it, so it is asked for once. */
export async function lookAgain(turn: OrphanTurn): Promise<Outcome> {
  const waited = turn.orphan.status?.waitingFor;
  await writeOrphan(turn, changedState);
  if (waited?.kind !== changedState.for) {
    turn.deps.sweeps.hurry(turn.orphan.spec.hypervisor);
  }
  return again("Changed", rarerMs(turn));
}

/** Nothing was sent. The longer it waits, the more seldom it looks: from the status alone. */
function rarerMs({ orphan, deps }: OrphanTurn): number {
  const sinceMs = Date.parse(orphan.status?.waitingFor?.since ?? "") || 0;
  return Math.min(Math.max(deps.clock.nowMs() - sinceMs, waitMsFirst), waitMsMost);
}

type Beginning = Extract<Prepared, { do: "begin" }>;

/** Performs one operation by the engine, and says what follows from it. */
async function begin(turn: OrphanTurn, beginning: Beginning, reason: WorkReason): Promise<Outcome> {
  const { deps, key, connection, operation: before } = turn;
  if (connection.observeOnly !== undefined) return failOrphan(turn, connection.observeOnly);
  const planned = plannedOf(turn, beginning);
  const { step, operation } = planned;
  if (before?.settlement.is === "unconfirmed") return waitUnconfirmed(before.settlement);
  const tried = keyOf(operation).key;
  const held = await holdBack(turn, { step, tried });
  if (held !== undefined) return held;
  const performed = await performOperation(deps.operations, subjectOf(turn), {
    planned,
    before,
    wake: () => deps.wake(key),
    write: (record) => writeIntent(turn, { record, reason }),
  });
  return conclude(turn, { step, key: tried }, performed);
}

function plannedOf(turn: OrphanTurn, beginning: Beginning): PlannedOperation {
  const { step, operation, intent } = beginning;
  const { orphan } = turn;
  return {
    step,
    operation,
    intent,
    slots: slotsFor(turn, step, nodeOf(operation)),
    failedTimes: failedTimes(orphan, step),
  };
}

/** The intent is in the status before the hypervisor hears of it. */
async function writeIntent(
  turn: OrphanTurn,
  { record, reason }: { readonly record: OperationRecord; readonly reason: WorkReason },
): Promise<void> {
  const { deps } = turn;
  const { intent: message, step } = record;
  const state = { is: "working", reason, message } as const;
  await writeOrphan(turn, state, {
    operation: record,
    failedSteps: stillFailed(turn),
    ...(reason === "DestroyingByPolicy" ? { decidedFor: chosenFor(turn) } : {}),
  });
  deps.events.event(turn.orphan, { type: "Normal", reason, message });
  // Every use of the account for unlocking is reported.
  const isUnlock = step === "Unlock" || turn.orphan.spec.kind === "Husk";
  if (isUnlock) deps.events.event(turn.orphan, { type: "Warning", reason: "UnlockUsed", message });
}

/** The policy lets go what the last sweep found, and nothing else that has the same id later. */
function chosenFor({ orphan, find }: OrphanTurn): NonNullable<OrphanWrite["decidedFor"]> {
  const { generation = 0 } = orphan.metadata;
  return find === undefined
    ? { generation }
    : { generation, observation: observationOf(orphan, find), seen: thingText(seenPart(find)) };
}

/** A step that ended well counts from the beginning. */
function stillFailed({ orphan, operation }: OrphanTurn): readonly FailedStep[] {
  const failed = failedStepsOf(orphan);
  if (operation === undefined || !isDone(operation.settlement)) return failed;
  return failed.filter(({ step }) => step !== operation.record.step);
}

/** What performing it came to turns into what happens next. */
async function conclude(
  turn: OrphanTurn,
  tried: { readonly step: string; readonly key: string },
  performed: Performed,
): Promise<Outcome> {
  switch (performed.is) {
    case "queued": {
      turn.isInLine = true;
      await writeOrphan(turn, { is: "waiting", for: "Slot", name: performed.waitsFor });
      return again("Slot", slotMs);
    }
    case "fenced":
      return again("Fenced", fencedMs);
    case "blocked":
      return again("Blocked", performed.waitMs);
    case "unreported":
      return failOperation(turn, performed.before);
    case "unprepared":
    case "vain":
      return failOrphan(turn, performed.failure, tried);
    case "performed":
      return concludeBegun(turn, performed);
  }
}

async function concludeBegun(
  turn: OrphanTurn,
  { record, settlement }: Extract<Performed, { is: "performed" }>,
): Promise<Outcome> {
  const resumed = { record, settlement };
  turn.operation = resumed;
  // A sweep that begins from now on sees what it did.
  if (isToBeListed(resumed)) endedAtSweep(turn, record);
  if (settlement.is === "unconfirmed") return again("UnknownOutcome", lookMs);
  return (await concludeSettlement(turn, resumed)) ?? again(record.step);
}
