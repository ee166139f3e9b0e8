import { hypervisorConditions, hypervisorReasons } from "../../api/index.ts";
import type { Hypervisor, HypervisorStatus } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Inventory, InventoryStorage, SystemView } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import type { Condition } from "../../kernel/object.ts";
import { removeCondition, setCondition, type ConditionState } from "../../runtime/index.ts";
import { describeFailure, failureText } from "../failures/index.ts";
import type { Standing } from "./epoch.ts";
import type { InUse, Trouble } from "./plan.ts";

export type HypervisorFailure = NonNullable<HypervisorStatus["failure"]>;

/** Why what is there is not, or not wholly, compared with what is declared. */
export interface SweepTrouble {
  readonly reason: "SuspiciousSweep" | "TooManyOrphans";
  readonly message: string;
}

/** What one run found out. */
export type HypervisorView = (
  | {
      readonly is: "connected";
      readonly system: SystemView;
      readonly inventory: Inventory;
      readonly credentials?: HypervisorStatus["credentials"] | undefined;
      readonly unlockCredentials?: HypervisorStatus["credentials"] | undefined;
      readonly sweepTrouble?: SweepTrouble | undefined;
      readonly standing?: Standing | undefined;
    }
  | {
      readonly is: "away";
      readonly trouble: Trouble;
      readonly failure: HypervisorFailure;
      readonly isStalled: boolean;
    }
) & {
  /** It is being deleted, and has to stay for now. */
  readonly inUse?: InUse | undefined;
};

/** The whole status after a run. Pure. */
export function hypervisorStatusOf(
  hypervisor: Hypervisor,
  view: HypervisorView,
  nowMs: number,
): HypervisorStatus {
  const {
    failure: old,
    conflictsWith: _other,
    otherRun: _run,
    observedBy: _by,
    ...kept
  } = hypervisor.status ?? {};
  const { generation } = hypervisor.metadata;
  const common = {
    ...kept,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    conditions: [...conditionsOf(hypervisor, view, nowMs)],
  };
  if (view.is === "away") {
    const { conflictsWith } = view.trouble;
    const other = conflictsWith === undefined ? {} : { conflictsWith };
    return { ...common, ...other, failure: view.failure };
  }
  const { system, inventory, credentials, unlockCredentials, standing } = view;
  return {
    ...common,
    ...runsOf(standing),
    ...observedFailure(standing, { nowMs, old }),
    version: system.version,
    systemId: system.systemId,
    endpoint: hypervisor.spec.endpoints[0] ?? "",
    ...(credentials === undefined ? {} : { credentials }),
    ...(unlockCredentials === undefined ? {} : { unlockCredentials }),
    nodes: nodesOf(inventory),
    storages: storagesOf(inventory, kept.storages ?? []),
    capabilities: [...system.capabilities].toSorted(),
  };
}

function conditionsOf(
  { metadata, status }: Hypervisor,
  view: HypervisorView,
  nowMs: number,
): readonly Condition[] {
  const moment = { nowMs, observedGeneration: metadata.generation };
  let conditions: readonly Condition[] = status?.conditions ?? [];
  for (const state of statesOf(view)) conditions = setCondition(conditions, state, moment);
  if (view.inUse === undefined) {
    conditions = removeCondition(conditions, hypervisorConditions.InUse);
  }
  if (view.is === "connected" && view.sweepTrouble === undefined) {
    conditions = removeCondition(conditions, hypervisorConditions.Swept);
  }
  if (isStalled(view)) return conditions;
  return removeCondition(conditions, hypervisorConditions.Stalled);
}

/** Only a person can end it: Berth could not come to act by waiting. */
function isStalled(view: HypervisorView): boolean {
  if (view.is === "away") return view.isStalled;
  const observed = observing(view);
  return observed !== undefined && needsPerson(observed);
}

function observing({
  standing,
}: HypervisorView & { is: "connected" }): (Standing & { is: "observing" }) | undefined {
  return standing?.is === "observing" ? standing : undefined;
}

function needsPerson({ trouble }: Standing & { is: "observing" }): boolean {
  return categoryPolicies[trouble.failure.category].next === "stall";
}

function runsOf(standing: Standing | undefined): Pick<HypervisorStatus, "otherRun" | "observedBy"> {
  if (standing?.is !== "observing") return {};
  const { other, run } = standing;
  return { ...otherRunOf(other), ...(run === undefined ? {} : { observedBy: run }) };
}

function otherRunOf(
  other: (Standing & { is: "observing" })["other"],
): Pick<HypervisorStatus, "otherRun"> {
  if (other === undefined) return {};
  const { number, at, place } = other;
  return {
    otherRun: {
      epoch: number,
      ...(place === undefined || place === "" ? {} : { place: place.slice(0, 256) }),
      ...(at === undefined ? {} : { startedAt: at.slice(0, 64) }),
    },
  };
}

