import { categoryPolicies, type CategoryPolicy } from "../../hypervisor/index.ts";
import { humanAge, humanDuration } from "../../kernel/human-duration.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Paint } from "../objects/colour.ts";
import type { Happening } from "../objects/events.ts";
import { conditionsOf } from "../objects/expectation.ts";
import { alignRows } from "../objects/table.ts";
import type { Suspect } from "./diagnose.ts";
import { type Finding, statusOf } from "./findings.ts";
import { isOnlyObserved } from "./observed.ts";
import { textOf } from "../objects/text.ts";
import { planLines } from "../plan/lines.ts";
import { timelineRows } from "./timeline.ts";

export interface Explanation {
  readonly name: string;
  readonly object: KubeObject;
  /** The deepest first. */
  readonly suspects: readonly Suspect[];
  readonly events: readonly Happening[];
  readonly claim?: KubeObject | undefined;
  readonly nowMs: number;
  readonly paint: Paint;
}

/** The answer to "why", for people. Nothing of it is cut off. */
export function renderWhy(explanation: Explanation): string[] {
  const { suspects } = explanation;
  return [
    headline(explanation),
    ...suspects.flatMap((suspect, index) => suspectLines(suspect, index, explanation)),
    ...nowLines(explanation),
    ...timeline(explanation),
  ];
}

function headline({ name, object, suspects, paint, nowMs }: Explanation): string {
  const ready = conditionsOf(object).find(({ type }) => type === "Ready");
  const since = ready === undefined ? "" : ` for ${humanAge(ready["lastTransitionTime"], nowMs)}`;
  if (object.metadata.deletionTimestamp !== undefined) {
    const age = humanAge(object.metadata.deletionTimestamp, nowMs);
    const held = (object.metadata.finalizers ?? []).join(", ") || "nothing any more";
    return paint("strong", `${name} is being deleted for ${age}, held by ${held}.`);
  }
  if (suspects.length === 0) return paint("good", `${name} is as it should be${since}.`);
  const isReady = ready?.["status"] === "True";
  const isObserved = suspects.some((one) => one.object !== undefined && isOnlyObserved(one.object));
  const but = isObserved ? "this Berth only observes it" : "something is the matter";
  const state = isReady ? `is ready, but ${but}` : `is not ready${since}`;
  return paint("strong", `${name} ${state}:`);
}

function suspectLines(suspect: Suspect, index: number, { paint }: Explanation): string[] {
  return suspect.findings.flatMap((finding, position) => {
    const number = position === 0 ? `${index + 1}.` : "  ";
    const details = finding.follows === true ? [followsText] : finding.details;
    return [
      "",
      `${number} ${paint("strong", suspect.name)}: ${paint("bad", finding.reason)}`,
      ...indented(finding.message),
      ...details.flatMap((detail) => indented(detail).map((line) => paint("faint", line))),
      ...remedyLines(finding),
    ];
  });
}

const followsText = "This follows from what stands above it.";

function remedyLines({ advice, follows }: Finding): string[] {
  const [first, ...more] = follows === true ? [] : advice;
  if (first === undefined) return [];
  return [...indented(`What to do: ${first}`), ...more.flatMap(indented)];
}

/** What is going on at this moment: the open operation, what is waited for, the next attempt. */
function nowLines({ object, suspects, nowMs }: Explanation): string[] {
  const { operation, waitingFor, failure, plan } = statusOf(object);
  const lines = [
    ...(isJsonObject(operation) ? operationLines(operation, nowMs) : []),
    ...(isJsonObject(waitingFor) ? [waitingLine(waitingFor, nowMs)] : []),
    ...(isJsonObject(failure) ? retryLines(failure, { object, suspects, nowMs }) : []),
    ...suspects
      .filter((suspect) => suspect.object !== object)
      .flatMap((suspect) => {
        return causeLine(suspect, nowMs);
      }),
    ...(isJsonObject(plan) ? ["planned, and waits for your approval:", ...planLines(plan)] : []),
  ];
  return lines.length === 0 ? [] : ["", "Now:", ...lines.flatMap(indented)];
}

