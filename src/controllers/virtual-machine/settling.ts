import type { Failure } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { slotNames } from "../hypervisor/index.ts";
import {
  blockedWaitMs,
  isOpen,
  pollMs,
  resumeOperation,
  type FailedOperation,
  type OperationRecord,
  type RecallOf,
  type Resumed,
  type Settlement,
  type Subject,
} from "../operations/index.ts";
import { failVm } from "./failing.ts";
import { cloneHints } from "./fills.ts";
import { recoveredSince } from "./lost-status.ts";
import type { OpenOperation } from "./next.ts";
import { currentStep, traitsOf } from "./steps.ts";
import { annotationOf, loseSight, writeView, type ConnectedTurn } from "./turn.ts";

/** What 0.1 wrote in place of a task: the hypervisor said that it could start none. */
const noWorker = "none";

const sendingMs = 1_000;

/** A VM as the operations engine sees it. */
export function subjectOf(turn: ConnectedTurn): Subject {
  return {
    holder: turn.key,
    driver: turn.driver,
    hypervisor: turn.connection.name,
    object: () => turn.vm,
    record: () => recordOf(turn),
    traitsOf,
    recalls: (record) => recallsOf(turn, record),
    lastTask: () => turn.vm.status?.lastTask,
    slotsOf: (record) => slotsUnderWay(turn, record),
    save: (record) => saveRecord(turn, record),
    saveBlocked: (record, waitsFor) => saveBlocked(turn, record, waitsFor),
  };
}

function recordOf({ vm }: ConnectedTurn): OperationRecord | undefined {
  const { operation } = vm.status ?? {};
  return operation && { ...operation, step: currentStep(operation.step) };
}

async function saveRecord(turn: ConnectedTurn, operation: OperationRecord): Promise<void> {
  const { reason } = traitsOf(operation.step);
  const state = { is: "working", reason, message: operation.intent } as const;
  await writeView(turn, { state, operation });
}

/** Somebody's lock is in the way: that is no failure, and no attempt is counted. */
async function saveBlocked(
  turn: ConnectedTurn,
  operation: OperationRecord,
  waitsFor: string,
): Promise<void> {
  // It was not done: also in this very write it does not count as a change of the VM.
  turn.operation = { record: operation, settlement: { is: "blocked", waitsFor } };
  const waitingFor = { kind: "Lock", name: waitsFor.slice(0, 512) } as const;
  const isPaused = annotationOf(turn.vm.metadata, "paused") === "true";
  const state = isPaused ? ({ is: "paused" } as const) : ({ is: "waiting", waitingFor } as const);
  await writeView(turn, { state, operation });
}

/** Whose work it is: the VM's own, or that of the disk-holder VM. */
function recallsOf(turn: ConnectedTurn, record: OperationRecord): RecallOf | undefined {
  const isHolders = traitsOf(record.step).of === "DiskHolder";
  const claim = (isHolders ? turn.keeper : turn.claim)?.spec;
  if (claim === undefined) return undefined;
  return { target: claim, hints: cloneHints(turn), ...recoveredSince(record, claim) };
}

/** The slots of work that was begun, whoever began it. */
function slotsUnderWay(
  { vm, connection }: Pick<ConnectedTurn, "vm" | "connection">,
  { step }: Pick<OperationRecord, "step">,
): string[] {
  const { node } = vm.status ?? {};
  const isCopy = step === "AddDisk" || step === "Clone";
  const storages = isCopy ? (vm.spec.disks ?? []).map(({ storage }) => storage) : [];
  return slotNames(connection, node, storages[0] ?? connection.spec.defaults?.storage);
}

/**
 * While a task runs that this process follows, only the task is asked about: the Claim is read when
 * something follows from it. Undefined where it does not run any more, or none is followed.
 */
export async function pollTask(turn: ConnectedTurn): Promise<Outcome | undefined> {
  const { followed } = turn.memory;
  delete turn.memory.followed;
  if (followed === undefined || followed.operation !== turn.vm.status?.operation?.id) {
    return undefined;
  }
  turn.claim = followed.claim;
  turn.keeper = followed.keeper;
  turn.operation = await resumeOperation(turn.deps.operations, subjectOf(turn));
  const { record, settlement } = turn.operation ?? {};
  if (record !== undefined && settlement?.is === "running") {
    return waitForTask(turn, record, settlement.task);
  }
  turn.claim = undefined;
  turn.keeper = undefined;
  return undefined;
}

