import { createHash } from "node:crypto";
import { annotations } from "../../api/index.ts";
import type { VirtualMachineStatus } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { ObjectMeta } from "../../kernel/object.ts";
import type { RetryPolicy } from "../../runtime/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import { isRetryAsked } from "./annotation-token.ts";

export type FailedStep = NonNullable<VirtualMachineStatus["failedSteps"]>[number];

/** An object whose failures are counted, of whatever kind. */
export interface CountingObject {
  readonly metadata: ObjectMeta;
  readonly status?:
    | {
        readonly failure?: StatusFailure | undefined;
        readonly failedSteps?: readonly FailedStep[] | undefined;
        readonly handledReconcileAt?: string | undefined;
      }
    | undefined;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/**
 * What only a person can mend is tried again all the same, because nobody tells Berth that a right
 * was granted. A refused change is more than a look: it is in the hypervisor's log, and may alert
 * somebody there. So it is sent seldom.
 */
export const refusedPolicy: RetryPolicy = {
  delaysMs: [10 * minuteMs, 20 * minuteMs, 40 * minuteMs, hourMs],
  jitter: 0.2,
  attemptsMax: Infinity,
};

/**
 * A request to which no reply came, and whose effect was never observed. It may have done something
 * that had to be removed again, so it is repeated as seldom as what failed.
 */
export const unansweredPolicy: RetryPolicy = categoryPolicies.NetworkError;

/** A clock that was set back makes no wait longer than the longest. */
const heldMsMost = 1.2 * hourMs;
/** Failures that are told apart. With more, the oldest starts again from one. */
const failedMax = 4;
const digits = 16;

/**
 * A digest of everything that a person can change: as long as it is the same, an old failure is
 * still the same, and its next retry is not brought forward.
 */
export function declarationDigest({ metadata }: CountingObject): string {
  const { generation = 0, deletionTimestamp = "" } = metadata;
  const asked = metadata.annotations?.[annotations.reconcileAt] ?? "";
  const forgotten = metadata.annotations?.[annotations.forget] ?? "";
  const text = JSON.stringify([generation, deletionTimestamp, asked, forgotten]);
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}

/**
 * The steps that failed and count still: under this very declaration, and since a person last asked
 * for another try. Whatever else fails in between, they are not forgotten.
 */
export function failedStepsOf({ metadata, status }: CountingObject): readonly FailedStep[] {
  const { failedSteps = [] } = status ?? {};
  if (isRetryAsked({ metadata, status })) return [];
  return failedSteps.filter(({ generation }) => generation === (metadata.generation ?? 0));
}

/** The same step, failed in the same way before. */
export function failedBefore(
  object: CountingObject,
  step: string | undefined,
  category: string,
): FailedStep | undefined {
  return failedStepsOf(object).find((one) => one.step === step && one.category === category);
}

/** How often a step failed, in whatever way. */
export function failedTimes(object: CountingObject, step: string): number {
  const { failure } = object.status ?? {};
  const told = failure?.step === step ? failure.attempts : 0;
  const counts = (object.status?.failedSteps ?? [])
    .filter((one) => one.step === step)
    .map(({ attempts }) => attempts);
  return Math.max(told, ...counts);
}

/** With this failure among them, as the newest. */
export function withFailed(
  object: CountingObject,
  step: string,
  { failure, tried }: { readonly failure: StatusFailure; readonly tried: string | undefined },
): readonly FailedStep[] {
  const { cause: _cause, step: _step, declaration: _declaration, ...told } = failure;
  const { category } = failure;
  const others = failedStepsOf(object).filter((one) => {
    return one.step !== step || one.category !== category;
  });
  const { generation = 0 } = object.metadata;
  const newest = { ...told, step, generation, ...(tried === undefined ? {} : { tried }) };
  return [...others, newest].slice(-failedMax);
}

/** How long a refused step is still held back. */
export function heldMs({ nextRetryAt }: FailedStep, nowMs: number): number {
  if (nextRetryAt === undefined) return 0;
  return Math.min(Date.parse(nextRetryAt) - nowMs, heldMsMost);
}

/** A step that is held back, and for how long. Infinity: until a person says something. */
export interface HeldStep {
  readonly failed: FailedStep;
  readonly waitMs: number;
  /** Only a person, or a change of the world, ends it. */
  readonly isStalled: boolean;
}

/**
 * Whether a step is held back by how it failed before, whatever was reported since. What only a
 * person can mend holds back exactly what was tried; every other failure the whole step.
 */
export function heldStep(
  object: CountingObject,
  { step, tried }: { readonly step: string; readonly tried?: string },
  nowMs: number,
): HeldStep | undefined {
  const held = failedStepsOf(object)
    .filter((one) => one.step === step && (one.tried === tried || !isRefusal(one)))
    .map((failed) => {
      const waitMs = stepWaitMs(failed, nowMs);
      return { failed, waitMs, isStalled: isRefusal(failed) || waitMs === Infinity };
    })
    .filter(({ waitMs }) => waitMs > 0);
  return held.toSorted((a, b) => b.waitMs - a.waitMs)[0];
}

function stepWaitMs(failed: FailedStep, nowMs: number): number {
  const { category, nextRetryAt, lastAt } = failed;
  if (nextRetryAt === undefined) return categoryPolicies[category].next === "retry" ? Infinity : 0;
  // A clock that was set back makes the wait no longer than it was.
  return Math.min(heldMs(failed, nowMs), Date.parse(nextRetryAt) - Date.parse(lastAt));
}

function isRefusal({ category }: FailedStep): boolean {
  return categoryPolicies[category].next === "stall";
}

/** The failure of a step, as it was told. */
export function failureAgain(object: CountingObject, refusal: FailedStep): StatusFailure {
  const old = object.status?.failure;
  const isTold = old?.step === refusal.step && old.category === refusal.category;
  if (isTold) return old;
  const { generation: _generation, tried: _tried, ...failure } = refusal;
  return { ...failure, declaration: declarationDigest(object) };
}