function operationLines(operation: JsonObject, nowMs: number): string[] {
  const { step, intent, attempt, since, task, outcome } = operation;
  const what = `${textOf(step)}: ${textOf(intent)}`;
  // It is kept because the next step rests on it.
  if (outcome === "Done") return [`done: ${what}`];
  return [
    what,
    `attempt ${textOf(attempt ?? 1)}, since ${humanAge(since, nowMs)}`,
    ...(typeof task === "string"
      ? [`it runs on the hypervisor as ${textOf(task)}`]
      : deadlineLines(operation, nowMs)),
  ];
}

/** Of what no task is known, this is how long nothing is repeated. A task takes its time. */
function deadlineLines({ deadline, outcome }: JsonObject, nowMs: number): string[] {
  const leftMs = typeof deadline === "string" ? Date.parse(deadline) - nowMs : 0;
  if (outcome !== undefined || !(leftMs > 0)) return [];
  const until = `for ${humanDuration(leftMs)} (until ${textOf(deadline)})`;
  return [`no task is known yet: its effect may still arrive ${until}`];
}

function waitingLine({ kind, name, since }: JsonObject, nowMs: number): string {
  const what = `${kind === "Lock" ? "the lock: " : ""}${textOf(name)}`;
  return `waiting since ${humanAge(since, nowMs)} for ${what}`;
}

/** What is waited for has its own time. */
function causeLine({ name, object }: Suspect, nowMs: number): string[] {
  const { failure } = object === undefined ? {} : statusOf(object);
  const nextRetryAt = isJsonObject(failure) ? failure["nextRetryAt"] : undefined;
  return typeof nextRetryAt === "string"
    ? [`${name}: next attempt ${relative(nextRetryAt, nowMs)}`]
    : [];
}

/** Where another copy of the installation acts, nothing comes by itself. */
function retryLines(
  failure: JsonObject,
  { object, suspects, nowMs }: Pick<Explanation, "object" | "suspects" | "nowMs">,
): string[] {
  const { waitingFor, plannedSteps } = statusOf(object);
  const observed = suspects.find((one) => one.object !== undefined && isOnlyObserved(one.object));
  if (observed?.object === undefined) return [retryLine(failure, isJsonObject(waitingFor), nowMs)];
  const steps = Array.isArray(plannedSteps) ? plannedSteps.filter(isJsonObject) : [];
  return [
    `only berth takeover ${observed.object.metadata.name ?? ""} lets this copy act`,
    ...steps.map(({ intent }) => `planned after that: ${textOf(intent)}`),
  ];
}

/** By the policy of the category, in words. */
function retryLine(failure: JsonObject, isWaiting: boolean, nowMs: number): string {
  const { nextRetryAt, category, step } = failure;
  if (typeof nextRetryAt === "string") return `next attempt ${relative(nextRetryAt, nowMs)}`;
  if (isWaiting || policyOf(textOf(category))?.next === "wait")
    return "Berth goes on by itself when what it waits for is there";
  if (typeof step === "string") return "no further attempt before an edit, or berth retry";
  return "nothing is tried before this is mended; Berth looks by itself whether it is";
}

function policyOf(category: string): CategoryPolicy | undefined {
  return Object.entries(categoryPolicies).find(([known]) => known === category)?.[1];
}

/** "in 30s (2026-01-02T03:04:05Z)", or "2m ago (…)". */
function relative(time: string, nowMs: number): string {
  const inMs = Date.parse(time) - nowMs;
  if (Number.isNaN(inMs)) return `at ${time}`;
  const shown = inMs >= 0 ? `in ${humanDuration(inMs)}` : `${humanDuration(-inMs)} ago`;
  return `${shown} (${time})`;
}

function timeline(explanation: Explanation): string[] {
  const rows = timelineRows(explanation, explanation.nowMs);
  // That it was once made says nothing where nothing else happened.
  if (rows.length < 2) return [];
  return ["", "What happened:", ...alignRows(rows).map((line) => `  ${line}`)];
}

function indented(text: string): string[] {
  return text.split("\n").map((line) => `   ${line}`);
}
