import { failureReasons, vmImageConditions, vmImageReasons } from "../../api/index.ts";
import type { VMImage, VMImageStatus } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { Condition } from "../../kernel/object.ts";
import { removeCondition, setCondition, type ConditionState } from "../../runtime/index.ts";
import { defined, failureText, type StatusFailure } from "../failures/index.ts";
import { placeText, type Copy } from "./plan.ts";

/** What the schema allows for the message of a failure. */
const messageMax = 2048;

type Waiting = Omit<NonNullable<VMImageStatus["waitingFor"]>, "since">;

export interface ImageView {
  readonly copies: readonly Copy[];
  /** What is wrong with the image as a whole; absent: what is wrong with one of its copies. */
  readonly failure?: StatusFailure | undefined;
  /** Whose end it waits for, where no time of its own says when it is tried again. */
  readonly waitingFor?: Waiting | undefined;
  /** Nothing more is tried until something changes. */
  readonly isStalled?: boolean;
  /** Places that need the file and have no copy yet. */
  readonly awaited?: readonly string[];
  /** Hypervisors that need the file, and of which nobody knows yet whether they have it. */
  readonly unasked?: readonly string[];
  /** Whether any place needs the file; absent: it does. */
  readonly isWanted?: boolean;
  /** The VMs that keep an image which is being deleted, by their keys. */
  readonly heldBy?: readonly string[];
  /** Of a volume or a template: whether the hypervisor lists it. */
  readonly isListed?: boolean;
}

/** The whole status after a run. Pure. */
export function imageStatusOf(image: VMImage, view: ImageView, nowMs: number): VMImageStatus {
  const { copies } = view;
  const waitingFor = waitingPart(view, image.status?.waitingFor, nowMs);
  return defined<VMImageStatus>({
    observedGeneration: image.metadata.generation,
    copies: [...copies],
    operation: undefined,
    failure: failureOf(view),
    handledReconcileAt: image.status?.handledReconcileAt,
    waitingFor,
    conditions: [...conditionsOf(image, { ...view, waitingFor }, nowMs)],
  });
}

/** That of the image itself; else that of the first copy that failed, which is named. */
function failureOf({ failure, copies }: ImageView): StatusFailure | undefined {
  if (failure !== undefined) return failure;
  const failed = copies.find((copy) => copy.failure !== undefined);
  if (failed?.failure === undefined || copies.length === 1) return failed?.failure;
  const message = `The copy at ${placeText(failed)} has failed: ${failed.failure.message}`;
  return { ...failed.failure, message: message.slice(0, messageMax) };
}

function waitingPart(
  view: ImageView,
  old: VMImageStatus["waitingFor"],
  nowMs: number,
): VMImageStatus["waitingFor"] {
  const waitingFor = view.waitingFor ?? lockOf(view, old);
  if (waitingFor === undefined) return undefined;
  const isSame = old?.kind === waitingFor.kind && old.name === waitingFor.name;
  return { ...waitingFor, since: isSame ? old.since : formatTime(nowMs) };
}

/** A copy that was blocked waits for a lock, also while something else is written. */
function lockOf({ copies }: ImageView, old: VMImageStatus["waitingFor"]): Waiting | undefined {
  if (!copies.some(isBlocked)) return undefined;
  return old?.kind === "Lock" ? old : { kind: "Lock", name: "unknown" };
}

function isBlocked({ operation }: Copy): boolean {
  return operation?.outcome === "Blocked";
}

function conditionsOf(image: VMImage, view: ImageView, nowMs: number): readonly Condition[] {
  const moment = { nowMs, observedGeneration: image.metadata.generation };
  const old: readonly Condition[] = image.status?.conditions ?? [];
  const ready = readyOf(image, view);
  const told = withInUse(setCondition(old, ready, moment), view, moment);
  const stalled: ConditionState = { ...ready, type: vmImageConditions.Stalled, status: "True" };
  const conditions = isStalled(view)
    ? setCondition(told, stalled, moment)
    : removeCondition(told, stalled.type);
  const isUnverified = view.copies.some(({ state, verified }) => state === "Present" && !verified);
  const type = vmImageConditions.ChecksumUnverified;
  if (image.spec.source.http === undefined || !isUnverified)
    return removeCondition(conditions, type);
  const message = "A file of this name was there already; its checksum was not verified.";
  const { FoundByName: reason } = vmImageReasons;
  return setCondition(conditions, { type, status: "True", reason, message }, moment);
}

/** What holds an image that is being deleted. */
function withInUse(
  conditions: readonly Condition[],
  { heldBy: [first, ...others] = [] }: ImageView,
  moment: Parameters<typeof setCondition>[2],
): readonly Condition[] {
  const type = vmImageConditions.InUse;
  if (first === undefined) return removeCondition(conditions, type);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const message =
    `It is deleted when no VM refers to it any more: the VirtualMachine ${first}${more}. ` +
    "Delete the VM, or let it name another image.";
  const reason = vmImageReasons.VirtualMachinesRemain;
  return setCondition(conditions, { type, status: "True", reason, message }, moment);
}

