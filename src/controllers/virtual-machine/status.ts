import { failureReasons, vmConditions, vmReasons } from "../../api/index.ts";
import type { ClaimSpec, VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import type { Difference, GuestView, Machine, Seen } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import type { Condition } from "../../kernel/object.ts";
import { setCondition, type ConditionState } from "../../runtime/index.ts";
import { defined, failureText, type StatusFailure } from "../failures/index.ts";
import { failedStepsOf, type FailedStep } from "../operations/index.ts";
import { originsText } from "./created-from.ts";
import { recentOf, type RecentStep } from "./flapping.ts";
import { addressesOf } from "./status-addresses.ts";
import { agentReady, running } from "./status-guest.ts";
import { hasDisk, observedPart } from "./status-observed.ts";
import { sinceWhen, waitingSummary, type Waiting } from "./status-waiting.ts";

export type StatusOperation = NonNullable<VirtualMachineStatus["operation"]>;

/** How things stand with a VM, in one of these ways. */
export type VmState =
  | { readonly is: "working"; readonly reason: keyof typeof vmReasons; readonly message: string }
  | { readonly is: "waiting"; readonly waitingFor: Waiting }
  | {
      readonly is: "failed";
      readonly failure: StatusFailure;
      readonly isStalled: boolean;
      /** Whose end it waits for, where no time of its own says when it is tried again. */
      readonly waitingFor?: Waiting;
    }
  | {
      readonly is: "resting";
      readonly drift: readonly Difference[];
      readonly pending: readonly string[];
      readonly isApplied: boolean;
      readonly changed?: readonly string[];
    }
  | { readonly is: "paused" }
  | { readonly is: "protected" };

/** What one run found out. What it leaves out was not looked at, and stays as it was. */
export interface VmView {
  readonly state: VmState;
  readonly seen?: Seen | undefined;
  readonly claim?: ClaimSpec | undefined;
  readonly operation?: StatusOperation | undefined;
  /** What the agent in the guest said, where it was asked. */
  readonly guest?: GuestView | undefined;
  /** Changes that a person has to approve first. */
  readonly plan?: VirtualMachineStatus["plan"];
  /** What this copy would do, where it only observes. */
  readonly plannedSteps?: VirtualMachineStatus["plannedSteps"];
  /** Set by the run itself: where the machine is going to be. */
  readonly place?: Partial<
    Record<"hypervisor" | "externalId" | "identity" | "node", string | undefined>
  >;
  /** Steps that count as failed; absent: those that did before. */
  readonly failedSteps?: readonly FailedStep[];
  /** Changes of power and settings; absent: those that were made before. */
  readonly recentSteps?: readonly RecentStep[];
  readonly lastTask?: string;
  readonly handled?: Pick<VirtualMachineStatus, "handledReconcileAt" | "handledRestartAt">;
}

/** The whole status after a run. Pure, and the only place where conditions are made. */
export function statusOf(vm: VirtualMachine, view: VmView, nowMs: number): VirtualMachineStatus {
  const { state, seen, claim, operation, place, handled } = view;
  const old = vm.status ?? {};
  const { waitingFor, appliedGeneration, observedGeneration } = old;
  const { generation } = vm.metadata;
  return defined<VirtualMachineStatus>({
    ...old,
    observedGeneration: keepsReady(vm, view) ? observedGeneration : generation,
    appliedGeneration: isApplied(view) ? generation : appliedGeneration,
    ...(claim && placeOf(claim)),
    ...observedPart(vm, seen, claim),
    ...addressesPart(view),
    plan: view.plan,
    plannedSteps: view.plannedSteps,
    ...place,
    ...handled,
    ...deletionPolicyPart(vm, claim),
    operation,
    failure: failureOf(view, old.failure),
    failedSteps: failedPart(vm, view),
    lastTask: view.lastTask ?? old.lastTask,
    recentSteps: recentOf(view.recentSteps ?? old.recentSteps, state.is === "resting"),
    waitingFor: sinceWhen(waitingOf(state), waitingFor, nowMs),
    conditions: [...conditionsOf(vm, view, nowMs)],
  });
}

/** Where it is or is going to be. A status that was lost gets it back with the next write. */
function placeOf({
  hypervisor,
  externalId,
  identity,
  node,
}: ClaimSpec): Partial<VirtualMachineStatus> {
  return { hypervisor: hypervisor.name, externalId, identity, ...(node && { node }) };
}

/**
 * From then on what differs is drift. A change that waits for a restart is not forgotten by that:
 * the hypervisor itself holds it as pending.
 */
function isApplied({ state }: VmView): boolean {
  return state.is === "resting" && state.isApplied;
}

/** A failure is told until the step that failed is over. */
function failureOf(
  { state, operation }: VmView,
  old: StatusFailure | undefined,
): StatusFailure | undefined {
  if (state.is === "failed") return state.failure;
  const isTriedAgain = old?.step !== undefined && operation?.step === old.step;
  return isTriedAgain ? old : undefined;
}

/** Counts outlive the failure that is told. Once all is as declared, nothing counts any more. */
function failedPart(
  vm: VirtualMachine,
  { state, failedSteps = failedStepsOf(vm) }: VmView,
): VirtualMachineStatus["failedSteps"] {
  return state.is === "resting" || failedSteps.length === 0 ? undefined : [...failedSteps];
}

/** Addresses are those of a guest that runs; what was not asked stays as it was. */
function addressesPart({ seen, guest }: VmView): {
  addresses?: VirtualMachineStatus["addresses"] | undefined;
} {
  if (guest?.agent === "Answered") return { addresses: addressesOf(guest.cards) };
  const isStill = seen?.at === "ours" && stillPowers.has(seen.machine.power);
  return isStill || seen?.at === "foreign" ? { addresses: undefined } : {};
}

const stillPowers: ReadonlySet<string> = new Set(["Stopped", "Suspended"]);

function deletionPolicyPart(
  { spec }: VirtualMachine,
  claim: ClaimSpec | undefined,
): Pick<VirtualMachineStatus, "deletionPolicy"> {
  const whenAbsent = claim?.origin === "Adopted" ? "Retain" : "Delete";
  return { deletionPolicy: spec.deletionPolicy ?? whenAbsent };
}

function waitingOf(state: VmState): Waiting | undefined {
  return "waitingFor" in state ? state.waitingFor : undefined;
}

function conditionsOf(vm: VirtualMachine, view: VmView, nowMs: number): readonly Condition[] {
  const moment = { nowMs, observedGeneration: vm.metadata.generation };
  const old: readonly Condition[] = vm.status?.conditions ?? [];
  const summary = summaryOf(vm, view);
  const states = [
    ...observedConditions(vm, view, summary),
    readyOf(vm, view, summary),
    syncedOf(vm, view, summary),
    ...progressOf(view, summary),
  ];
  const passing: readonly string[] = [vmConditions.Reconciling, vmConditions.Stalled];
  const kept = old.filter(({ type }) => !passing.includes(type));
  const said = states.filter((state) => state !== undefined);
  const next = said.reduce<readonly Condition[]>(
    (all, state) => setCondition(all, state, moment),
    kept,
  );
  return keepTimes(next, old);
}

/** kstatus' two: at most one of them, and neither at rest. */
function progressOf({ state }: VmView, summary: Summary): ConditionState[] {
  switch (state.is) {
    case "resting":
    case "paused":
    case "protected":
      return [];
    case "failed": {
      const type = state.isStalled ? vmConditions.Stalled : vmConditions.Reconciling;
      return [{ ...summary, type, status: "True" }];
    }
    case "working":
    case "waiting":
      return [{ ...summary, type: vmConditions.Reconciling, status: "True" }];
  }
}

/** A condition that was taken out and put back as it was has not changed in between. */
function keepTimes(next: readonly Condition[], old: readonly Condition[]): readonly Condition[] {
  return next.map((condition) => {
    const before = old.find(({ type }) => type === condition.type);
    if (before?.status !== condition.status) return condition;
    return { ...condition, lastTransitionTime: before.lastTransitionTime };
  });
}

interface Summary {
  readonly reason: string;
  readonly message: string;
}

/** In one word and one sentence, what goes on. */
function summaryOf(vm: VirtualMachine, { state }: VmView): Summary {
  switch (state.is) {
    case "working":
      return { reason: vmReasons[state.reason], message: state.message };
    case "waiting":
      return waitingSummary(state.waitingFor);
    case "failed":
      return {
        reason: failureReasons[state.failure.category],
        message: failureText(state.failure),
      };
    case "paused":
      return { reason: vmReasons.Paused, message: "The annotation berth.dev/paused is set." };
    case "protected":
      return {
        reason: vmReasons.Protected,
        message: "deletionProtection is on: set it to false to delete the machine.",
      };
    case "resting":
      return { reason: vmReasons.Succeeded, message: restingMessage(vm) };
  }
}

function restingMessage({ spec }: VirtualMachine): string {
  return spec.powerState === "Running" ? "The machine stands and runs." : "The machine stands.";
}

function readyOf(vm: VirtualMachine, view: VmView, summary: Summary): ConditionState | undefined {
  const type = vmConditions.Ready;
  if (vm.metadata.deletionTimestamp !== undefined) return goingOf(view, summary);
  if (keepsReady(vm, view)) return undefined;
  if (isUnreachable(view)) {
    return { ...summary, type, status: "Unknown", reason: vmReasons.Unreachable };
  }
  if (stands(vm, view)) {
    return { type, status: "True", reason: vmReasons.Succeeded, message: restingMessage(vm) };
  }
  return { ...(leftAloneOf(vm, view) ?? summary), type, status: "False" };
}

/** At rest and yet not as it has to be: somebody changed it by hand, and that is left so. */
function leftAloneOf({ spec }: VirtualMachine, { state, seen }: VmView): Summary | undefined {
  if (state.is !== "resting" || seen?.at !== "ours") return undefined;
  const { power } = seen.machine;
  const isThere = (name: string): boolean => hasDisk(seen.machine, name);
  const lost = state.drift.flatMap(({ path }) => /^disks\[([^\]]*)\]$/.exec(path)?.[1] ?? []);
  const lacks = lost.filter((name) => !isThere(name)).map((name) => `it lacks the disk ${name}`);
  const isOther = power !== spec.powerState;
  const found = [...lacks, ...(isOther ? [`it is ${power}, and not ${spec.powerState}`] : [])];
  if (found.length === 0) return undefined;
  const message = `Changed by hand, and left so by driftPolicy: ${listText(found)}.`;
  return { reason: vmReasons.Drifted, message };
}

