import { failureReasons, type FailureCategory } from "../../api/index.ts";
import { categoryPolicies, type Failure } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { objectKey } from "../../kernel/object.ts";
import type { EventDetails, EventRecorder } from "../../runtime/index.ts";
import { failureText } from "../failures/index.ts";
import { conditionOf, hypervisorOf } from "./object-status.ts";
import type { OperationMetrics } from "./operation-metrics.ts";

/**
 * Tells people and monitoring what happened, each thing once: a number, a line of log, and an Event
 * where a person would want to know. It never waits and never throws, and nothing rests on it.
 */
export interface Reports {
  /** An operation is about to be sent: from now on its time counts. */
  opened(operation: ReportedOperation): void;
  /** What the hypervisor answered to it, or what became of its task. */
  operated(object: KubeObject, operation: ReportedOperation, state: OperationState): void;
  failed(object: KubeObject, failure: Failure, facts: FailureFacts): void;
  /** A wait that somebody else has to end has begun. Whoever calls does so once for each. */
  waits(object: KubeObject, wait: ReportedWait): void;
  /** A status was written: says so where the object became Ready, or ceased to be, or why. */
  became(object: KubeObject, old: KubeObject): void;
}

/** An operation as a status has it. */
export interface ReportedOperation {
  readonly id: string;
  readonly step: string;
  readonly intent: string;
  readonly attempt: number;
  readonly task?: string | undefined;
}

/** What is waited for, as a status names it, and as its conditions tell of it. */
export interface ReportedWait {
  readonly for: string;
  readonly reason: string;
  readonly message: string;
}

/** The words of a driver's answer to an attempt, and of a task that has ended. */
export type OperationState =
  | "task"
  | "done"
  | "progressed"
  | "refused"
  | "blocked"
  | "changed"
  | "fenced"
  | "unknown"
  | "succeeded"
  | "warned"
  | "lost"
  | "failed";

export interface FailureFacts {
  /** The operation that failed, where one was begun. */
  readonly operation?: Pick<ReportedOperation, "id" | "task"> | undefined;
  /** Where it failed, if the object itself does not say so. */
  readonly hypervisor?: string | undefined;
  /** The step that failed, where something was tried. */
  readonly step?: string | undefined;
  readonly attempts: number;
  /** It failed in another way before, or not at all. */
  readonly isNew: boolean;
  /** Nothing more is tried until something changes. */
  readonly isStalled: boolean;
  /** It was stalled already. */
  readonly wasStalled: boolean;
  /** When it is tried again, where a clock decides that. */
  readonly retryInMs?: number | undefined;
}

export interface ReportsOptions {
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: (level: "info" | "warn", message: string, fields: object) => void;
  readonly metrics: OperationMetrics;
}

export function createReports(options: ReportsOptions): Reports {
  const { clock, metrics } = options;
  return {
    opened: ({ id }) => metrics.opened(id, clock.monotonicMs()),
    operated: (object, operation, state) => tellOperation(options, { object, operation, state }),
    failed: (object, failure, facts) => {
      const tell = failure.isUnderWay === true ? tellWait : tellFailure;
      tell(options, { object, failure, facts });
    },
    waits: (object, wait) => tellBegunWait(options, object, wait),
    became: (object, old) => tellReadiness(options, object, old),
  };
}

interface Operated {
  readonly object: KubeObject;
  readonly operation: ReportedOperation;
  readonly state: OperationState;
}

function tellOperation({ clock, events, log, metrics }: ReportsOptions, operated: Operated): void {
  const { object, operation, state } = operated;
  const { id, step, attempt, task } = operation;
  const facts = { ...placeOf(object), operation: id, step, attempt, task };
  if (state === "task") log("info", "a step has begun", facts);
  else {
    metrics.ended(object.kind, { id, step, outcome: state }, clock.monotonicMs());
    log(isWorrying(state) ? "warn" : "info", "a step has ended", { ...facts, outcome: state });
  }
  const details = eventOf(operation, state);
  if (details !== undefined) events.event(object, details);
}

