import { answered, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type {
  Answer,
  Fence,
  HypervisorDriver,
  RecalledTask,
  RecallHints,
  RecallTarget,
  TaskHandle,
  Work,
} from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import type { Slots } from "../../runtime/index.ts";
import type { Reports } from "../reports/index.ts";
import type { FollowedTask, OperationMemory, Remembered } from "./memory.ts";
import { ageMs, takenOver, windowLeftMs, type OperationRecord } from "./record.ts";
import {
  isDone,
  isOpen,
  settle,
  type Evidence,
  type Settlement,
  type StepRules,
} from "./settle.ts";
import type { TaskPace } from "./task-pace.ts";

/** What all controllers share that perform operations. */
export interface OperationDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly slots: Slots;
  readonly reports: Reports;
  readonly pace: TaskPace;
  readonly memory: OperationMemory;
  /** Whether a write may go out at this very moment. */
  readonly fence: Fence;
  readonly openOperations: OpenOperations;
  /** The epoch under which this run acts on a Hypervisor; undefined: it does not act there. */
  readonly epochOf: (hypervisor: string) => number | undefined;
}

/** The open operations of all objects of all kinds. */
export interface OpenOperations {
  /** Undefined: the objects of some kind are not listed yet. */
  list(): readonly OpenHolder[] | undefined;
  /** Has a holder woken once all of them are listed. */
  whenListed(holder: string, wake: () => void): void;
}

/** An open operation, and who holds its slots. */
export interface OpenHolder {
  readonly holder: string;
  readonly record: OperationRecord;
}

/** What is known of a step of one kind of object. */
export interface StepTraits extends StepRules {
  /** How long a request whose reply was lost may still take effect. */
  readonly windowMs: number;
  /** What its work is called when it is recalled. */
  readonly works: readonly Work[];
  /** The next step rests on that it was done, and nothing on the hypervisor shows it. */
  readonly isProof?: boolean;
}

/** An object that has an operation, in one turn. */
export interface Subject {
  /** Who holds its slots, and is remembered: unique among all kinds. */
  readonly holder: string;
  readonly driver: HypervisorDriver;
  /** The name of the Hypervisor: tasks of one take about as long as each other. */
  readonly hypervisor: string;
  object(): KubeObject;
  record(): OperationRecord | undefined;
  traitsOf(step: string): StepTraits;
  /** Whose work is asked for when its task is not known; undefined: there can be none. */
  recalls(record: OperationRecord): RecallOf | undefined | Promise<RecallOf | undefined>;
  /** The task that an operation of the object ended with last, also after its record is gone. */
  lastTask?(): TaskHandle | undefined;
  /** The slots of work that 0.1 began: later records have them. */
  slotsOf(record: OperationRecord): readonly string[];
  /** Writes the record again, over the version that was read. */
  save(record: OperationRecord): Promise<void>;
  /** The same for a record that says it was blocked, together with what it waits for. */
  saveBlocked(record: OperationRecord, waitsFor: string): Promise<void>;
}

export interface RecallOf {
  readonly target: RecallTarget;
  readonly hints?: RecallHints;
  /** Work that began before the record may be its; absent: only what began after it. */
  readonly sinceMs?: number;
}

/**
 * The operation of an object's record, and what became of it. A failure removes the record from the
 * status when it is written: an operation that is found to have failed was never reported.
 */
export interface Resumed {
  /** As the status had it. Without an outcome: the status does not tell yet how it ended. */
  readonly record: OperationRecord;
  readonly settlement: Settlement;
  /** The task that told how it ended, if one did. */
  readonly task?: TaskHandle | undefined;
}

/**
 * At the latest so long after the operation began, its task is in its record. A task that ends
 * earlier costs no write, and a write for another reason has it sooner.
 */
const taskWriteMs = 10_000;

/**
 * Finds out what became of the operation in an object's record: by its task, which is in the
 * record, known to this process, or recalled; else by its window. It has no effect on the
 * hypervisor.
 */
export async function resumeOperation(
  deps: OperationDeps,
  subject: Subject,
): Promise<Resumed | undefined> {
  const record = subject.record();
  if (record === undefined) {
    deps.memory.releaseSlots(subject.holder);
    return undefined;
  }
  const remembered = deps.memory.of(subject.holder, record.id);
  const known = knownEnd(record, remembered);
  if (known !== undefined) {
    const task = remembered.endedTask ?? record.task;
    return writeEnd(subject, { record, settlement: known, task });
  }
  if (remembered.isSending === true) return { record, settlement: { is: "sending" } };
  const evidence = await evidenceOf(subject, { record, remembered }, deps.clock);
  const resumed = await settleBy(deps, subject, { record, remembered, evidence });
  return writeEnd(subject, await writeTask(deps, subject, resumed));
}