/**
 * Finds out what became of the operation in the status. Resolves with an outcome where the turn
 * ends here, because work goes on or has failed, and otherwise with what is still open.
 */
export async function settleOperation(
  turn: ConnectedTurn,
): Promise<Outcome | OpenOperation | undefined> {
  await moveNoWorker(turn);
  const { operations } = turn.deps;
  turn.operation ??= await resumeOperation(operations, subjectOf(turn));
  if (turn.operation === undefined) return undefined;
  noteEnd(turn, turn.operation);
  return concludeSettlement(turn, turn.operation);
}

/** What was listed until an operation was seen to have ended may be older than its effect. */
export function noteEnd(
  { memory, connection }: Pick<ConnectedTurn, "memory" | "connection">,
  { record, settlement }: Resumed,
): void {
  if (record.outcome !== undefined || memory.endedId === record.id) return;
  memory.endedAt = connection.inventory;
  if (!isOpen(settlement)) memory.endedId = record.id;
}

/** The reply that no task could be started is kept in the Claim; 0.1 kept it in the status. */
async function moveNoWorker(turn: ConnectedTurn): Promise<void> {
  const { operation } = turn.vm.status ?? {};
  if (operation?.task !== noWorker) return;
  await recordNoWorker(turn, operation);
  const { task: _task, ...record } = operation;
  await saveRecord(turn, record);
}

/** No task will ever prove whose the empty reservation is: so the Claim does. */
export async function recordNoWorker(
  turn: ConnectedTurn,
  { step }: { step: string },
): Promise<void> {
  const isHolders = traitsOf(step).of === "DiskHolder";
  const claim = isHolders ? turn.keeper : turn.claim;
  if (claim === undefined || claim.spec.workerNeverStarted === true) return;
  const recorded = await turn.deps.ledger.record(claim, { workerNeverStarted: true });
  if (isHolders) turn.keeper = recorded;
  else turn.claim = recorded;
}

function openOf(
  { step, intent, key }: OperationRecord,
  settlement: Settlement,
): OpenOperation | undefined {
  return settlement.is === "unconfirmed" ? { step, intent, key } : undefined;
}

/** The one place where what became of an operation turns into what happens next. */
async function concludeSettlement(
  turn: ConnectedTurn,
  { record, settlement }: Resumed,
): Promise<Outcome | OpenOperation | undefined> {
  switch (settlement.is) {
    case "running":
      return waitForTask(turn, record, settlement.task);
    case "sending":
      return again(record.step, sendingMs);
    case "unconfirmed":
      return openOf(record, settlement);
    case "unseen":
      return failUnseen(turn, settlement.failure);
    case "blocked":
      return record.outcome === undefined ? waitBlocked(record) : undefined;
    case "failed":
      return failOperation(turn, { record, settlement });
    case "ended":
    case "doubtful":
    case "ignored":
      return undefined;
  }
}

/** Reports that an operation failed. By that write its record goes, and not before. */
export async function failOperation(
  turn: ConnectedTurn,
  { record, settlement }: FailedOperation,
): Promise<Outcome> {
  const { failure, task, leaves } = settlement;
  if (leaves === "Husk") await recordNoWorker(turn, record);
  return failVm(turn, failure, { step: record.step, task, tried: record.key });
}

/** Where not even the task can be looked at, nobody observed the VM. */
function failUnseen(turn: ConnectedTurn, failure: Failure): Promise<Outcome> {
  loseSight(turn, failure);
  return failVm(turn, failure);
}

/** The task is written with the next write that happens anyway; the engine sees to the latest. */
export async function waitForTask(
  turn: ConnectedTurn,
  record: OperationRecord,
  task: string,
): Promise<Outcome> {
  const { deps } = turn;
  const { reason } = traitsOf(record.step);
  const state = { is: "working", reason, message: record.intent } as const;
  await writeView(turn, { state, operation: { ...record, task } }, "progress");
  const { claim, keeper } = turn;
  if (claim !== undefined) turn.memory.followed = { operation: record.id, claim, keeper };
  return again(record.step, pollMs(deps.operations, subjectOf(turn), record));
}

/** The engine wrote what it waits for. */
export function waitBlocked(record: OperationRecord): Outcome {
  return again("Blocked", blockedWaitMs(record));
}
