import { createHash } from "node:crypto";
import type { VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import { categoryPolicies, type Operation } from "../../hypervisor/index.ts";
import type { RetryPolicy } from "../../runtime/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import { saidOf } from "./said.ts";

export type FailedStep = NonNullable<VirtualMachineStatus["failedSteps"]>[number];

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

/** A clock that was set back makes no wait longer than the longest. */
const heldMsMost = 1.2 * hourMs;
/** Failures that are told apart. With more, the oldest starts again from one. */
const failedMax = 4;
const digits = 16;

/**
 * The steps that failed and count still: under this very declaration, and since a person last asked
 * for another try. Whatever else fails in between, they are not forgotten.
 */
export function failedStepsOf({ metadata, status }: VirtualMachine): readonly FailedStep[] {
  const { failedSteps = [], handledReconcileAt } = status ?? {};
  if (handledReconcileAt !== saidOf(metadata, "reconcileAt")) return [];
  return failedSteps.filter(({ generation }) => generation === metadata.generation);
}

/** The same step, failed in the same way before. */
export function failedBefore(
  vm: VirtualMachine,
  step: string | undefined,
  category: string,
): FailedStep | undefined {
  return failedStepsOf(vm).find((one) => one.step === step && one.category === category);
}

/** With this failure among them, as the newest. */
export function withFailed(
  vm: VirtualMachine,
  step: string,
  { failure, tried }: { readonly failure: StatusFailure; readonly tried: string | undefined },
): readonly FailedStep[] {
  const { cause: _cause, step: _step, ...told } = failure;
  const { category } = failure;
  const others = failedStepsOf(vm).filter((one) => one.step !== step || one.category !== category);
  const { generation = 0 } = vm.metadata;
  const newest = { ...told, step, generation, ...(tried === undefined ? {} : { tried }) };
  return [...others, newest].slice(-failedMax);
}

/** Exactly this was refused, and its time has not come again. */
export function refusalOf(
  vm: VirtualMachine,
  { step, tried }: { readonly step: string; readonly tried: string },
): FailedStep | undefined {
  return failedStepsOf(vm).find((one) => {
    const isRefusal = categoryPolicies[one.category].next === "stall";
    return isRefusal && one.step === step && one.tried === tried;
  });
}

/** How long a refused step still rests. */
export function heldMs({ nextRetryAt }: FailedStep, nowMs: number): number {
  if (nextRetryAt === undefined) return 0;
  return Math.min(Date.parse(nextRetryAt) - nowMs, heldMsMost);
}

/** The failure of a step, as it was told. */
export function failureAgain(vm: VirtualMachine, refusal: FailedStep): StatusFailure {
  const old = vm.status?.failure;
  const isTold = old?.step === refusal.step && old.category === refusal.category;
  if (isTold) return old;
  const { generation: _generation, tried: _tried, ...failure } = refusal;
  return failure;
}

/** What would be done and to which machine, without what is only seen and recorded meanwhile. */
export function digestOf(operation: Operation): string {
  const said = JSON.stringify(operation, lasting);
  return createHash("sha256").update(said).digest("hex").slice(0, digits);
}

/** What a digest in a status must not help to guess. A disc is known by the name of its file. */
const hidden: ReadonlySet<string> = new Set(["content", "passwordHash", "userData"]);

/** Of a Claim its id, and of what was seen the node. */
function lasting(member: string, value: unknown): unknown {
  const isOne = typeof value === "object" && value !== null;
  if (member === "claim") return isOne && "externalId" in value ? value.externalId : undefined;
  if (member === "at") return isOne && "node" in value ? value.node : undefined;
  return hidden.has(member) ? undefined : value;
}
