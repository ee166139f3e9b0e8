import { answered } from "../../hypervisor/index.ts";
import type {
  Answer,
  ClaimedMachine,
  Failure,
  RecalledTask,
  TaskHandle,
  TaskView,
} from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { slotNames } from "../hypervisor/index.ts";
import { failVm } from "./failing.ts";
import { cloneHints } from "./fills.ts";
import type { OpenOperation } from "./next.ts";
import { isStepName, stepTraits } from "./steps.ts";
import type { StatusOperation } from "./status.ts";
import {
  loseSight,
  noteDone,
  settle,
  writeView,
  type ConnectedTurn,
  type VmMemory,
} from "./turn.ts";

/** Written in place of a task: the hypervisor said that it could start none. */
export const noWorker = "none";

const blockedMsFirst = 2_000;
const blockedMsMost = 60_000;

/**
 * Finds out what became of the operation in the status. Resolves with an outcome where the run ends
 * here, because work goes on or has failed, and otherwise with what is still open.
 */
export async function settleOperation(
  turn: ConnectedTurn,
): Promise<Outcome | OpenOperation | undefined> {
  const { memory } = turn;
  const operation = turn.vm.status?.operation;
  if (operation === undefined) return undefined;
  // This one stays in the status: nothing else tells whose the empty reservation is.
  turn.isOpen = memory.settledId !== operation.id || operation.task === noWorker;
  if (!turn.isOpen || operation.task === noWorker) return undefined;
  const task = await taskOf(turn, operation);
  if (!task.ok) return failUnseen(turn, task.failure);
  if (task.value !== undefined) return lookAtTask(turn, operation, task.value);
  const { step, intent } = operation;
  return { step, intent, deadlineMs: deadlineOf(turn, operation) };
}

/**
 * Until when a request may still take effect. A wall clock that was set back must not make that an
 * hour: since this process saw the operation, no more time has to pass than from its beginning.
 */
function deadlineOf({ memory, deps }: ConnectedTurn, operation: StatusOperation): number {
  const { id, since, deadline = since } = operation;
  const wallMs = Date.parse(deadline);
  const monotonicMs = deps.clock.monotonicMs();
  if (memory.open?.id !== id) memory.open = { id, seenMs: monotonicMs };
  const leftMs = wallMs - Date.parse(since) - (monotonicMs - memory.open.seenMs);
  return Math.min(wallMs, deps.clock.nowMs() + leftMs);
}

/** The task of an open operation: what this process or an earlier one knows, else recalled. */
export async function taskOf(
  turn: ConnectedTurn,
  operation: StatusOperation,
): Promise<Answer<TaskHandle | undefined>> {
  const known = knownTask(turn, operation);
  return known === undefined ? recallTask(turn, operation) : answered(known);
}

/** The task that this process began, or that it or an earlier one wrote down. */
function knownTask(
  { memory }: ConnectedTurn,
  { id, task }: StatusOperation,
): TaskHandle | undefined {
  return memory.task?.operationId === id ? memory.task.handle : task;
}

/** Work that a lost reply or an earlier process began. */
async function recallTask(
  turn: ConnectedTurn,
  operation: StatusOperation,
): Promise<Answer<TaskHandle | undefined>> {
  const isKeepers = isStepName(operation.step) && stepTraits[operation.step].of === "Keeper";
  const claim: ClaimedMachine | undefined = (isKeepers ? turn.keeper : turn.claim)?.spec;
  if (claim === undefined) return answered(undefined);
  const sinceMs = Date.parse(operation.since);
  const recalled = await turn.driver.recall(claim, sinceMs, cloneHints(turn));
  if (!recalled.ok) return recalled;
  const running = recalled.value.find(({ isRunning }) => isRunning);
  const matching = recalled.value.filter(
    (task) => isOf(task, operation) && task.sinceMs >= sinceMs,
  );
  return answered((running ?? matching.at(-1))?.task);
}

function isOf({ does }: RecalledTask, { step }: StatusOperation): boolean {
  return isStepName(step) && stepTraits[step].does.includes(does);
}

async function lookAtTask(
  turn: ConnectedTurn,
  operation: StatusOperation,
  handle: TaskHandle,
): Promise<Outcome | OpenOperation | undefined> {
  const { memory, driver, deps } = turn;
  const view = await driver.look(handle);
  const open = openStill(turn, operation, view);
  if (open !== undefined) return open;
  if (view.state !== "running" && view.state !== "unknown") {
    deps.reports.operated(turn.vm, { ...operation, task: handle }, view.state);
  }
  switch (view.state) {
    case "running":
      return waitForTask(turn, operation, handle);
    case "succeeded":
    case "warned":
      learnPace(turn, operation);
      noteDone(turn, operation);
      settle(turn);
      return undefined;
    case "lost":
      // If the very same has to be done again, this attempt has failed.
      memory.undone = { intent: operation.intent, failure: withoutWord(operation, view.cause) };
      settle(turn);
      return undefined;
    case "changed":
      // It has ended, whatever it did: looking at the machine tells.
      learnPace(turn, operation);
      settle(turn);
      return undefined;
    case "blocked":
      return waitBlocked(turn, operation, view.waitsFor);
    case "failed":
      settle(turn);
      if (operation.step === "Shutdown" || operation.step === "Reboot") {
        memory.isShutdownIgnored = true;
        return undefined;
      }
      return failVm(turn, ofStep(view.failure, operation), { step: operation.step, task: handle });
    case "unknown":
      return failUnseen(turn, view.failure);
  }
}

