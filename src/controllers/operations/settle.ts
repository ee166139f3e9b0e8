import type { Begun, Failure, TaskHandle, TaskView } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { OperationOutcome, OperationRecord } from "./record.ts";

/** What was found out about an open operation. */
export type Evidence =
  /** The answer to the request itself. */
  | { readonly of: "begun"; readonly begun: Begun }
  /** A look at its task. */
  | { readonly of: "task"; readonly task: TaskHandle; readonly view: TaskView }
  /** The hypervisor was asked for work of ours, and has none that could be it. */
  | { readonly of: "noTask" }
  /** The same, but other work of ours goes on there, which an earlier request may have begun. */
  | { readonly of: "otherTask" }
  /** The hypervisor could not be asked. */
  | { readonly of: "unseen"; readonly failure: Failure };

/** What is known of each step, beside the operation that it is made of. */
export interface StepRules {
  /** It makes what has the id: if the id is taken, that may be by this very request, sent twice. */
  readonly makes?: boolean;
  /** It only asks somebody in the guest, who may not follow: that is no failure. */
  readonly asksGuest?: boolean;
  /** What a failure means for this step, where it means something else. */
  readonly meaning?: (failure: Failure) => Failure;
}

/**
 * What became of an operation.
 *
 * - `running`: its task is under way. `sending`: its request is still being sent by this process.
 * - `unconfirmed`: it may still take effect, for so long; `doubt`
 *   is what it failed with, if it turns out that it did not.
 * - `unseen`: nobody could be asked; look again.
 * - `ended`: observe and plan anew.
 * - `blocked`: it ended because another held a lock. No failure: wait, then do it again.
 * - `doubtful`: it has ended and nobody says how. If the same is planned again, it has failed.
 * - `ignored`: the guest did not follow.
 * - `failed`: it counts as an attempt. `leaves: "Husk"`: an empty reservation stays.
 */
export type Settlement =
  | { readonly is: "running"; readonly task: TaskHandle }
  | { readonly is: "sending" }
  | { readonly is: "unconfirmed"; readonly leftMs: number; readonly doubt?: Failure }
  | { readonly is: "unseen"; readonly failure: Failure }
  | { readonly is: "ended"; readonly outcome: EndedOutcome }
  | { readonly is: "blocked"; readonly waitsFor: string }
  | { readonly is: "doubtful"; readonly outcome: "Lost" | "Abandoned"; readonly failure: Failure }
  | { readonly is: "ignored" }
  | {
      readonly is: "failed";
      readonly outcome: "Refused" | "Failed";
      readonly failure: Failure;
      readonly task?: TaskHandle;
      readonly leaves?: "Husk";
    };

export type EndedOutcome = Extract<OperationOutcome, "Done" | "Progressed" | "Changed" | "Fenced">;

/** How soon it is asked again whether other work has ended. */
const otherTaskMs = 1_000;

/** The moment of a look, as far as the table needs it. */
export interface SettleContext {
  /** How long the effect of the operation may still arrive. */
  readonly leftMs: number;
  readonly rules: StepRules;
}

/**
 * The one table that says what became of an operation: for every kind of object, for every answer
 * to a request and for every state of a task. Pure; a new answer or state does not compile until it
 * has its row.
 */
export function settle(
  record: OperationRecord,
  evidence: Evidence,
  context: SettleContext,
): Settlement {
  switch (evidence.of) {
    case "begun":
      return settleBegun(record, evidence.begun, context);
    case "task":
      return settleTask(record, evidence, context);
    case "otherTask":
      return behindOther(context);
    case "noTask":
      return unconfirmedOr(context, () => abandoned(record));
    case "unseen":
      return { is: "unseen", failure: evidence.failure };
  }
}

function settleBegun(record: OperationRecord, begun: Begun, context: SettleContext): Settlement {
  switch (begun.outcome) {
    case "done":
      return { is: "ended", outcome: "Done" };
    case "progressed":
      return { is: "ended", outcome: "Progressed" };
    case "changed":
      return { is: "ended", outcome: "Changed" };
    case "fenced":
      return { is: "ended", outcome: "Fenced" };
    case "task":
      return { is: "running", task: begun.task };
    case "blocked":
      return { is: "blocked", waitsFor: begun.waitsFor };
    case "unknown":
      return unconfirmedOr(context, () => abandoned(record));
    case "refused":
      return settleRefused(begun, context);
  }
}

