import type { VirtualMachine } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { Begun, Operation, TaskHandle } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { endBeginning, waitInLine } from "./beginning.ts";
import { digestOf, failedStepsOf, type FailedStep } from "./failed-steps.ts";
import { failVm, holdRefused } from "./failing.ts";
import { saidOf } from "./said.ts";
import { noWorker, ofStep, taskKind, waitBlocked } from "./settling.ts";
import { slotsOf, stepTraits, type Step } from "./steps.ts";
import type { StatusOperation } from "./status.ts";
import { noteDone, settle, writeView, type ConnectedTurn } from "./turn.ts";

/** What comes before the first copy, or the first change of what is not copied. */
const firstSteps: ReadonlySet<string> = new Set(["Create", "PutSeed"]);
const fencedMs = 1_000;
const lookMs = 1_000;
/** How often in a row the same may be done without effect. */
const vainMax = 3;

/**
 * Does one step: slots, then the intent, then the effect, and nothing after it. The intent is
 * written over the very version that the plan was made for; if that is old, the write is refused
 * and nothing was done.
 */
export async function performStep(turn: ConnectedTurn, step: Step): Promise<Outcome> {
  const { deps, driver, memory, key, connection } = turn;
  const tried = { step: step.name, digest: digestOf(step.operation) };
  const instead = (await holdRefused(turn, tried)) ?? (await failUndone(turn, step));
  if (instead !== undefined) return instead;
  if (!takeSlots(turn, step)) return waitInLine(turn, slotsOf(step, connection));
  if (!firstSteps.has(step.name)) endBeginning(turn);
  delete memory.line;
  if (!deps.fence.mayWrite()) return waitForFence(turn);
  const operation = operationOf(turn, step);
  delete memory.task;
  // From here on it is no longer true that nothing was ever sent.
  delete memory.reserved;
  memory.tried = tried;
  const { reason } = stepTraits[step.name];
  await writeView(turn, {
    state: { is: "working", reason, message: step.intent },
    operation,
    failedSteps: stillFailed(turn, step),
    ...(step.name === "Start" ? { handled: restartHandled(turn) } : {}),
  });
  turn.isOpen = true;
  tellUnlock(turn, step);
  if (step.name === "PutSeed" && turn.seen !== undefined) memory.sight = turn.seen;
  deps.reports.opened(operation);
  const begun = await driver.begin(repeated(turn, step), deps.fence);
  return conclude(turn, { step, operation, begun, key });
}

/** It was done already, and is to be done again all the same. */
async function failUndone(turn: ConnectedTurn, step: Step): Promise<Outcome | undefined> {
  const { memory } = turn;
  const { undone } = memory;
  delete memory.undone;
  if (undone?.intent === writtenIntent(step)) {
    return failVm(turn, undone.failure, { step: step.name });
  }
  return isInVain(turn, step) ? failInVain(turn, step) : undefined;
}

/** A step that ended well counts from the beginning, once something else is to be done. */
function stillFailed({ memory, vm }: ConnectedTurn, step: Step): readonly FailedStep[] {
  const { ended } = memory;
  delete memory.ended;
  const failed = failedStepsOf(vm);
  if (ended === undefined || ended.intent === writtenIntent(step)) return failed;
  return failed.filter((one) => one.step !== ended.step);
}

/** Every use of the account for unlocking is told. */
function tellUnlock({ deps, vm }: ConnectedTurn, { name, intent: message }: Step): void {
  if (name !== "Unlock" && name !== "ClearHusk") return;
  deps.events.event(vm, { type: "Warning", reason: "UnlockUsed", message });
}

/** A new leader: until the requests of the one before can no longer land, nothing is sent. */
async function waitForFence(turn: ConnectedTurn): Promise<Outcome> {
  const leftMs = turn.deps.writableInMs();
  const name = "the requests of an earlier leader to be over";
  await writeView(turn, { state: { is: "waiting", waitingFor: { kind: "Leader", name } } });
  return again("Fenced", Math.max(leftMs, fencedMs));
}

/**
 * It was done, ended well each time, and the same has to be done again: a guest that powers itself
 * off, or a hypervisor that says done and is not. Then it is a failure like any other.
 */
function isInVain({ memory, vm }: ConnectedTurn, { name, intent }: Step): boolean {
  const times = memory.done?.intent === writtenIntent({ intent }) ? memory.done.times : 0;
  return times >= (vm.status?.failure?.step === name ? 1 : vainMax);
}

function failInVain(turn: ConnectedTurn, { name, intent }: Step): Promise<Outcome> {
  const times = turn.memory.done?.times ?? 0;
  turn.memory.done = { intent: writtenIntent({ intent }), times: 0 };
  const message = `The hypervisor says that this was done, and the machine is not so: ${intent}`;
  const cause = `ended well ${times} times in a row, without effect`;
  return failVm(turn, { category: "CreationFailed", message, cause }, { step: name });
}

