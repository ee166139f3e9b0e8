import type { Operation } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import {
  annotationToken,
  failedStepsOf,
  failedTimes,
  isDone,
  keyOf,
  performOperation,
  type FailedStep,
  type OperationRecord,
  type Performed,
  type PlannedOperation,
  type Settlement,
} from "../operations/index.ts";
import { recordGrowth } from "./growth.ts";
import { closeAllocation, recordAllocation, withAllocation } from "./allocation.ts";
import { endBeginning, waitInLine } from "./beginning.ts";
import { failVm, holdFailed } from "./failing.ts";
import { withoutStep, withRecent, type RecentStep } from "./flapping.ts";
import { failOperation, noteEnd, subjectOf, waitBlocked, waitForTask } from "./settling.ts";
import { slotsOf, traitsOf, type Step } from "./steps.ts";
import { stopFlapping } from "./stop-flapping.ts";
import { lastDone, writeView, type ConnectedTurn } from "./turn.ts";

/** What comes before the first copy, or the first change of what is not copied. */
const firstSteps: ReadonlySet<string> = new Set(["Create", "UploadSeed"]);
const fencedMs = 1_000;
const lookMs = 1_000;

/** Does one step by the operations engine, and says what follows from it. */
export async function performStep(turn: ConnectedTurn, step: Step): Promise<Outcome> {
  const { deps, key } = turn;
  const planned = plannedOf(turn, step);
  const tried = keyOf(planned.operation).key;
  const held = await holdFailed(turn, { step: step.name, tried });
  if (held !== undefined) return held;
  const conflict = await stopFlapping(turn, step);
  if (conflict !== undefined) return conflict;
  const performed = await performOperation(deps.operations, subjectOf(turn), {
    planned,
    before: turn.operation,
    wake: () => deps.wake(key),
    prepare: async ({ id }) => {
      await recordGrowth(turn, step.operation);
      return recordAllocation(turn, step.operation, id);
    },
    prepared: (operation) => withAllocation(turn, operation),
    write: (record) => writeIntent(turn, step, record),
  });
  return conclude(turn, step, performed);
}

function plannedOf(turn: ConnectedTurn, step: Step): PlannedOperation {
  const { vm, connection } = turn;
  return {
    step: step.name,
    operation: repeated(turn, step),
    intent: step.intent,
    slots: slotsOf(step, connection),
    failedTimes: failedTimes(vm, step.name),
  };
}

/** A grow that was made before, and whose effect is not observed. */
function repeated(turn: ConnectedTurn, { name, operation }: Step): Operation {
  if (operation.kind !== "grow") return operation;
  const isAgain = lastDone(turn)?.key === keyOf(operation).key;
  return { ...operation, isRepeated: isAgain || failedTimes(turn.vm, name) > 0 };
}

/**
 * The intent is written over the very version that the plan was made for; if that is old, the write
 * is refused and nothing was done.
 */
async function writeIntent(
  turn: ConnectedTurn,
  step: Step,
  operation: OperationRecord,
): Promise<void> {
  const { memory } = turn;
  if (!firstSteps.has(step.name)) endBeginning(turn);
  delete memory.line;
  // From here on it is no longer true that nothing was ever sent.
  delete memory.reserved;
  const { reason } = traitsOf(step.name);
  await writeView(turn, {
    state: { is: "working", reason, message: step.intent },
    operation,
    failedSteps: stillFailed(turn, operation),
    recentSteps: recentWith(turn, step, operation),
    ...(step.name === "Start" ? { handled: restartHandled(turn) } : {}),
  });
  tellUnlock(turn, step);
  if (step.name === "UploadSeed" && turn.seen !== undefined) memory.sight = turn.seen;
}

/** The operation before it counts only where it ended well, and this is not the same once more. */
function recentWith(
  { vm, operation: before }: ConnectedTurn,
  step: Step,
  { key, since: at }: OperationRecord,
): readonly RecentStep[] {
  const recent = vm.status?.recentSteps ?? [];
  const isVain = before !== undefined && (!isDone(before.settlement) || before.record.key === key);
  return withRecent(isVain ? withoutStep(recent, before.record) : recent, { vm, step, at });
}

/** A step that ended well counts from the beginning, once something else is to be done. */
function stillFailed(turn: ConnectedTurn, { key }: OperationRecord): readonly FailedStep[] {
  const ended = lastDone(turn);
  const failed = failedStepsOf(turn.vm);
  if (ended === undefined || ended.key === key) return failed;
  return failed.filter((one) => one.step !== ended.step);
}

/** Every use of the account for unlocking is reported. */
function tellUnlock({ deps, vm }: ConnectedTurn, { name, intent: message }: Step): void {
  if (name !== "Unlock" && name !== "DestroyPlaceholder") return;
  deps.events.event(vm, { type: "Warning", reason: "UnlockUsed", message });
}

/** What performing it came to turns into what happens next. */
async function conclude(turn: ConnectedTurn, step: Step, performed: Performed): Promise<Outcome> {
  switch (performed.is) {
    case "queued":
      return waitInLine(turn, performed.waitsFor);
    case "fenced":
      return waitForFence(turn);
    case "blocked":
      return again("Blocked", performed.waitMs);
    case "unreported":
      return failOperation(turn, performed.before);
    case "unprepared":
      return failVm(turn, performed.failure, { step: step.name });
    case "vain":
      turn.operation = undefined;
      return failVm(turn, performed.failure, { step: step.name, isOver: true });
    case "performed":
      turn.operation = performed;
      return concludeBegun(turn, performed);
  }
}

/** A new leader: until the requests of the one before can no longer land, nothing is sent. */
async function waitForFence(turn: ConnectedTurn): Promise<Outcome> {
  const leftMs = turn.deps.writableInMs();
  const name = "the requests of an earlier leader to be over";
  await writeView(turn, { state: { is: "waiting", waitingFor: { kind: "Leader", name } } });
  return again("Fenced", Math.max(leftMs, fencedMs));
}

interface Begun {
  readonly record: OperationRecord;
  readonly settlement: Settlement;
}

/**
 * Nothing was sent: so nothing can have been left. A refusal does not show it: a request may have
 * arrived twice, and a hypervisor may fail after it has written the configuration.
 */
function isUnsent(settlement: Settlement): boolean {
  return settlement.is === "ended" && isFenced(settlement);
}

async function concludeBegun(turn: ConnectedTurn, { record, settlement }: Begun): Promise<Outcome> {
  if (isUnsent(settlement)) await closeAllocation(turn, record.id);
  switch (settlement.is) {
    case "running":
      return waitForTask(turn, record, settlement.task);
    case "blocked":
      return waitBlocked(record);
    case "failed":
      return failOperation(turn, { record, settlement });
    case "sending":
    case "unconfirmed":
    case "unseen":
    case "doubtful":
      return again("UnknownOutcome", lookMs);
    case "ended":
    case "ignored":
      noteEnd(turn, { record, settlement });
      return again(record.step, settlement.is === "ended" && isFenced(settlement) ? fencedMs : 0);
  }
}

function isFenced({ outcome }: Extract<Settlement, { is: "ended" }>): boolean {
  return outcome === "Fenced";
}

export function restartHandled({ vm }: ConnectedTurn): { handledRestartAt?: string } {
  const asked = annotationToken(vm.metadata, "restartAt");
  return asked === undefined ? {} : { handledRestartAt: asked };
}
