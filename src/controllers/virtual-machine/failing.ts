import type { VirtualMachineStatus } from "../../api/index.ts";
import type { Failure, TaskHandle } from "../../hypervisor/index.ts";
import { again, stalled, type Outcome } from "../../runtime/index.ts";
import { describeFailure, type StatusFailure } from "../failures/index.ts";
import {
  annotationToken,
  declarationDigest,
  failedBefore,
  failedStepsOf,
  failureAgain,
  heldStep,
  judgeFailure,
  withFailed,
} from "../operations/index.ts";
import { endBeginning } from "./beginning.ts";
import type { VmView } from "./status.ts";
import { loseSight, releaseSlots, writeView, type Turn } from "./turn.ts";

/** Soon while somebody may be at it, and seldom when it has stood so for long. */
const lookMsFirst = 30_000;
const lookMsMost = 10 * 60_000;

export interface FailOptions {
  /** The step that failed, where there was one: then the attempt counts. */
  readonly step?: string;
  /** The key of the operation that failed. */
  readonly tried?: string | undefined;
  /** The operation in the status has ended by this. */
  readonly isOver?: boolean;
  /** The hypervisor's own name of the work that failed. */
  readonly task?: TaskHandle | undefined;
  /** What was changed lately, with what is a conflict of it; absent: as it was. */
  readonly recentSteps?: VmView["recentSteps"];
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
  const { deps } = turn;
  const { step } = options;
  endBeginning(turn);
  // Whatever was seen before it: the newest is that nobody answers.
  if (failure.category === "NetworkError") loseSight(turn, failure);
  const verdict = judgeFailure(turn.vm, failure, { step, random: deps.random });
  const { attempts, isStalled, afterMs, retriesOnTimer } = verdict;
  const nowMs = deps.clock.nowMs();
  const old = failureBefore(turn, failure, step);
  const wasStalled = isStalledNow(turn);
  const isNew = isNews(turn, failure);
  const operation = failedOperation(turn, options);
  const nextRetryMs = retriesOnTimer ? nowMs + afterMs : undefined;
  const declaration = declarationDigest(turn.vm);
  const moment = { nowMs, old, attempts, step, nextRetryMs, declaration };
  const described = describeFailure(failure, moment);
  turn.failed = described;
  await writeView(turn, {
    state: { is: "failed", failure: described, isStalled },
    handled: handledOf(turn),
    failedSteps: failedSteps(turn, described, options),
    ...placeOf(turn),
    ...(options.isOver === true ? { operation: undefined } : {}),
    ...(options.recentSteps === undefined ? {} : { recentSteps: options.recentSteps }),
    plan: options.plan,
  });
  deps.reports.failed(turn.vm, failure, {
    step,
    operation,
    attempts,
    isNew,
    isStalled,
    wasStalled,
    retryInMs: retriesOnTimer && !isStalled ? afterMs : undefined,
  });
  if (isStalled && !retriesOnTimer) return rest(turn, failure, described);
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
  const { deps, vm } = turn;
  const nowMs = deps.clock.nowMs();
  const { failure: old, waitingFor: waited } = vm.status ?? {};
  const waitingFor = { kind: "Dependency", name: `Hypervisor ${name}` } as const;
  const isSame = old?.category === failure.category;
  const attempts = isSame ? old.attempts : 1;
  const isTold = isSame && waited?.kind === waitingFor.kind && waited.name === waitingFor.name;
  endBeginning(turn);
  const described = isTold ? old : describeFailure(failure, { nowMs, old, attempts });
  // In the words that were told: those of every further look would be a write each.
  loseSight(turn, { ...failure, message: described.message });
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
 * Looks go on: when the world is another, something else is to be done, and is. But what was
 * refused is not sent again before its time, and what failed as often as it may not before a
 * person says something, whatever changed beside it.
 */
export async function holdFailed(
  turn: Turn,
  { step, tried }: { readonly step: string; readonly tried: string },
): Promise<Outcome | undefined> {
  const { deps, vm } = turn;
  const held = heldStep(vm, { step, tried }, deps.clock.nowMs());
  // Every other failure has held back the whole VM, unless the world is another.
  if (held?.isStalled !== true) return undefined;
  endBeginning(turn);
  releaseSlots(turn);
  const failure = failureAgain(vm, held.failed);
  await writeView(turn, { state: { is: "failed", failure, isStalled: true } });
  return held.waitMs === Infinity ? stalled("GivenUp") : again(failure.category, held.waitMs);
}

function failedSteps(
  { vm }: Turn,
  failure: StatusFailure,
  { tried }: FailOptions,
): NonNullable<VmView["failedSteps"]> {
  const { step } = failure;
  if (step === undefined) return failedStepsOf(vm);
  return withFailed(vm, step, { failure, tried });
}

export function handledOf({ vm }: Turn): { handledReconcileAt?: string } {
  const asked = annotationToken(vm.metadata, "reconcileAt");
  return asked === undefined ? {} : { handledReconcileAt: asked };
}

function isStalledNow({ vm }: Pick<Turn, "vm">): boolean {
  const { conditions = [] } = vm.status ?? {};
  return conditions.some(({ type, status }) => type === "Stalled" && status === "True");
}