function observedFailure(
  standing: Standing | undefined,
  { nowMs, old }: { readonly nowMs: number; readonly old: HypervisorFailure | undefined },
): Pick<HypervisorStatus, "failure"> {
  if (standing?.is !== "observing") return {};
  const { trouble, nextRetryMs } = standing;
  const attempts = Math.max(1, standing.attempts);
  return { failure: describeFailure(trouble.failure, { nowMs, old, attempts, nextRetryMs }) };
}

function* statesOf(view: HypervisorView): Iterable<ConditionState> {
  const { InUse: type } = hypervisorConditions;
  if (view.inUse !== undefined) yield { ...view.inUse, type, status: "True" };
  yield* view.is === "connected" ? connectedStates(view) : awayStates(view);
}

function* awayStates(view: HypervisorView & { is: "away" }): Iterable<ConditionState> {
  const { reason, failure } = view.trouble;
  const state = { reason, message: failureText(failure) };
  yield { ...state, type: hypervisorConditions.Ready, status: "False" };
  if (failure.category === "NetworkError") {
    yield { ...state, type: hypervisorConditions.Reachable, status: "False" };
  }
  if (failure.category === "PermissionDenied") {
    yield { ...state, type: hypervisorConditions.Authorized, status: "False" };
  }
  if (view.isStalled) yield { ...state, type: hypervisorConditions.Stalled, status: "True" };
}

function* connectedStates(view: HypervisorView & { is: "connected" }): Iterable<ConditionState> {
  const { system, inventory, sweepTrouble } = view;
  if (sweepTrouble !== undefined) {
    yield { ...sweepTrouble, type: hypervisorConditions.Swept, status: "False" };
  }
  const isWhole = inventory.isComplete;
  yield {
    type: hypervisorConditions.Reachable,
    status: "True",
    reason: isWhole ? hypervisorReasons.Connected : hypervisorReasons.PartialView,
    message: isWhole ? "It answers." : `Not seen: ${listText(inventory.missing)}.`.slice(0, 4000),
  };
  const denied = system.findings.filter(({ category }) => category === "PermissionDenied");
  const isAllowed = denied.length === 0;
  const texts = denied.map(({ message, remedy = "" }) => `${message} ${remedy}`.trim());
  yield {
    type: hypervisorConditions.Authorized,
    status: isAllowed ? "True" : "False",
    reason: isAllowed ? hypervisorReasons.Succeeded : "PermissionDenied",
    message: isAllowed ? "The credentials have all rights." : texts.join(" ").slice(0, 4000),
  };
  const observed = observing(view);
  if (observed !== undefined) {
    yield* observedStates(observed);
    return;
  }
  const message = `It answers, with ${inventory.nodes.length} nodes.`;
  const { Connected: reason } = hypervisorReasons;
  yield { type: hypervisorConditions.Ready, status: "True", reason, message };
}

function* observedStates(standing: Standing & { is: "observing" }): Iterable<ConditionState> {
  const { trouble } = standing;
  const state = { reason: trouble.reason, message: failureText(trouble.failure) };
  yield { ...state, type: hypervisorConditions.Ready, status: "False" };
  if (needsPerson(standing)) {
    yield { ...state, type: hypervisorConditions.Stalled, status: "True" };
  }
}

function nodesOf({ nodes }: Inventory): NonNullable<HypervisorStatus["nodes"]> {
  return nodes
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ name, health, cpus, memoryBytes, detail }) => ({
      name,
      health,
      ...(cpus === undefined ? {} : { cpus }),
      ...(memoryBytes === undefined ? {} : { memory: String(memoryBytes) }),
      ...(detail === undefined ? {} : { message: detail.slice(0, 512) }),
    }));
}

type StatusStorages = NonNullable<HypervisorStatus["storages"]>;

/** One entry for each name, whichever nodes have it. */
function storagesOf({ storages, nodes }: Inventory, old: StatusStorages): StatusStorages {
  const names = [...new Set(storages.map(({ name }) => name))].toSorted();
  return names.flatMap((name) => {
    const rows = storages.filter((row) => row.name === name);
    const [first] = rows;
    if (first === undefined) return [];
    const on = [...new Set(rows.map(({ node }) => node))].toSorted();
    const before = old.find((entry) => entry.name === name)?.capacity;
    const capacity = steadyCapacity(first, before);
    return [
      {
        name,
        ...(first.type === undefined ? {} : { type: first.type }),
        shared: first.isShared,
        usable: rows.some(({ isUsable }) => isUsable),
        contents: [...first.contents].toSorted(),
        ...(on.length < nodes.length ? { nodes: on } : {}),
        ...(capacity === undefined ? {} : { capacity }),
      },
    ];
  });
}

/** Some storages count their capacity anew with every byte; a status is not a meter. */
function steadyCapacity(
  { capacityBytes }: InventoryStorage,
  before: string | undefined,
): string | undefined {
  if (capacityBytes === undefined) return undefined;
  const old = Number(before ?? Number.NaN);
  return Math.abs(capacityBytes - old) < capacityBytes * 0.1 ? before : String(capacityBytes);
}
