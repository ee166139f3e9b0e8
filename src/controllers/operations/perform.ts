import type { Failure, Operation, TaskHandle } from "../../hypervisor/index.ts";
import type { SlotLease } from "../../runtime/index.ts";
import type { Remembered } from "./memory.ts";
import { endBefore, endsAfter, keyOf, openRecord } from "./record.ts";
import type { EarlierEnds, OperationOutcome, OperationRecord } from "./record.ts";
import { conclude, writeEnd, type OperationDeps, type Resumed, type Subject } from "./resume.ts";
import { abandonedFailure, isOpen, lostFailure, outcomeOf, settle } from "./settle.ts";
import type { Settlement } from "./settle.ts";
import { guard } from "../../kernel/guard.ts";

/** An effect that was decided and not yet made. */
export interface PlannedOperation {
  readonly step: string;
  readonly operation: Operation;
  /** In one sentence, for people. */
  readonly intent: string;
  readonly slots: readonly string[];
  /** How often the same step failed before, whatever else failed in between. */
  readonly failedTimes: number;
  /** Its request takes long, because it carries data: nobody waits for its answer. */
  readonly inBackground?: boolean;
}

/** What performing a planned operation came to. */
export type Performed =
  /** It is woken when its slots are free, or when it is known which of them are. */
  | { readonly is: "queued"; readonly waitsFor: string }
  /** Nothing may be written yet. */
  | { readonly is: "fenced" }
  /** The operation before it failed, and the status does not tell that yet: it is told first. */
  | { readonly is: "unreported"; readonly before: FailedOperation }
  /** The same was blocked, and its time has not come again. */
  | { readonly is: "blocked"; readonly waitMs: number }
  /** The same was done before and has to be done again: then it has failed. */
  | { readonly is: "vain"; readonly failure: Failure }
  /** It may not begin: nothing was sent. */
  | { readonly is: "unprepared"; readonly failure: Failure }
  | { readonly is: "performed"; readonly record: OperationRecord; readonly settlement: Settlement };

/** An operation that has failed. */
export interface FailedOperation extends Resumed {
  readonly settlement: Extract<Settlement, { is: "failed" }>;
}

export interface PerformOptions {
  /** The operation of the record that this one replaces. */
  readonly before: Resumed | undefined;
  readonly wake: () => void;
  /** What has to be in the ledger before the operation begins; a failure: it may not begin. */
  readonly prepare?: (record: OperationRecord) => Promise<Failure | undefined>;
  /** The operation with the ledger as `prepare` left it. Its key is the same. */
  readonly prepared?: (operation: Operation) => Operation;
  /** Makes the intent durable, over the very version that the plan was made for. */
  readonly write: (record: OperationRecord) => Promise<void>;
}

/** How often in a row the same may be done without effect. */
const vainMax = 3;
const blockedMsFirst = 2_000;
const blockedMsMost = 60_000;

/**
 * Performs one operation: slots, then the intent, then the effect, and nothing after it. If what
 * the plan was made for is old, the write of the intent is refused, and nothing was done.
 */
export async function performOperation(
  deps: OperationDeps,
  subject: Subject,
  { planned, ...options }: PerformOptions & { readonly planned: PlannedOperation },
): Promise<Performed> {
  const { before } = options;
  const failed = before && failedOf(before);
  if (failed !== undefined && !guard("failure-reported-first", failed === undefined)) {
    return { is: "unreported", before: failed };
  }
  const failure = vainFailure(planned, before);
  if (failure !== undefined) return { is: "vain", failure };
  const waitMs = blockedMs(deps, subject, { planned, before });
  if (!guard("operation-pause-over", waitMs <= 0)) return { is: "blocked", waitMs };
  if (!areSlotsKnown(deps, subject, options.wake)) return { is: "queued", waitsFor: unlisted };
  const lease = takeSlots(deps, subject, { slots: planned.slots, wake: options.wake });
  if (lease === "waiting") return { is: "queued", waitsFor: freeSlot(planned.slots) };
  if (!guard("operation-fence", deps.fence.mayWrite())) {
    lease.release();
    return { is: "fenced" };
  }
  return begin(deps, subject, { ...options, planned, lease });
}

