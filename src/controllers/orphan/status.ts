import { orphanConditions, orphanReasons } from "../../api/index.ts";
import type { Orphan, OrphanStatus } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { Condition } from "../../kernel/object.ts";
import { removeCondition, setCondition, type ConditionState } from "../../runtime/index.ts";
import { defined, failureText, type StatusFailure } from "../failures/index.ts";
import { annotationToken, type FailedStep, type OperationRecord } from "../operations/index.ts";
import type { Find } from "./find.ts";
import { decidedForOf, observationOf, seenPart } from "./observation.ts";
import type { Sighting } from "./sightings.ts";

type StatusWaiting = NonNullable<OrphanStatus["waitingFor"]>;

/** How things stand with one Orphan. */
export type OrphanState =
  | { readonly is: "undecided" }
  | { readonly is: "kept" }
  | { readonly is: "keptUnseen" }
  | {
      readonly is: "working";
      readonly reason: keyof typeof orphanReasons;
      readonly message: string;
    }
  | { readonly is: "waiting"; readonly for: StatusWaiting["kind"]; readonly name: string }
  | { readonly is: "notAllowed"; readonly message: string }
  | { readonly is: "changed"; readonly message: string }
  | { readonly is: "failed"; readonly failure: StatusFailure; readonly isStalled: boolean }
  | { readonly is: "gone"; readonly reclaimedBytes: number };

export interface OrphanView {
  readonly state: OrphanState;
  readonly find?: Find | undefined;
  readonly sighting?: Sighting | undefined;
  readonly operation?: OperationRecord | undefined;
  readonly failedSteps: readonly FailedStep[];
  /** The policy lets it go, and for what. */
  readonly decidedFor?: OrphanStatus["decidedFor"];
}

const evidenceMax = 16;

/** The whole status after a run. Pure. */
export function orphanStatusOf(orphan: Orphan, view: OrphanView, nowMs: number): OrphanStatus {
  const {
    operation: _operation,
    failure: _failure,
    failedSteps: _failedSteps,
    waitingFor: waited,
    ...kept
  } = orphan.status ?? {};
  const { generation } = orphan.metadata;
  const { state, find, sighting, operation, failedSteps } = view;
  return {
    ...kept,
    ...(find === undefined ? {} : observedPart(orphan, find)),
    ...sightingPart(isReplaced(orphan, find) ? {} : kept, sighting),
    ...defined<OrphanStatus>({
      observedGeneration: generation,
      decidedFor: view.decidedFor ?? decidedForOf(orphan),
      operation,
      failure: state.is === "failed" ? state.failure : undefined,
      failedSteps: failedSteps.length === 0 ? undefined : [...failedSteps],
      waitingFor: waitingPart(state, waited, nowMs),
      handledReconcileAt: annotationToken(orphan.metadata, "reconcileAt"),
      reclaimed: state.is === "gone" ? String(state.reclaimedBytes) : kept.reclaimed,
    }),
    conditions: conditionsOf(orphan, state, nowMs),
  };
}

/** A wait that goes on keeps its beginning. */
function waitingPart(
  state: OrphanState,
  old: StatusWaiting | undefined,
  nowMs: number,
): StatusWaiting | undefined {
  if (state.is !== "waiting") return undefined;
  const { for: kind, name } = state;
  const since = old?.kind === kind ? old.since : formatTime(nowMs);
  return { kind, name: name.slice(0, 512), since };
}

function observedPart(orphan: Orphan, find: Find): OrphanStatus {
  const { ownership, evidence, claim, power, fileName } = find;
  return defined<OrphanStatus>({
    ...seenPart(find),
    observation: observationOf(orphan, find),
    ownership,
    evidence: evidence.slice(0, evidenceMax).map((text) => text.slice(0, 512)),
    claim,
    fileName: fileName?.slice(0, 512),
    powerState: power,
    allowedDecisions: [...find.allowed],
    blocks: find.blocks.length === 0 ? undefined : find.blocks.slice(0, evidenceMax),
    command: find.command?.slice(0, 1024),
  });
}

/** Another thing has the id than the one that was reported. */
function isReplaced(orphan: Orphan, find: Find | undefined): boolean {
  const { observation } = orphan.status ?? {};
  return (
    find !== undefined && observation !== undefined && observation !== observationOf(orphan, find)
  );
}

/** When it was reported is not counted on: that would be a write with every sweep. */
function sightingPart(
  { firstSeenAt, sightings }: OrphanStatus,
  sighting: Sighting | undefined,
): Pick<OrphanStatus, "firstSeenAt" | "sightings"> {
  if (firstSeenAt !== undefined || sighting === undefined) {
    return defined({ firstSeenAt, sightings });
  }
  return { firstSeenAt: formatTime(sighting.firstMs), sightings: sighting.times };
}

function conditionsOf(
  { metadata, status }: Orphan,
  state: OrphanState,
  nowMs: number,
): Condition[] {
  const moment = { nowMs, observedGeneration: metadata.generation };
  let conditions: readonly Condition[] = status?.conditions ?? [];
  const states = statesOf(state);
  for (const one of states) conditions = setCondition(conditions, one, moment);
  for (const type of [orphanConditions.Reconciling, orphanConditions.Stalled]) {
    if (!states.some((one) => one.type === type)) conditions = removeCondition(conditions, type);
  }
  return [...conditions];
}

function statesOf(state: OrphanState): ConditionState[] {
  const { Ready, Reconciling, Stalled } = orphanConditions;
  switch (state.is) {
    case "undecided": {
      const reason = orphanReasons.DecisionNeeded;
      const message = "Nothing declares it. Decide what becomes of it: berth orphans.";
      return [{ type: Ready, status: "False", reason, message }];
    }
    case "kept": {
      const message = "A person decided to leave it. It stays, and is not reported any more.";
      return [{ type: Ready, status: "True", reason: orphanReasons.Kept, message }];
    }
    case "keptUnseen": {
      const message =
        "A person decided to leave it. The last look did not find it, or found it declared. " +
        "If that stays so for the grace time, this object goes.";
      return [{ type: Ready, status: "True", reason: orphanReasons.Kept, message }];
    }
    case "working":
      return [
        { type: Ready, status: "False", reason: state.reason, message: state.message },
        { type: Reconciling, status: "True", reason: state.reason, message: state.message },
      ];
    case "waiting": {
      const message = `Waits for ${state.name}.`;
      return [{ type: Ready, status: "False", reason: orphanReasons.Waiting, message }];
    }
    case "changed":
    case "notAllowed": {
      const { message } = state;
      const { ChangedSinceDecision, NotAllowed } = orphanReasons;
      const reason = state.is === "changed" ? ChangedSinceDecision : NotAllowed;
      return [
        { type: Ready, status: "False", reason, message },
        { type: Stalled, status: "True", reason, message },
      ];
    }
    case "failed": {
      const { failure, isStalled } = state;
      const said = { reason: failure.category, message: failureText(failure) };
      const ready: ConditionState = { type: Ready, status: "False", ...said };
      return isStalled ? [ready, { type: Stalled, status: "True", ...said }] : [ready];
    }
    case "gone": {
      const message = `It is destroyed: ${state.reclaimedBytes} bytes were reclaimed.`;
      return [{ type: Ready, status: "True", reason: orphanReasons.Gone, message }];
    }
  }
}
