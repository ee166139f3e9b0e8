import { annotations, virtualMachineKind } from "../../api/index.ts";
import type {
  Claim,
  Hypervisor,
  VirtualMachine,
  VMClass,
  VMImage,
  VMNetwork,
} from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Failure, Fence, HypervisorDriver, Inventory, Seen } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import type { Random } from "../../kernel/random.ts";
import { writeStatus, type EventRecorder, type Slots } from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import type { Connection, Connections } from "../hypervisor/index.ts";
import {
  ageMs,
  annotationToken,
  failedStepsOf,
  isDone,
  isOpen,
  keptUntilTold,
  withoutSlots,
  type OperationDeps,
  type OperationRecord,
  type Resumed,
} from "../operations/index.ts";
import type { Reports } from "../reports/index.ts";
import { withoutStep, type RecentStep } from "./flapping.ts";
import type { Places } from "./places.ts";
import type { PlannedStep } from "./planned-steps.ts";
import { withIgnored } from "./shutdown.ts";
import { statusOf, type VmView } from "./status.ts";
import type { Waiting } from "./status-waiting.ts";
import { isNewsOfWait, tellWait } from "./told-waits.ts";

/** Objects that a VM refers to. */
export interface VmLookups {
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly classes: Informer<VMClass>;
  readonly images: Informer<VMImage>;
  readonly networks: Informer<VMNetwork>;
}

export interface VmDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventRecorder;
  /** What happens to operations, and what fails. */
  readonly reports: Reports;
  readonly vms: WrittenObjects<VirtualMachine>;
  readonly lookups: VmLookups;
  /** Why no storage can take the file of an image where a VM is; undefined: one can. */
  readonly imageRefusal: (
    image: VMImage,
    vm: VirtualMachine,
    connection: Connection,
  ) => Failure | undefined;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly slots: Slots;
  readonly places: Places;
  /** Whether a write may go out at this very moment. */
  readonly fence: Fence;
  /** How long nothing may be written yet, because an earlier leader's requests may still land. */
  readonly writableInMs: () => number;
  /** Whether deleting an object may destroy its machine: not while its CRD goes away. */
  readonly mayDestroy: () => Promise<boolean>;
  /** The key of the digests of Secrets that Claims keep; absent: none are kept. */
  readonly digestKey?: string | undefined;
  /** Runs a key again. */
  readonly wake: (key: string) => void;
  readonly memory: Map<string, VmCache>;
  readonly operations: OperationDeps;
  /** When these controllers began: what was or was not seen before was seen by others. */
  readonly beganMs: number;
}

/**
 * What a process keeps of a VM between turns to save calls. All of it can be lost before any turn:
 * nothing rests on it, and what is not here is asked for again.
 */
export interface VmCache {
  /** The hypervisor on which it asked to begin. */
  beginsOn?: string;
  /** Since when it is in line for slots, with what was declared then. */
  line?: { readonly sinceMs: number; readonly declaration: string };
  /** When the status was last written. */
  lastWriteMs?: number;
  /** The world has changed: a failure is tried again before its time. */
  skipsBackoff?: boolean;
  /** It is deferred until the hypervisor was probed. */
  isHeld?: boolean;
  /** What it was told to wait for was being looked for or brought. */
  isUnderWay?: boolean;
  /** Its status tells that the hypervisor is away, by the category of that failure. */
  toldAway?: Failure["category"];
  /** The wait that people were told of, until it is over. */
  toldWait?: Waiting | undefined;
  /** What its turns know while the task of an operation runs. */
  followed?: {
    readonly operation: string;
    readonly claim: Claim;
    readonly keeper: Claim | undefined;
  };
  /** The inventory of the time at which the last operation was seen to have ended. */
  endedAt?: Inventory;
  /** The id of that operation. */
  endedId?: string;
  /** How often the agent was asked since the VM runs, and when it may be again. */
  agent?: { readonly times: number; readonly nextMs: number };
  /** What was observed before a step that leaves the VM as it is. What follows is bound to it. */
  sight?: Seen;
  /** The Claim that was reserved a moment ago, for which nothing was ever sent, and when. */
  reserved?: { readonly claim: string; readonly sinceMs: number };
  /** What the hypervisor would refuse, found while something else was still missing. */
  ahead?: {
    readonly declaration: string;
    readonly untilMs: number;
    readonly findings: readonly Failure[];
  };
  /** The declaration whose additions to the VM were checked, and were well. */
  additions?: string;
}