/**
 * Writes an end into the record that no later look at the hypervisor would show again. If the write
 * is refused, the record has no outcome, and the next turn writes it.
 */
export async function writeEnd<Ended extends Resumed>(
  subject: Subject,
  resumed: Ended,
): Promise<Ended> {
  const { record, settlement, task } = resumed;
  if (record.outcome !== undefined) return resumed;
  if (settlement.is === "blocked") {
    await subject.saveBlocked({ ...record, outcome: "Blocked" }, settlement.waitsFor);
  }
  const isUnshown = task === undefined && subject.traitsOf(record.step).isProof === true;
  if (isDone(settlement) && isUnshown) await subject.save({ ...record, outcome: "Done" });
  return resumed;
}

/** By the clock of the record: setting the date neither delays the write nor brings it forward. */
async function writeTask(
  deps: OperationDeps,
  subject: Subject,
  resumed: Resumed,
): Promise<Resumed> {
  const { record, settlement } = resumed;
  if (settlement.is !== "running" || record.task === settlement.task) return resumed;
  const nextLookMs = ageMs(record, deps.clock) + pollMs(deps, subject, record);
  if (nextLookMs < taskWriteMs) return resumed;
  const written = { ...record, task: settlement.task };
  await subject.save(written);
  return { ...resumed, record: written };
}

/** How it ended, where this process or the record itself knows it: the hypervisor is not asked. */
function knownEnd(
  { outcome }: OperationRecord,
  { settlement }: Remembered,
): Settlement | undefined {
  if (settlement !== undefined && !isOpen(settlement)) return settlement;
  if (outcome === undefined) return undefined;
  // Who held the lock was reported when it was met.
  return outcome === "Blocked" ? { is: "blocked", waitsFor: "a lock" } : { is: "ended", outcome };
}

interface Found {
  readonly record: OperationRecord;
  readonly remembered: Remembered;
  readonly evidence: Evidence;
}

async function settleBy(
  deps: OperationDeps,
  subject: Subject,
  { record: found, remembered, evidence }: Found,
): Promise<Resumed> {
  const { clock } = deps;
  const rules = subject.traitsOf(found.step);
  let record = found;
  let leftMs = windowLeftMs(record, clock);
  const isUnknown = leftMs === undefined || remembered.isUnanswered === true;
  if (isUnknown && isWindowNeeded(evidence)) {
    record = takenOver(record, clock);
    await subject.save(record);
    leftMs = windowLeftMs(record, clock);
    delete remembered.isUnanswered;
  }
  const settled = settle(record, evidence, { leftMs: leftMs ?? 0, rules });
  const settlement = withDoubt(settled, remembered);
  note(deps, subject, { record, remembered, settlement });
  if (evidence.of === "task" && !isOpen(settlement)) remembered.endedTask = evidence.task;
  if (!isOpen(settlement)) reportEnd(deps, subject, { record, evidence });
  return { record, settlement, task: remembered.endedTask };
}

/** It never took effect: then the answer to it was the last word about it. */
function withDoubt(settlement: Settlement, { doubt }: Remembered): Settlement {
  if (settlement.is !== "doubtful" || doubt === undefined) return settlement;
  return { ...settlement, outcome: "Lost", failure: doubt };
}

/** Only where no task tells how it goes does it matter how much time has passed. */
function isWindowNeeded(evidence: Evidence): boolean {
  if (evidence.of === "noTask") return true;
  return evidence.of === "task" && evidence.view.state === "lost" && evidence.view.mayRun === true;
}

async function evidenceOf(
  subject: Subject,
  { record, remembered }: Omit<Found, "evidence">,
  clock: Clock,
): Promise<Evidence> {
  const known = record.task ?? remembered.task?.handle;
  const found =
    known === undefined
      ? await recallTask(subject, record, clock)
      : answered<FoundTask>({ task: known });
  if (!found.ok) return { of: "unseen", failure: found.failure };
  const { task, isOtherRunning = false } = found.value;
  if (task === undefined) return { of: isOtherRunning ? "otherTask" : "noTask" };
  return { of: "task", task, view: await subject.driver.look(task) };
}

interface FoundTask {
  readonly task?: TaskHandle | undefined;
  /** Work of ours goes on there that is not this step's. */
  readonly isOtherRunning?: boolean;
}

/** Work that a lost reply or an earlier process began. */
async function recallTask(
  subject: Subject,
  record: OperationRecord,
  clock: Clock,
): Promise<Answer<FoundTask>> {
  const of = await subject.recalls(record);
  if (of === undefined) return answered({});
  const { sinceMs = openedMs(record, clock) } = of;
  const recalled = await subject.driver.recall(of.target, sinceMs, of.hints);
  if (!recalled.ok) return recalled;
  const newer = afterTask(recalled.value, record.last?.task ?? subject.lastTask?.());
  return answered(taskAmong(newer, subject.traitsOf(record.step), sinceMs));
}

