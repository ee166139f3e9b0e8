import type { VirtualMachineStatus } from "../../api/index.ts";
import { categoryPolicies, type Failure, type TaskHandle } from "../../hypervisor/index.ts";
import { again, nextAttempt, stalled, type Outcome } from "../../runtime/index.ts";
import { describeFailure, type StatusFailure } from "../failures/index.ts";
import { endBeginning } from "./beginning.ts";
import {
  failedBefore,
  failedStepsOf,
  failureAgain,
  heldMs,
  refusalOf,
  refusedPolicy,
  withFailed,
} from "./failed-steps.ts";
import { saidOf } from "./said.ts";
import type { StatusOperation, VmView } from "./status.ts";
import { declarationOf, loseSight, releaseSlots, writeView, type Turn } from "./turn.ts";

/** What is tried again by the clock, so that its attempts count. */
const countedNexts: ReadonlySet<string> = new Set(["retry", "look"]);

/** Soon while somebody may be at it, and seldom when it has stood so for long. */
const lookMsFirst = 30_000;
const lookMsMost = 10 * 60_000;

export interface FailOptions {
  /** The step that failed, where there was one: then the attempt counts. */
  readonly step?: string;
  readonly operation?: StatusOperation;
  /** The hypervisor's own name of the work that failed. */
  readonly task?: TaskHandle;
  /** What a person may approve, and that would mend it. */
  readonly plan?: VirtualMachineStatus["plan"];
}

/** Machines that wait for the same look do not all come at once, as a part of the wait. */
const spread = 0.2;
/** A look that is due is under way, and may take so long. */
const overdueMs = 60_000;

/** Says what failed and what comes next, by the one table of policies. */
export async function failVm(
  turn: Turn,
  failure: Failure,
  options: FailOptions = {},
): Promise<Outcome> {
  const { deps, memory } = turn;
  const { step } = options;
  endBeginning(turn);
  // Whatever was seen before it: the newest is that nobody answers.
  if (failure.category === "NetworkError") loseSight(turn, failure);
  const attempts = attemptsOf(turn, failure, step) + 1;
  const { isStalled, afterMs, isSaid } = whenAgain(turn, failure, { step, attempts });
  const nowMs = deps.clock.nowMs();
  const old = failureBefore(turn, failure, step);
  const wasStalled = isStalledNow(turn);
  const isNew = isNews(turn, failure);
  const operation = failedOperation(turn, options);
  const nextRetryMs = isSaid ? nowMs + afterMs : undefined;
  const described = describeFailure(failure, { nowMs, old, attempts, step, nextRetryMs });
  turn.failed = described;
  await writeView(turn, {
    state: { is: "failed", failure: described, isStalled },
    handled: handledOf(turn),
    failedSteps: failedSteps(turn, described),
    ...placeOf(turn),
    ...operationPart(options),
    plan: options.plan,
  });
  deps.reports.failed(turn.vm, failure, {
    step,
    operation,
    attempts,
    isNew,
    isStalled,
    wasStalled,
    retryInMs: isSaid && !isStalled ? afterMs : undefined,
  });
  if (isStalled && !isSaid) return rest(turn, failure, described);
  // What stalls is looked at meanwhile: somebody may be at it.
  if (nextRetryMs !== undefined && !isStalled) {
    memory.retry = { atMs: nextRetryMs, declaration: declarationOf(turn.vm) };
  }
  return again(failure.category, afterMs);
}

/** The same one, if it is known; what was told last, if that is not it. */
function failureBefore(
  { vm }: Turn,
  { category }: Failure,
  step: string | undefined,
): StatusFailure | undefined {
  return failedBefore(vm, step, category) ?? vm.status?.failure;
}

interface When {
  readonly isStalled: boolean;
  readonly afterMs: number;
  /** It is tried again then, by the clock alone. */
  readonly isSaid: boolean;
}

/** By the policy of its category. A step that only a person can mend is tried again, seldom. */
function whenAgain(
  { deps: { random } }: Turn,
  { category }: Failure,
  { step, attempts }: { readonly step: string | undefined; readonly attempts: number },
): When {
  const policy = categoryPolicies[category];
  const next = nextAttempt(policy, attempts, random);
  if (next.type === "retry") {
    return { isStalled: false, afterMs: next.afterMs, isSaid: countedNexts.has(policy.next) };
  }
  const isRefused = step !== undefined && policy.next === "stall";
  const later = isRefused ? nextAttempt(refusedPolicy, attempts, random) : next;
  if (later.type === "retry") return { isStalled: true, afterMs: later.afterMs, isSaid: true };
  return { isStalled: true, afterMs: 0, isSaid: false };
}

/** The status has it until the failure is written. */
function failedOperation(
  { vm }: Turn,
  { step, task }: FailOptions,
): { readonly id: string; readonly task?: string | undefined } | undefined {
  const { operation } = vm.status ?? {};
  if (step === undefined || operation?.step !== step) return undefined;
  return { id: operation.id, task: task ?? operation.task };
}

/** Another failure; or what was on its way has failed after all, and is waited for as before. */
function isNews({ memory, vm }: Turn, failure: Failure): boolean {
  const { category } = failure;
  const wasUnderWay = memory.isUnderWay === true;
  const isUnderWay = failure.isUnderWay === true;
  memory.isUnderWay = isUnderWay;
  return vm.status?.failure?.category !== category || (wasUnderWay && !isUnderWay);
}