/** One run. `vm` and `claim` become newer as it writes them. */
export interface Turn {
  readonly key: string;
  readonly deps: VmDeps;
  readonly memory: VmCache;
  vm: VirtualMachine;
  claim?: Claim | undefined;
  /** The Claim, as long as it is not known whether the VM can be created. */
  pending?: Claim | undefined;
  /** The keeper that the Claim names, once it has a Claim of its own. */
  keeper?: Claim | undefined;
  connection?: Connection;
  seen?: Seen;
  /** The node that was chosen, also while something else is still missing. */
  node?: string;
  /** How the run failed, where it did. */
  failed?: StatusFailure;
  /** The operation in the status, and what became of it. */
  operation?: Resumed | undefined;
  /** What would be done, where this copy only observes. */
  planned?: readonly PlannedStep[];
}

/** A run that has found its hypervisor. */
export interface ConnectedTurn extends Turn {
  readonly connection: Connection;
  readonly driver: HypervisorDriver;
}

/** Progress is written at most this often; what matters is written at once, as a new wait does. */
const progressMs = 10_000;

/** Writes the status, if it says something new. */
export async function writeView(
  turn: Turn,
  view: VmView,
  urgency: "now" | "progress" = "now",
): Promise<void> {
  const { deps, memory } = turn;
  const nowMs = deps.clock.nowMs();
  if (urgency === "progress" && isTooEarly(turn, view)) return;
  const { waitingFor: waited } = turn.vm.status ?? {};
  const known = { claim: turn.claim?.spec, seen: turn.seen, operation: keptRecord(turn, view) };
  const counts = { ...ignoredPart(turn, view), ...recentPart(turn, view), ...lastTaskPart(turn) };
  const status = statusOf(turn.vm, { ...known, ...view, ...counts, ...plannedPart(turn) }, nowMs);
  const written = await writeStatus<VirtualMachine>(
    deps.client.of(virtualMachineKind),
    turn.vm,
    status,
  );
  if (written !== turn.vm) {
    memory.lastWriteMs = deps.clock.monotonicMs();
    turn.vm = deps.vms.note(written);
  }
  tellWait(turn, view.state, waited);
}

/**
 * A guest that was asked and did not follow is remembered by the status, whatever is written next.
 * By that the request of a person for another try, if there was one, was acted upon.
 */
function ignoredPart(turn: Turn, view: VmView): Pick<VmView, "failedSteps" | "handled"> {
  if (turn.operation?.settlement.is !== "ignored" || view.state.is === "resting") return {};
  const { failedSteps = failedStepsOf(turn.vm) } = view;
  const asked = annotationToken(turn.vm.metadata, "reconcileAt");
  const handled = {
    ...view.handled,
    ...(asked === undefined ? {} : { handledReconcileAt: asked }),
  };
  return { handled, failedSteps: withIgnored(turn, failedSteps, turn.deps.clock.nowMs()) };
}

/** Also where nothing would be done: that it is told shows that this copy has observed the VM. */
function plannedPart({ connection, planned = [] }: Turn): Pick<VmView, "plannedSteps"> {
  return connection?.observeOnly === undefined ? {} : { plannedSteps: [...planned] };
}

/** It outlives its record: the next operation may begin in the same second. */
function lastTaskPart({ operation }: Turn): Pick<VmView, "lastTask"> {
  if (operation === undefined || isOpen(operation.settlement)) return {};
  const { record, task = record.task ?? record.last?.task } = operation;
  return task === undefined ? {} : { lastTask: task };
}