/**
 * When the record was opened, on the clock as it is now. The date may have been set since, and a
 * record that was taken over counts from there: the earlier of the two overlooks nothing.
 */
function openedMs(record: OperationRecord, clock: Clock): number {
  return Math.min(Date.parse(record.since), clock.nowMs() - ageMs(record, clock));
}

/**
 * Times of tasks are whole seconds: what ended the operation before this one may have begun in the
 * same second. The newest come first.
 */
function afterTask(
  recalled: readonly RecalledTask[],
  last: TaskHandle | undefined,
): readonly RecalledTask[] {
  const index = recalled.findIndex(({ task }) => task === last);
  return guard("operation-task-after-last", index < 0) ? recalled : recalled.slice(0, index);
}

/**
 * What began before the operation, or does something else, is not its task. A request that arrived
 * late may have begun such work: it is waited for, but how it ends says nothing of this operation.
 */
function taskAmong(
  recalled: readonly RecalledTask[],
  { works }: Pick<StepTraits, "works">,
  sinceMs: number,
): FoundTask {
  const own = recalled
    .filter(({ does }) => guard("operation-task-of-step", works.includes(does)))
    .filter((task) => isRecent(task, sinceMs));
  const task = own.findLast(({ isRunning }) => isRunning) ?? own.at(-1);
  return { task: task?.task, isOtherRunning: recalled.some(({ isRunning }) => isRunning) };
}

function isRecent(task: RecalledTask, sinceMs: number): boolean {
  const latestMs = task.sinceMs + (task.withinMs ?? taskTimeSlackMs);
  return guard("operation-task-not-older", latestMs >= sinceMs);
}

function note(
  deps: OperationDeps,
  subject: Subject,
  { record, remembered, settlement }: Omit<Found, "evidence"> & { settlement: Settlement },
): void {
  if (settlement.is === "running") follow(deps, subject, { record, remembered, settlement });
  if (isOpen(settlement)) return;
  learnPace(deps, subject, { record, remembered });
  conclude(deps, subject.holder, { remembered, settlement });
}

function follow(
  deps: OperationDeps,
  subject: Subject,
  {
    record,
    remembered,
    settlement,
  }: Omit<Found, "evidence"> & { settlement: Extract<Settlement, { is: "running" }> },
): void {
  const nowMs = deps.clock.monotonicMs();
  const isKnown = remembered.task?.handle === settlement.task;
  // As old as its record: a long task is not asked about as often as a new one after each start.
  const sinceMs = nowMs - ageMs(record, deps.clock);
  const found: FollowedTask = { handle: settlement.task, sinceMs, isFound: true };
  const task = (isKnown ? remembered.task : undefined) ?? found;
  task.runningMs = nowMs - task.sinceMs;
  remembered.task = task;
  // Work that an earlier process began takes its slots all the same.
  const names = record.slots ?? subject.slotsOf(record);
  remembered.lease ??= deps.slots.assume([...names], subject.holder);
}

/** Remembers how it ended, and gives its slots back. */
export function conclude(
  deps: Pick<OperationDeps, "memory" | "clock">,
  holder: string,
  { remembered, settlement }: { remembered: Remembered; settlement: Settlement },
): void {
  remembered.settlement = settlement;
  remembered.endedMs = deps.clock.monotonicMs();
  delete remembered.task;
  deps.memory.releaseSlots(holder);
}

function learnPace(
  { clock, pace }: OperationDeps,
  subject: Subject,
  { record, remembered: { task } }: Omit<Found, "evidence">,
): void {
  if (task === undefined || task.isFound) return;
  const ranMs = clock.monotonicMs() - task.sinceMs;
  pace.ended(paceKind(subject, record), { ranMs, runningMs: task.runningMs });
}

/** Tasks that take about as long as each other. */
function paceKind({ hypervisor }: Subject, { step }: Pick<OperationRecord, "step">): string {
  return `${step} on ${hypervisor}`;
}

/** When to look at a task again. */
export function pollMs(deps: OperationDeps, subject: Subject, record: OperationRecord): number {
  const { task } = deps.memory.of(subject.holder, record.id);
  return deps.pace.waitMs(paceKind(subject, record), task?.runningMs ?? 0);
}

function reportEnd(
  { reports }: OperationDeps,
  subject: Subject,
  { record, evidence }: Omit<Found, "remembered">,
): void {
  if (evidence.of !== "task") return;
  const { task, view } = evidence;
  if (view.state === "running" || view.state === "unknown") return;
  reports.operated(subject.object(), { ...record, task }, view.state);
}