function failedOf({ settlement, ...resumed }: Resumed): FailedOperation | undefined {
  return settlement.is === "failed" ? { ...resumed, settlement } : undefined;
}

const unlisted = "the list of the open operations of all VMs, images and orphans";

/** What is waited for where slots are taken, in words for people. */
export function freeSlot(names: readonly string[]): string {
  return `a free slot: ${names.join(", ")}`;
}

/**
 * Slots live in the memory of a process, and work goes on without it. Before the first of them is
 * given away, those of all open operations are taken: a storage does not get a third copy because
 * nobody remembers the first two. False: some are not listed yet, so nobody knows what is free.
 */
function areSlotsKnown(
  { memory, slots, openOperations }: OperationDeps,
  { holder: asking }: Subject,
  wake: () => void,
): boolean {
  if (memory.areSlotsAssumed) return true;
  const open = openOperations.list();
  if (!guard("slots-of-all-kinds-known", open !== undefined)) {
    openOperations.whenListed(asking, wake);
    return false;
  }
  memory.areSlotsAssumed = open !== undefined;
  for (const { holder, record } of open ?? []) {
    const names = record.outcome === undefined ? (record.slots ?? []) : [];
    if (names.length === 0) continue;
    memory.of(holder, record.id).lease ??= slots.assume([...names], holder);
  }
  return true;
}

function takeSlots(
  { slots: all, memory }: OperationDeps,
  { holder }: Subject,
  { slots, wake }: { readonly slots: readonly string[]; readonly wake: () => void },
): SlotLease | "waiting" {
  memory.releaseSlots(holder);
  return all.tryAcquire([...slots], holder, { wake });
}

interface Beginning extends PerformOptions {
  readonly planned: PlannedOperation;
  readonly lease: SlotLease;
}

async function begin(
  deps: OperationDeps,
  subject: Subject,
  { planned, before, prepare, prepared, write, wake, lease }: Beginning,
): Promise<Performed> {
  const { step, operation, intent } = planned;
  const { windowMs } = subject.traitsOf(step);
  const attempt = attemptOf(planned, before);
  const ends = before && endsOf(before, deps.clock.nowMs());
  const { slots } = planned;
  const epoch = deps.epochOf(subject.hypervisor);
  const opening = { step, operation, intent, windowMs, attempt, slots, ends, epoch };
  const record = openRecord(opening, deps);
  const failure = await unlessThrown(lease, () => prepare?.(record));
  if (failure !== undefined && !guard("operation-prepared", failure === undefined)) {
    lease.release();
    return { is: "unprepared", failure };
  }
  const remembered = deps.memory.begin(subject.holder, record.id, lease);
  await write(record);
  deps.reports.opened(record);
  const sent = { planned, operation: prepared?.(operation) ?? operation, record, remembered };
  if (planned.inBackground !== true) return writeEnd(subject, await answerOf(deps, subject, sent));
  remembered.isSending = true;
  void sendInBackground(deps, subject, sent).then(wake);
  return { is: "performed", record, settlement: { is: "sending" } };
}

/**
 * Where the connection breaks off nobody knows how it ended: then it is observed, as ever. How it
 * ended is written by the turn that is woken: by now the object may be another than it was read.
 */
async function sendInBackground(deps: OperationDeps, subject: Subject, sent: Sent): Promise<void> {
  const { remembered } = sent;
  try {
    const { settlement } = await answerOf(deps, subject, sent);
    remembered.isUnanswered = settlement.is === "unconfirmed";
  } catch {
    remembered.isUnanswered = true;
    deps.reports.operated(subject.object(), sent.record, "unknown");
  } finally {
    delete remembered.isSending;
  }
}