function settleRefused(
  { failure, leaves }: Extract<Begun, { outcome: "refused" }>,
  { rules, leftMs }: SettleContext,
): Settlement {
  const mayBeOwn = rules.makes === true && failure.category === "IdentityConflict";
  if (!guard("refusal-without-doubt", !mayBeOwn)) {
    return { is: "unconfirmed", leftMs, doubt: failure };
  }
  const meant = rules.meaning?.(failure) ?? failure;
  const left = leaves === undefined ? {} : { leaves };
  return { is: "failed", outcome: "Refused", failure: meant, ...left };
}

function settleTask(
  record: OperationRecord,
  { task, view }: Extract<Evidence, { of: "task" }>,
  context: SettleContext,
): Settlement {
  switch (view.state) {
    case "running":
      return { is: "running", task };
    case "succeeded":
    case "warned":
      return { is: "ended", outcome: "Done" };
    case "changed":
      return { is: "ended", outcome: "Changed" };
    case "blocked":
      return { is: "blocked", waitsFor: view.waitsFor };
    case "unknown":
      return { is: "unseen", failure: view.failure };
    case "lost": {
      const ended = (): Settlement => lost(record, view.cause);
      const isOver = guard("lost-task-cannot-run", view.mayRun !== true);
      return isOver ? ended() : unconfirmedOr(context, ended);
    }
    case "failed":
      return settleFailed(task, view.failure, context);
  }
}

function settleFailed(task: TaskHandle, failure: Failure, { rules }: SettleContext): Settlement {
  if (rules.asksGuest === true) return { is: "ignored" };
  const meant = rules.meaning?.(failure) ?? failure;
  return { is: "failed", outcome: "Failed", failure: meant, task };
}

/** While other work goes on, the request may be waiting for it. */
function behindOther({ leftMs }: SettleContext): Settlement {
  return { is: "unconfirmed", leftMs: Math.max(leftMs, otherTaskMs) };
}

function unconfirmedOr({ leftMs }: SettleContext, ended: () => Settlement): Settlement {
  return guard("operation-window-over", leftMs <= 0) ? ended() : { is: "unconfirmed", leftMs };
}

/**
 * The worker was killed, or its end was not written down. To begin again at once would do the same
 * without end, while a program of that worker may still run: if the effect is not observed, it is a
 * failure like any other, with its retries and its last attempt.
 */
function lost({ intent }: OperationRecord, cause: string): Settlement {
  return { is: "doubtful", outcome: "Lost", failure: lostFailure(intent, cause) };
}

export function lostFailure(intent: string, cause: string): Failure {
  return {
    category: "CreationFailed",
    message: `The task ended without a result, and its effect is not observed: ${intent}`,
    cause,
    remedy:
      "Find out on the node what ends its workers: no memory left (journalctl -k), a full disk " +
      "under /var/log, a restart of its services.",
  };
}

/** No reply came, and the hypervisor has no task of it: the request seems never to have arrived. */
function abandoned({ intent }: OperationRecord): Settlement {
  return { is: "doubtful", outcome: "Abandoned", failure: abandonedFailure(intent) };
}

export function abandonedFailure(intent: string): Failure {
  return {
    category: "UnknownOutcome",
    message: `No reply came, and the hypervisor has no task of it: ${intent}`,
    remedy: "See whether the hypervisor's API answers: berth doctor.",
    isUnanswered: true,
  };
}

/** How a settled operation counts for the next record; undefined while it is open. */
export function outcomeOf(settlement: Settlement): OperationOutcome | undefined {
  switch (settlement.is) {
    case "running":
    case "sending":
    case "unconfirmed":
    case "unseen":
      return undefined;
    case "blocked":
      return "Blocked";
    case "ignored":
      return "Failed";
    case "ended":
    case "doubtful":
    case "failed":
      return settlement.outcome;
  }
}

export function isOpen(settlement: Settlement): boolean {
  return outcomeOf(settlement) === undefined;
}

/** Whether it ended well. That its effect can be seen is another matter. */
export function isDone(settlement: Settlement): boolean {
  return settlement.is === "ended" && settlement.outcome === "Done";
}