/** Nothing more is tried by itself: with the image, or with the copy whose failure is told. */
function isStalled(view: ImageView): boolean {
  if (view.failure !== undefined) return view.isStalled === true;
  const failure = failureOf(view);
  if (failure === undefined || failure.nextRetryAt !== undefined) return false;
  // What a look was enough to refuse waits for a person, or for another thing that it names.
  return failure.step !== undefined || categoryPolicies[failure.category].next === "stall";
}

interface FailedAt {
  readonly category: StatusFailure["category"];
  readonly step?: string | undefined;
}

/**
 * Whether a failure says only that the hypervisor or its node could not be asked: then nothing is
 * known of the file, and what was under way goes on. A step that failed was observed.
 */
export function isUnreachable({ category, step }: FailedAt): boolean {
  return step === undefined && (category === "NetworkError" || category === "NodeUnhealthy");
}

/** Ready means observed so: the file is there, or nobody needs it. */
function readyOf(image: VMImage, view: ImageView): ConditionState {
  const type = vmImageConditions.Ready;
  const failure = failureOf(view);
  if (failure !== undefined) return failedReady(failure);
  const working = workingOf(image, view);
  if (working !== undefined) return working;
  const missing = view.copies.find(({ state }) => state !== "Present");
  if (missing !== undefined) {
    const { message = "The file is not there." } = missing;
    return { type, status: "False", reason: vmImageReasons.Missing, message };
  }
  const [awaited] = view.copies.length > 0 ? (view.awaited ?? []) : [];
  if (awaited !== undefined) {
    const message = `The file is not at ${awaited} yet.`;
    return { type, status: "False", reason: vmImageReasons.Missing, message };
  }
  return image.spec.source.http === undefined ? listedOf(view) : presentOf(view);
}

/** What is under way, or waits for a lock before it is tried again. */
function workingOf(image: VMImage, { copies, waitingFor }: ImageView): ConditionState | undefined {
  const type = vmImageConditions.Ready;
  const open = copies.find(({ operation }) => operation?.outcome === undefined && operation);
  if (open?.operation !== undefined) {
    const { step, intent: message } = open.operation;
    return { type, status: "False", reason: workReason(image, step), message };
  }
  if (!copies.some(isBlocked)) return undefined;
  const message = `Waits for the lock: ${(waitingFor?.name ?? "unknown").replace(/\.$/, "")}.`;
  return { type, status: "False", reason: vmImageReasons.Waiting, message };
}

function workReason({ metadata }: VMImage, step: string): string {
  if (step !== "Remove") return vmImageReasons.Downloading;
  const isDeleted = metadata.deletionTimestamp !== undefined;
  return isDeleted ? vmImageReasons.Deleting : vmImageReasons.Progressing;
}

function unaskedReady(hypervisor: string): ConditionState {
  const message = `Berth has not reached the Hypervisor ${hypervisor} yet, which needs the file.`;
  const { Unreachable: reason } = vmImageReasons;
  return { type: vmImageConditions.Ready, status: "Unknown", reason, message };
}

function failedReady(failure: StatusFailure): ConditionState {
  const type = vmImageConditions.Ready;
  const message = failureText(failure);
  if (isUnreachable(failure)) {
    return { type, status: "Unknown", reason: vmImageReasons.Unreachable, message };
  }
  return { type, status: "False", reason: failureReasons[failure.category], message };
}

function presentOf({ isWanted = true, copies, unasked = [] }: ImageView): ConditionState {
  const type = vmImageConditions.Ready;
  if (unasked[0] !== undefined) return unaskedReady(unasked[0]);
  if (copies.length > 0) {
    const message = "The file is present wherever it is needed.";
    return { type, status: "True", reason: vmImageReasons.Available, message };
  }
  // It was removed: the image is deleted, or names another file since.
  if (isWanted) {
    const message = "The file is not there.";
    return { type, status: "False", reason: vmImageReasons.Missing, message };
  }
  const message = "Nothing needs the file yet. It is brought when a VM does.";
  return { type, status: "True", reason: vmImageReasons.OnDemand, message };
}

function listedOf({ isListed = true }: ImageView): ConditionState {
  const type = vmImageConditions.Ready;
  if (isListed) {
    const message = "The hypervisor lists it.";
    return { type, status: "True", reason: vmImageReasons.Available, message };
  }
  const message =
    "The hypervisor does not list it as an image. If it is the disk of a VM, it can be copied all " +
    "the same: whether it exists is checked before a VM is created from it.";
  return { type, status: "Unknown", reason: vmImageReasons.NotListed, message };
}