/** Whoever is thrown out in between holds no slots. */
async function unlessThrown<Result>(
  lease: SlotLease,
  body: () => Promise<Result> | undefined,
): Promise<Result | undefined> {
  try {
    return await body();
  } catch (error) {
    lease.release();
    throw error;
  }
}

interface Sent {
  readonly planned: PlannedOperation;
  /** As it is sent. */
  readonly operation: Operation;
  readonly record: OperationRecord;
  readonly remembered: Remembered;
}

/** Sends it, and settles it by the answer. */
async function answerOf(
  deps: OperationDeps,
  subject: Subject,
  { planned, operation, record, remembered }: Sent,
): Promise<Extract<Performed, { is: "performed" }>> {
  const { step } = planned;
  const traits = subject.traitsOf(step);
  const begun = await subject.driver.begin(operation, deps.fence);
  const context = { leftMs: traits.windowMs, rules: traits };
  const settlement = settle(record, { of: "begun", begun }, context);
  const task = begun.outcome === "task" ? { task: begun.task } : {};
  deps.reports.operated(subject.object(), { ...record, ...task }, begun.outcome);
  noteAnswer(deps, subject, { remembered, settlement });
  return { is: "performed", record, settlement };
}

function noteAnswer(
  deps: OperationDeps,
  { holder }: Subject,
  { remembered, settlement }: Pick<Sent, "remembered"> & { readonly settlement: Settlement },
): void {
  const nowMs = deps.clock.monotonicMs();
  if (settlement.is === "running") {
    remembered.task = { handle: settlement.task, sinceMs: nowMs, isFound: false };
  }
  if (settlement.is === "unconfirmed" && settlement.doubt !== undefined) {
    remembered.doubt = settlement.doubt;
  }
  if (!isOpen(settlement)) conclude(deps, holder, { remembered, settlement });
}

/** Attempts at the very same operation, also those of which nobody knows whether they arrived. */
function attemptOf({ failedTimes, operation }: PlannedOperation, before?: Resumed): number {
  if (before === undefined) return failedTimes + 1;
  const { key } = keyOf(operation);
  const isSame = guard("attempt-of-same-operation", before.record.key === key);
  const times = isSame ? before.record.attempt : (endBefore(before.record, key)?.times ?? 0);
  return Math.max(failedTimes, times) + 1;
}

function endsOf(
  { record, settlement, task = record.last?.task }: Resumed,
  nowMs: number,
): EarlierEnds {
  return endsAfter(record, { outcome: outcomeOf(settlement) ?? "Abandoned", task }, nowMs);
}

/**
 * The same operation ended before, and has to be done again all the same. That is a failure where
 * nobody said how it ended, where no request seems to arrive, and where it was done several times
 * without effect: a guest that powers itself off, or a hypervisor that says done and is not.
 */
function vainFailure(planned: PlannedOperation, before: Resumed | undefined): Failure | undefined {
  if (before === undefined) return undefined;
  const { operation, intent, failedTimes } = planned;
  const { record, settlement } = before;
  const isSame = record.key === keyOf(operation).key;
  if (!guard("vain-of-same-operation", isSame)) return unknownBefore(planned, record);
  if (settlement.is === "doubtful") {
    const times = timesOf(record, settlement.outcome) + 1;
    const isResent = isSentAgain(settlement.outcome, { times, failedTimes });
    return isResent ? undefined : settlement.failure;
  }
  if (settlement.is !== "ended" || settlement.outcome !== "Done") return undefined;
  const times = timesOf(record, "Done") + 1;
  if (times < (failedTimes > 0 ? 1 : vainMax)) return undefined;
  return {
    category: "CreationFailed",
    message: `The hypervisor reports that this was done, and the effect is not observed: ${intent}`,
    cause: `reported as done ${times} times in a row, without effect`,
  };
}

/** Only the first request that seems not to have arrived is sent again without a failure. */
function isSentAgain(
  outcome: OperationOutcome,
  { times, failedTimes }: { readonly times: number; readonly failedTimes: number },
): boolean {
  const isFirst = guard("abandoned-for-the-first-time", times === 1 && failedTimes === 0);
  return outcome === "Abandoned" && isFirst;
}