function recentPart(turn: Turn, view: VmView): Pick<VmView, "recentSteps"> {
  const { recentSteps } = turn.vm.status ?? {};
  if (view.recentSteps !== undefined || recentSteps === undefined) return {};
  return { recentSteps: effectiveSteps(turn) };
}

/**
 * The recent steps, without the last one where it was not done: it was blocked, refused, failed or
 * lost. What was sent counts as a change of the VM until it is known that it was none.
 */
export function effectiveSteps({ operation, vm }: Turn): readonly RecentStep[] {
  const { recentSteps = [] } = vm.status ?? {};
  if (operation === undefined || isOpen(operation.settlement)) return recentSteps;
  const isDoneNow = guard("flap-step-done", isDone(operation.settlement));
  return isDoneNow ? recentSteps : withoutStep(recentSteps, operation.record);
}

function isTooEarly(turn: Turn, { state }: VmView): boolean {
  const { clock } = turn.deps;
  const { operation } = turn.vm.status ?? {};
  const beganMs = operation === undefined ? -Infinity : -ageMs(operation, clock);
  const writtenMs = (turn.memory.lastWriteMs ?? -Infinity) - clock.monotonicMs();
  const isEarly = Math.max(writtenMs, beganMs) > -progressMs;
  return isEarly && !isNewsOfWait(turn, state);
}

/**
 * Nobody can look at the machine now: it is Unknown, whatever it was. What was never seen is not
 * unknown by that, because there is nothing yet to be seen.
 */
export function loseSight(turn: Turn, failure: Failure): void {
  if (turn.vm.status?.disks !== undefined) turn.seen = { at: "unknown", failure };
}

/**
 * The record stays in the status until its outcome is known, and that of a failure is told. One
 * that was blocked stays too, and says so: also a process that has forgotten the reply sends it
 * again when its time has come. What was done is said while the next step waits: that step may rest
 * on it.
 */
function keptRecord({ operation, vm }: Turn, { state }: VmView): OperationRecord | undefined {
  const { operation: record } = vm.status ?? {};
  if (operation === undefined || record === undefined) return record;
  const { settlement } = operation;
  if (settlement.is === "blocked") return { ...record, outcome: "Blocked" };
  const untold = keptUntilTold(record, operation, toldStep(state));
  if (untold !== undefined) return untold;
  // No reply came, and no task: it counts when it is planned again, whatever is waited for first.
  if (isUnanswered(settlement) && state.is !== "resting") return withoutSlots(record);
  return isDone(settlement) && state.is === "waiting" ? { ...record, outcome: "Done" } : undefined;
}

function isUnanswered(settlement: Resumed["settlement"]): boolean {
  return settlement.is === "doubtful" && settlement.outcome === "Abandoned";
}

/** The step whose failure a write tells. */
function toldStep(state: VmView["state"]): string | undefined {
  return state.is === "failed" ? state.failure.step : undefined;
}

/** What was done last and ended well, as far as the record or this process tells. */
export function lastDone({ operation }: Turn): OperationRecord | undefined {
  return operation !== undefined && isDone(operation.settlement) ? operation.record : undefined;
}

/** What was done before the operation of the record. */
export function doneBefore({ operation }: Turn): { readonly step: string } | undefined {
  const { last } = operation?.record ?? {};
  return last?.outcome === "Done" ? last : undefined;
}

/** What a person can change: as long as it is the same, an old failure is still the same. */
export function declarationOf({ metadata }: VirtualMachine): string {
  const { generation = 0, deletionTimestamp = "" } = metadata;
  const asked = annotationOf(metadata, "reconcileAt") ?? "";
  const forgotten = annotationOf(metadata, "forget") ?? "";
  return [generation, deletionTimestamp, asked, forgotten].join("\n");
}

export function annotationOf(
  { annotations: written }: VirtualMachine["metadata"],
  name: keyof typeof annotations,
): string | undefined {
  return written?.[annotations[name]];
}

export function isDeleting({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** The slots of work that has ended. */
export function releaseSlots({ key, deps }: Turn): void {
  deps.operations.memory.releaseSlots(key);
}