function goingOf({ state }: VmView, summary: Summary): ConditionState {
  const isDeleting = state.is === "working" || state.is === "waiting";
  const reason = isDeleting ? vmReasons.Deleting : summary.reason;
  return { type: vmConditions.Ready, status: "False", reason, message: summary.message };
}

/** Nothing was looked at in this run: what was seen last stands, with its own generation. */
function keepsReady(vm: VirtualMachine, view: VmView): boolean {
  if (vm.metadata.deletionTimestamp !== undefined) return false;
  if (view.state.is === "paused") {
    return view.seen === undefined && vm.status?.conditions !== undefined;
  }
  return view.seen === undefined && !isUnreachable(view) && isKnownReady(vm);
}

/** A machine was seen under this object, and it was not said to be unfit. */
function isKnownReady({ status }: VirtualMachine): boolean {
  const { disks, conditions = [] } = status ?? {};
  return (
    disks !== undefined &&
    conditions.some(({ type, status: is }) => type === "Ready" && is !== "False")
  );
}

function isUnreachable({ state, seen }: VmView): boolean {
  if (seen?.at === "unknown") return true;
  if (seen !== undefined || state.is !== "failed") return false;
  return state.failure.category === "NetworkError";
}

/** Stands, is ours and has the declared power state. No agent is needed. */
function stands(vm: VirtualMachine, { claim, seen }: VmView): boolean {
  if (seen?.at !== "ours" || claim?.everExisted !== true) return false;
  // What is suspended keeps its form until it runs again: a new disk waits for that.
  const isWhole = hasDisks(vm, seen.machine) || seen.machine.power === "Suspended";
  return isWhole && seen.machine.power === vm.spec.powerState;
}