/** Where not even the task can be looked at, nobody looked at the machine. */
function failUnseen(turn: ConnectedTurn, failure: Failure): Promise<Outcome> {
  loseSight(turn, failure);
  return failVm(turn, failure);
}

/** Work of which the hypervisor knows nothing may go on all the same: as if no reply had come. */
function openStill(
  turn: ConnectedTurn,
  operation: StatusOperation,
  view: TaskView,
): OpenOperation | undefined {
  if (view.state !== "lost" || view.mayRun !== true) return undefined;
  const deadlineMs = deadlineOf(turn, operation);
  if (turn.deps.clock.nowMs() >= deadlineMs) return undefined;
  return { step: operation.step, intent: operation.intent, deadlineMs };
}

/**
 * The worker was killed, or its end was not written down. To begin anew at once would do the same
 * without end, while a program of that worker may still be at it: if nothing is to be seen of the
 * work, it is a failure like any other, with its waits and its last attempt.
 */
function withoutWord({ intent }: StatusOperation, cause: string): Failure {
  return {
    category: "CreationFailed",
    message: `The task ended without a word, and this is not done: ${intent}`,
    cause,
    remedy:
      "Find out on the node what ends its workers: no memory left (journalctl -k), a full disk " +
      "under /var/log, a restart of its services.",
  };
}

const goneSteps: ReadonlySet<string> = new Set(["Destroy", "DestroyKeeper", "ClearHusk"]);

/**
 * A step that reads no image misses a volume of its own: to wait for it would be for ever. And one
 * that was to make a machine go, and does not find it, has to look.
 */
export function ofStep(failure: Failure, { step }: StatusOperation): Failure {
  const { category } = failure;
  const isOwn = category === "ImageNotFound" && step !== "AddDisk" && step !== "Create";
  if (isOwn) return { ...failure, category: "CreationFailed" };
  const isGone = category === "Missing" && goneSteps.has(step);
  return isGone ? { ...failure, category: "UnknownOutcome" } : failure;
}

async function waitForTask(
  turn: ConnectedTurn,
  operation: StatusOperation,
  handle: TaskHandle,
): Promise<Outcome> {
  const { memory, deps } = turn;
  const nowMs = deps.clock.monotonicMs();
  const isKnown = memory.task?.operationId === operation.id && memory.task.handle === handle;
  const found = { operationId: operation.id, handle, sinceMs: nowMs, isFound: true };
  const task: NonNullable<VmMemory["task"]> = (isKnown ? memory.task : undefined) ?? found;
  task.runningMs = nowMs - task.sinceMs;
  memory.task = task;
  // Work that an earlier process began takes its slots all the same.
  memory.lease ??= turn.deps.slots.assume(slotsUnderWay(turn, operation), turn.key);
  const state = { is: "working", reason: reasonOf(operation), message: operation.intent } as const;
  await writeView(turn, { state, operation: { ...operation, task: handle } }, "progress");
  const pollMs = deps.pace.waitMs(taskKind(turn, operation), task.runningMs);
  return again(operation.step, pollMs);
}

function learnPace(turn: ConnectedTurn, operation: StatusOperation): void {
  const { task } = turn.memory;
  if (task?.operationId !== operation.id || task.isFound) return;
  const ranMs = turn.deps.clock.monotonicMs() - task.sinceMs;
  turn.deps.pace.ended(taskKind(turn, operation), { ranMs, runningMs: task.runningMs });
}

/** Tasks that take about as long as each other. */
export function taskKind(
  { connection }: ConnectedTurn,
  { step }: { readonly step: string },
): string {
  return `${step} on ${connection.name}`;
}

function slotsUnderWay({ vm, connection }: ConnectedTurn, { step }: StatusOperation): string[] {
  const { node } = vm.status ?? {};
  const isCopy = step === "AddDisk" || step === "Clone";
  const storages = isCopy ? (vm.spec.disks ?? []).map(({ storage }) => storage) : [];
  return slotNames(connection, node, storages[0] ?? connection.spec.defaults?.storage);
}

/** Somebody's lock is in the way. An attempt is a task on the hypervisor, so they become rarer. */
export async function waitBlocked(
  turn: ConnectedTurn,
  { intent }: StatusOperation,
  waitsFor: string,
): Promise<Outcome> {
  const { memory } = turn;
  settle(turn);
  const waitingFor = { kind: "Lock", name: waitsFor.slice(0, 512) } as const;
  await writeView(turn, { state: { is: "waiting", waitingFor } }, "progress");
  const times = memory.blocked?.intent === intent ? memory.blocked.times : 0;
  memory.blocked = { intent, times: times + 1 };
  return again("Blocked", Math.min(blockedMsFirst * 2 ** times, blockedMsMost));
}

function reasonOf({ step }: StatusOperation): (typeof stepTraits)["Create"]["reason"] {
  return isStepName(step) ? stepTraits[step].reason : "Progressing";
}