/** It ended without a result, and another step, which had to be done first, has ended since. */
function unknownBefore(
  { operation, intent, failedTimes }: PlannedOperation,
  record: OperationRecord,
): Failure | undefined {
  const { outcome, times = 0 } = endBefore(record, keyOf(operation).key) ?? {};
  if (outcome === "Lost") return lostFailure(intent, "the end of its task was not written down");
  if (outcome !== "Abandoned" || isSentAgain(outcome, { times, failedTimes })) return undefined;
  return abandonedFailure(intent);
}

/** How often in a row the same operation ended so before this record. */
function timesOf(
  record: Pick<OperationRecord, "key" | "last" | "unfinished">,
  outcome: OperationOutcome,
): number {
  const end = endBefore(record, record.key);
  return end !== undefined && guard("times-of-same-outcome", end.outcome === outcome)
    ? end.times
    : 0;
}

/** Somebody's lock is in the way. An attempt is a request or a task, so they become rarer. */
export function blockedWaitMs(
  record: Pick<OperationRecord, "key" | "last" | "unfinished">,
): number {
  return rarerMs(timesOf(record, "Blocked"));
}

function rarerMs(times: number): number {
  return Math.min(blockedMsFirst * 2 ** times, blockedMsMost);
}

/** How long the same still has to wait after it was blocked. */
function blockedMs(
  deps: OperationDeps,
  subject: Subject,
  { planned, before }: { readonly planned: PlannedOperation; readonly before: Resumed | undefined },
): number {
  if (before === undefined) return 0;
  const isSame = before.record.key === keyOf(planned.operation).key;
  if (!guard("pause-of-same-operation", isSame)) return pauseBeforeMs(deps, planned, before.record);
  return pauseMs(deps, subject, before);
}

/** The same, where another step had to be done meanwhile: it counts from when that began. */
function pauseBeforeMs(
  { clock }: Pick<OperationDeps, "clock">,
  { operation }: PlannedOperation,
  record: OperationRecord,
): number {
  const end = endBefore(record, keyOf(operation).key);
  if (end === undefined) return 0;
  const spanMs = spanAfterMs(end.outcome, end.times);
  return spanMs === 0 ? 0 : Math.min(Date.parse(end.at) + spanMs - clock.nowMs(), spanMs);
}

/**
 * How long an operation that ended without an effect still has to wait before it is sent again. The
 * first that met something changed is planned anew at once; if that goes on, it becomes rarer.
 */
export function pauseMs(
  { memory, clock }: Pick<OperationDeps, "memory" | "clock">,
  { holder }: Pick<Subject, "holder">,
  { record, settlement }: Resumed,
): number {
  const spanMs = pauseSpanMs(record, settlement);
  if (spanMs === 0) return 0;
  const { endedMs } = memory.of(holder, record.id);
  if (endedMs !== undefined) return endedMs + spanMs - clock.monotonicMs();
  // Without memory it counts from when it began. A clock that was set back makes it no longer.
  return Math.min(Date.parse(record.since) + spanMs - clock.nowMs(), spanMs);
}

function pauseSpanMs(record: OperationRecord, settlement: Settlement): number {
  const outcome = outcomeOf(settlement);
  return outcome === undefined ? 0 : spanAfterMs(outcome, timesOf(record, outcome) + 1);
}

/** How long after an operation ended so for so many times in a row. */
function spanAfterMs(outcome: OperationOutcome, times: number): number {
  if (outcome === "Blocked") return rarerMs(times - 1);
  return outcome === "Changed" && times > 1 ? rarerMs(times - 2) : 0;
}

/** Asks a task to end. What it has done by then is observed. False: it could not be asked. */
export async function cancelOperation(
  { fence }: OperationDeps,
  { driver }: Subject,
  task: TaskHandle,
): Promise<boolean> {
  const begun = await driver.cancel?.(task, fence);
  return begun?.outcome === "done" || begun?.outcome === "task";
}