function repeated({ memory, vm }: ConnectedTurn, { name, operation, intent }: Step): Operation {
  if (operation.kind !== "grow") return operation;
  const isRepeated = memory.done?.intent === writtenIntent({ intent }) || timesTried(vm, name) > 0;
  return { ...operation, isRepeated };
}

interface Effect {
  readonly step: Step;
  readonly operation: StatusOperation;
  readonly begun: Begun;
  readonly key: string;
}

/** The one place where the answer to an attempt becomes what happens next. */
async function conclude(turn: ConnectedTurn, effect: Effect): Promise<Outcome> {
  const { step, operation, begun } = effect;
  const task = begun.outcome === "task" ? { task: begun.task } : {};
  turn.deps.reports.operated(turn.vm, { ...operation, ...task }, begun.outcome);
  switch (begun.outcome) {
    case "done":
      noteDone(turn, operation);
      settle(turn);
      return again(step.name);
    case "progressed":
      settle(turn);
      return again(step.name);
    case "task":
      return begunTask(turn, operation, begun.task);
    case "refused":
      return isTaken(step, begun)
        ? lookWhose(turn, operation, begun)
        : concludeRefused(turn, effect, begun);
    case "blocked":
      return waitBlocked(turn, operation, begun.waitsFor);
    case "changed":
      settle(turn);
      return again("Changed");
    case "fenced":
      settle(turn);
      return again("Fenced", fencedMs);
    case "unknown":
      return again("UnknownOutcome", lookMs);
  }
}

type Refused = Extract<Begun, { outcome: "refused" }>;

const makingSteps: ReadonlySet<Step["name"]> = new Set(["Create", "Clone", "MakeKeeper"]);

/** The id belongs to something. That may be what this very request made, if it arrived twice. */
function isTaken({ name }: Step, { failure }: Refused): boolean {
  return makingSteps.has(name) && failure.category === "IdentityConflict";
}

function lookWhose(
  { memory }: ConnectedTurn,
  { intent }: StatusOperation,
  { failure }: Refused,
): Outcome {
  memory.undone = { intent, failure };
  return again("UnknownOutcome", lookMs);
}

async function concludeRefused(
  turn: ConnectedTurn,
  { step, operation }: Effect,
  { failure, leaves }: Refused,
): Promise<Outcome> {
  settle(turn);
  // Nothing else will ever prove whose the empty reservation is.
  const husk = leaves === "Husk" ? { operation: { ...operation, task: noWorker } } : {};
  return failVm(turn, ofStep(failure, operation), { step: step.name, ...husk });
}

function begunTask(turn: ConnectedTurn, operation: StatusOperation, handle: TaskHandle): Outcome {
  const { memory, deps } = turn;
  const sinceMs = deps.clock.monotonicMs();
  memory.task = { operationId: operation.id, handle, sinceMs, isFound: false };
  return again(operation.step, deps.pace.waitMs(taskKind(turn, operation), 0));
}

function takeSlots({ deps, key, memory, connection }: ConnectedTurn, step: Step): boolean {
  const names = slotsOf(step, connection);
  memory.lease?.release();
  const lease = deps.slots.tryAcquire(names, key, { wake: () => deps.wake(key) });
  if (lease === "waiting") return false;
  memory.lease = lease;
  return true;
}

function operationOf({ deps, vm }: ConnectedTurn, step: Step): StatusOperation {
  const nowMs = deps.clock.nowMs();
  const { operation: old } = vm.status ?? {};
  const intent = writtenIntent(step);
  const unsettled = old?.intent === intent ? old.attempt : 0;
  return {
    id: deps.random.uuid(),
    step: step.name,
    intent,
    attempt: Math.max(timesTried(vm, step.name), unsettled) + 1,
    since: formatTime(nowMs),
    // Times in the API are whole seconds, rounded down: one more is the same or later.
    deadline: formatTime(nowMs + stepTraits[step.name].settleMs + 1_000),
  };
}

/** As much of it as stands in a status. */
function writtenIntent({ intent }: Pick<Step, "intent">): string {
  return intent.slice(0, 1024);
}

/** How often it failed, whatever else failed in between. */
function timesTried({ status }: VirtualMachine, name: string): number {
  const { failure, failedSteps = [] } = status ?? {};
  const told = failure?.step === name ? failure.attempts : 0;
  const counts = failedSteps.filter(({ step }) => step === name).map(({ attempts }) => attempts);
  return Math.max(told, ...counts);
}

export function restartHandled({ vm }: ConnectedTurn): { handledRestartAt?: string } {
  const asked = saidOf(vm.metadata, "restartAt");
  return asked === undefined ? {} : { handledRestartAt: asked };
}