function hasDisks({ spec }: VirtualMachine, machine: Machine): boolean {
  const declared = (spec.disks ?? []).filter(({ state }) => state !== "Absent");
  return declared.every(({ name }) => hasDisk(machine, name));
}

function syncedOf(vm: VirtualMachine, { state }: VmView, summary: Summary): ConditionState {
  const { Synced: type } = vmConditions;
  if (state.is !== "resting") return { ...summary, type, status: "False" };
  const fields = listText(state.drift.map(({ path }) => path));
  if (fields !== "" && vm.spec.driftPolicy === "Warn") {
    const message = `Changed by hand: ${fields}. driftPolicy is Warn.`;
    return { type, status: "False", reason: vmReasons.Drifted, message };
  }
  if (state.pending.length > 0) {
    const message = `Waits for the next restart: ${listText(state.pending)}.`;
    return { type, status: "False", reason: vmReasons.RestartRequired, message };
  }
  const left = fields === "" ? "" : ` Changed by hand, and left so: ${fields}.`;
  const message = `The machine is as declared.${left}${originsText(state.changed)}`.slice(0, 4000);
  return { type, status: "True", reason: vmReasons.Succeeded, message };
}

function* observedConditions(
  vm: VirtualMachine,
  { seen, state, claim, guest }: VmView,
  summary: Summary,
): Iterable<ConditionState> {
  if (seen === undefined) return;
  if (seen.at === "unknown") {
    const message = seen.failure.message;
    const unknown = { status: "Unknown", reason: vmReasons.Unreachable, message } as const;
    yield { ...unknown, type: vmConditions.Provisioned };
    yield { ...unknown, type: vmConditions.Running };
    return;
  }
  const machine = seen.at === "ours" ? seen.machine : undefined;
  const whole = provisioned(vm, machine);
  const why = state.is === "failed" ? summary : leftAloneOf(vm, { state, seen });
  // One failure, told by everything that it keeps from being so.
  yield whole.status === "False" ? { ...whole, ...why } : whole;
  yield isUnproven(seen, claim)
    ? { ...summary, type: vmConditions.Running, status: "Unknown" }
    : running(machine, claim);
  const agent = agentReady(vm, machine, guest);
  if (agent !== undefined) yield agent;
}

/** Something exists under the id of a VM that existed, and nothing proves that it is the VM. */
function isUnproven({ at }: Seen, claim: ClaimSpec | undefined): boolean {
  return (at === "foreign" || at === "opaque") && claim?.everExisted === true;
}

function provisioned(vm: VirtualMachine, machine: Machine | undefined): ConditionState {
  const type = vmConditions.Provisioned;
  if (machine !== undefined && hasDisks(vm, machine)) {
    const message = "The machine exists with its disks.";
    return { type, status: "True", reason: vmReasons.Succeeded, message };
  }
  const isDeleting = vm.metadata.deletionTimestamp !== undefined;
  const reason = isDeleting ? vmReasons.Deleting : vmReasons.Creating;
  return { type, status: "False", reason, message: "The machine does not stand whole." };
}