/** Only what a person would tell of the work. A failure is told with what follows from it. */
function eventOf(
  { step, intent, task }: ReportedOperation,
  state: OperationState,
): EventDetails | undefined {
  const within = task === undefined ? "" : ` (task ${task})`;
  switch (state) {
    case "task":
      return { type: "Normal", reason: `${step}Started`, message: `${intent}${within}` };
    case "done":
    case "succeeded":
      return { type: "Normal", reason: `${step}Done`, message: `Done: ${intent}` };
    case "warned":
      return { type: "Warning", reason: `${step}Done`, message: `Done, with warnings: ${intent}` };
    case "unknown": {
      const message = `The reply was lost, so Berth looks first: ${intent}`;
      return { type: "Warning", reason: failureReasons.UnknownOutcome, message };
    }
    case "progressed":
    case "refused":
    case "blocked":
    case "changed":
    case "fenced":
    case "lost":
    case "failed":
      return undefined;
  }
}

const worrying: ReadonlySet<OperationState> = new Set(["unknown", "refused", "failed", "lost"]);

function isWorrying(state: OperationState): boolean {
  return worrying.has(state);
}

interface Failed {
  readonly object: KubeObject;
  readonly failure: Failure;
  readonly facts: FailureFacts;
}

/** A failed attempt is told each time, which raises a count; a wait only when it begins. */
function tellFailure({ events, log, metrics }: ReportsOptions, failed: Failed): void {
  const { object, failure, facts } = failed;
  const { category, message } = failure;
  const { attempts, retryInMs, isStalled } = facts;
  const isToTell = facts.isNew || isAttempt(category, facts);
  if (isToTell) metrics.failed(object.kind, category);
  if (retryInMs !== undefined) metrics.retried(object.kind, category);
  const isStalling = isStalled && !facts.wasStalled;
  if (!isToTell && !isStalling) return;
  const text = failureText({ message });
  log("warn", isStalled ? "stalls" : "has failed", { ...factsOf(failed), detail: text });
  events.event(object, { type: "Warning", reason: failureReasons[category], message: text });
  if (isStalling && isGivenUp(category, attempts)) {
    events.event(object, stallOf(category, attempts));
  }
}

/** Where the first failure stalls, and is seldom tried again, its own Event says it all. */
function isGivenUp(category: FailureCategory, attempts: number): boolean {
  return attempts > 1 && categoryPolicies[category].next !== "stall";
}

/** What a person searches the log by. The hypervisor's words are not ours, and stand apart. */
function factsOf({ object, failure: { category, cause }, facts }: Failed): object {
  const { operation, step, attempts, retryInMs } = facts;
  const work = { operation: operation?.id, step, attempts, task: operation?.task };
  return { ...placeOf(object, facts), category, ...work, retryInMs, cause };
}

/** Something was tried; to look for what became of a lost reply, or for what is missing, is not. */
function isAttempt(category: FailureCategory, { step, retryInMs }: FailureFacts): boolean {
  const isRetried = retryInMs !== undefined && categoryPolicies[category].next === "retry";
  return step !== undefined || isRetried;
}

/** Nothing is wrong: it goes on when what it needs has come. */
function tellWait({ events, log }: ReportsOptions, { object, failure, facts }: Failed): void {
  if (!facts.isNew) return;
  const { category, message } = failure;
  log("info", "waits", { ...placeOf(object, facts), category, detail: message });
  events.event(object, { type: "Normal", reason: failureReasons[category], message });
}

function tellBegunWait(
  { events, log }: ReportsOptions,
  object: KubeObject,
  { for: kind, reason, message }: ReportedWait,
): void {
  log("info", "waits", { ...placeOf(object), for: kind, detail: message });
  events.event(object, { type: "Normal", reason, message });
}

function stallOf(category: FailureCategory, attempts: number): EventDetails {
  const message =
    `${category} ${attempts} times in a row: nothing more is tried until the declaration ` +
    "changes or a person asks for another try.";
  return { type: "Warning", reason: "Stalled", message };
}

function tellReadiness({ events, log }: ReportsOptions, object: KubeObject, old: KubeObject): void {
  const [now, before] = [conditionOf(object, "Ready"), conditionOf(old, "Ready")];
  if (now === undefined || (now.status === before?.status && now.reason === before.reason)) return;
  const isReady = now.status === "True";
  const { reason, message } = now;
  log(isReady ? "info" : "warn", isReady ? "is ready" : "is not ready", {
    ...placeOf(object),
    reason,
    detail: message,
  });
  events.event(object, { type: isReady ? "Normal" : "Warning", reason, message });
}

/** Which object a line of log is about, and where it is. */
function placeOf(object: KubeObject, known: Pick<FailureFacts, "hypervisor"> = {}): object {
  const { kind, metadata } = object;
  const hypervisor = known.hypervisor ?? hypervisorOf(object);
  return { object: `${kind} ${objectKey(metadata)}`, hypervisor };
}
