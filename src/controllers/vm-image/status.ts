import { failureReasons, vmImageConditions, vmImageReasons } from "../../api/index.ts";
import type { VMImage, VMImageStatus } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { Condition } from "../../kernel/object.ts";
import { removeCondition, setCondition, type ConditionState } from "../../runtime/index.ts";
import { defined, describeFailure, failureText } from "../failures/index.ts";
import type { Copy } from "./plan.ts";

type Waiting = Omit<NonNullable<VMImageStatus["waitingFor"]>, "since">;

export interface ImageView {
  readonly copies: readonly Copy[];
  readonly operation?: VMImageStatus["operation"] | undefined;
  readonly failure?: Failure | undefined;
  /** Whose end it waits for, where no time of its own says when it is tried again. */
  readonly waitingFor?: Waiting | undefined;
  /** How often it failed so, one after the other. */
  readonly attempts?: number;
  /** When it is tried again by itself. */
  readonly nextRetryMs?: number | undefined;
  /** Nothing more is tried until something changes. */
  readonly isStalled?: boolean;
}

/** The whole status after a run. Pure. */
export function imageStatusOf(image: VMImage, view: ImageView, nowMs: number): VMImageStatus {
  const { copies, operation, failure, attempts = 1, nextRetryMs } = view;
  const old = image.status?.failure;
  return defined<VMImageStatus>({
    observedGeneration: image.metadata.generation,
    copies: [...copies],
    operation,
    failure: failure && describeFailure(failure, { nowMs, old, attempts, nextRetryMs }),
    waitingFor: waitingPart(view, image.status?.waitingFor, nowMs),
    conditions: [...conditionsOf(image, view, nowMs)],
  });
}

function waitingPart(
  { waitingFor }: ImageView,
  old: VMImageStatus["waitingFor"],
  nowMs: number,
): VMImageStatus["waitingFor"] {
  if (waitingFor === undefined) return undefined;
  const isSame = old?.kind === waitingFor.kind && old.name === waitingFor.name;
  return { ...waitingFor, since: isSame ? old.since : formatTime(nowMs) };
}

function conditionsOf(image: VMImage, view: ImageView, nowMs: number): readonly Condition[] {
  const moment = { nowMs, observedGeneration: image.metadata.generation };
  const old: readonly Condition[] = image.status?.conditions ?? [];
  const ready = readyOf(view);
  const told = setCondition(old, ready, moment);
  const stalled: ConditionState = { ...ready, type: vmImageConditions.Stalled, status: "True" };
  const conditions =
    view.isStalled === true
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

function readyOf({ failure, operation }: ImageView): ConditionState {
  const type = vmImageConditions.Ready;
  if (failure !== undefined) {
    const reason = failureReasons[failure.category];
    return { type, status: "False", reason, message: failureText(failure) };
  }
  const message = operation?.intent ?? "The image can be used.";
  const reason = operation ? vmImageReasons.Downloading : vmImageReasons.Available;
  return { type, status: "True", reason, message };
}