/**
 * The hypervisor is away, and only the one who looks after it asks it anything. The machine waits
 * for the next look: nothing was tried, so no attempt is counted. It is told once for an outage, in
 * the words of its first look: when the next one is stands in the status of the Hypervisor, and a
 * thousand machines do not repeat it.
 */
export async function waitForLook(
  turn: Turn,
  failure: Failure,
  { name, nextLookMs }: { readonly name: string; readonly nextLookMs: number },
): Promise<Outcome> {
  const { deps, memory, vm } = turn;
  const nowMs = deps.clock.nowMs();
  const old = vm.status?.failure;
  const isSame = old?.category === failure.category;
  const attempts = isSame ? old.attempts : 1;
  const isTold = isSame && memory.toldAway === failure.category;
  memory.toldAway = failure.category;
  endBeginning(turn);
  const described = isTold ? old : describeFailure(failure, { nowMs, old, attempts });
  // In the words that were told: those of every further look would be a write each.
  loseSight(turn, { ...failure, message: described.message });
  const waitingFor = { kind: "Dependency", name: `Hypervisor ${name}` } as const;
  const state = { is: "failed", failure: described, isStalled: false, waitingFor } as const;
  await writeView(turn, { state, handled: handledOf(turn), ...placeOf(turn) });
  deps.reports.failed(turn.vm, failure, {
    attempts,
    isNew: !isSame,
    isStalled: false,
    wasStalled: false,
  });
  // What a look finds wakes everybody; this is for the case that it does not.
  const waitMs = Math.max(nextLookMs - nowMs, overdueMs);
  return again(failure.category, waitMs * (1 + spread * deps.random.number()));
}

/**
 * Nothing more is tried. But where nothing was tried at all, because a look was enough to refuse
 * it, the next look costs the hypervisor a few reads and finds out that somebody has mended it.
 */
function rest({ deps }: Turn, { category }: Failure, { step, firstAt }: StatusFailure): Outcome {
  if (step !== undefined) return stalled(category);
  const ageMs = deps.clock.nowMs() - Date.parse(firstAt);
  return again(category, Math.min(Math.max(ageMs / 2, lookMsFirst), lookMsMost));
}

function operationPart({ operation }: FailOptions): { operation?: StatusOperation } {
  return operation === undefined ? {} : { operation };
}

/**
 * Images are brought to where the machine is going to be. One that is only adopted is where it is:
 * until it was seen there, nothing is said of it.
 */
function placeOf({ node, claim, vm }: Turn): { place?: { node: string | undefined } } {
  if (claim !== undefined) return {};
  if (vm.spec.adopt === "Only") return { place: { node: undefined } };
  return node === undefined ? {} : { place: { node } };
}

/**
 * Looks go on: when the world is another, something else is to be done, and is. But exactly what
 * was refused is not sent again before its time, whatever changed beside it.
 */
export async function holdRefused(
  turn: Turn,
  { step, digest: tried }: NonNullable<Turn["memory"]["tried"]>,
): Promise<Outcome | undefined> {
  const { deps, vm } = turn;
  const refusal = refusalOf(vm, { step, tried });
  const waitMs = refusal === undefined ? 0 : heldMs(refusal, deps.clock.nowMs());
  if (refusal === undefined || waitMs <= 0) return undefined;
  endBeginning(turn);
  releaseSlots(turn);
  const failure = failureAgain(vm, refusal);
  await writeView(turn, { state: { is: "failed", failure, isStalled: true } });
  return again(failure.category, waitMs);
}

function failedSteps(
  { vm, memory }: Turn,
  failure: StatusFailure,
): NonNullable<VmView["failedSteps"]> {
  const { step, category } = failure;
  if (step === undefined || categoryPolicies[category].next === "wait") return failedStepsOf(vm);
  const tried = memory.tried?.step === step ? memory.tried.digest : undefined;
  return withFailed(vm, step, { failure, tried });
}

/** How often this very failure happened before. A person's word starts from the beginning. */
function attemptsOf({ vm }: Turn, failure: Failure, step: string | undefined): number {
  const { next } = categoryPolicies[failure.category];
  if (step !== undefined) return failedBefore(vm, step, failure.category)?.attempts ?? 0;
  const { failure: old, handledReconcileAt } = vm.status ?? {};
  const isSaidAnew = handledReconcileAt !== saidOf(vm.metadata, "reconcileAt");
  if (old === undefined || isSaidAnew || !countedNexts.has(next)) return 0;
  return old.category === failure.category && old.step === step ? old.attempts : 0;
}

/**
 * A step that failed as often as it may. It stays so until the declaration changes or a person asks
 * for another try. Work is given up, looking is not: what failed at no step is looked at again.
 */
export function hasGivenUp({ vm }: Turn): boolean {
  const { failure, observedGeneration, handledReconcileAt } = vm.status ?? {};
  if (failure?.step === undefined) return false;
  if (categoryPolicies[failure.category].next !== "retry") return false;
  // While it is tried again the failure stands, and the stall does not.
  if (!isStalledNow({ vm })) return false;
  const isSame = handledReconcileAt === saidOf(vm.metadata, "reconcileAt");
  return isSame && observedGeneration === vm.metadata.generation;
}

export function handledOf({ vm }: Turn): { handledReconcileAt?: string } {
  const asked = saidOf(vm.metadata, "reconcileAt");
  return asked === undefined ? {} : { handledReconcileAt: asked };
}

function isStalledNow({ vm }: Pick<Turn, "vm">): boolean {
  const { conditions = [] } = vm.status ?? {};
  return conditions.some(({ type, status }) => type === "Stalled" && status === "True");
}
