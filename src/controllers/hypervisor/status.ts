import { hypervisorConditions, hypervisorReasons } from "../../api/index.ts";
import type { Hypervisor, HypervisorStatus } from "../../api/index.ts";
import type { Inventory, InventoryStorage, SystemView } from "../../hypervisor/index.ts";
import type { Condition } from "../../kernel/object.ts";
import { removeCondition, setCondition, type ConditionState } from "../../runtime/index.ts";
import { failureText } from "../failures/index.ts";
import type { Trouble } from "./plan.ts";

export type HypervisorFailure = NonNullable<HypervisorStatus["failure"]>;

/** Why what is there is not, or not wholly, compared with what is declared. */
export interface SweepTrouble {
  readonly reason: "SuspiciousSweep" | "TooManyOrphans";
  readonly message: string;
}

/** What one run found out. */
export type HypervisorView =
  | {
      readonly is: "connected";
      readonly system: SystemView;
      readonly inventory: Inventory;
      readonly credentials?: HypervisorStatus["credentials"] | undefined;
      readonly unlockCredentials?: HypervisorStatus["credentials"] | undefined;
      readonly sweepTrouble?: SweepTrouble | undefined;
    }
  | {
      readonly is: "away";
      readonly trouble: Trouble;
      readonly failure: HypervisorFailure;
      readonly isStalled: boolean;
    };

/** The whole status after a run. Pure. */
export function hypervisorStatusOf(
  hypervisor: Hypervisor,
  view: HypervisorView,
  nowMs: number,
): HypervisorStatus {
  const { failure: _old, conflictsWith: _other, ...kept } = hypervisor.status ?? {};
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
  const { system, inventory, credentials, unlockCredentials } = view;
  return {
    ...common,
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
  if (view.is === "connected" && view.sweepTrouble === undefined) {
    conditions = removeCondition(conditions, hypervisorConditions.Swept);
  }
  if (view.is === "away" && view.isStalled) return conditions;
  return removeCondition(conditions, hypervisorConditions.Stalled);
}

function statesOf(view: HypervisorView): Iterable<ConditionState> {
  return view.is === "connected" ? connectedStates(view) : awayStates(view);
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

function* connectedStates({
  system,
  inventory,
  sweepTrouble,
}: HypervisorView & { is: "connected" }): Iterable<ConditionState> {
  if (sweepTrouble !== undefined) {
    yield { ...sweepTrouble, type: hypervisorConditions.Swept, status: "False" };
  }
  const isWhole = inventory.isComplete;
  yield {
    type: hypervisorConditions.Reachable,
    status: "True",
    reason: isWhole ? hypervisorReasons.Connected : hypervisorReasons.PartialView,
    message: isWhole ? "It answers." : `Not seen: ${inventory.missing.join(", ")}.`.slice(0, 4000),
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
  const message = `It answers, with ${inventory.nodes.length} nodes.`;
  const { Connected: reason } = hypervisorReasons;
  yield { type: hypervisorConditions.Ready, status: "True", reason, message };
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
