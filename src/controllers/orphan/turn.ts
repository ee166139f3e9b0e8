import { orphanKind } from "../../api/index.ts";
import type {
  ClaimSpec,
  Hypervisor,
  Orphan,
  OrphanStatus,
  VirtualMachine,
} from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Failure, Leftover, Machine } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/status.ts";
import { settled, writeStatus, type EventRecorder, type Outcome } from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import type { Connection, Connections } from "../hypervisor/index.ts";
import {
  failedStepsOf,
  holders,
  isDone,
  isOpen,
  keptUntilTold,
  type FailedStep,
  type OperationDeps,
  type OperationRecord,
  type Resumed,
  type Settlement,
} from "../operations/index.ts";
import type { Reports } from "../reports/index.ts";
import type { Find } from "./find.ts";
import type { OrphanFigures, SweepMemory, Sweeps } from "./memory.ts";
import type { Sighting } from "./sightings.ts";
import { orphanStatusOf, type OrphanState } from "./status.ts";

export interface OrphanDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly events: EventRecorder;
  /** What happens to operations, and what fails. */
  readonly reports: Reports;
  readonly figures: OrphanFigures;
  readonly sweeps: Sweeps;
  readonly orphans: WrittenObjects<Orphan>;
  readonly hypervisors: Pick<Informer<Hypervisor>, "get">;
  /** Sweeps a hypervisor, if this process has no whole sweep of it. False: there is none now. */
  readonly sweepFor: (hypervisor: string) => Promise<boolean>;
  readonly memory: Map<string, OrphanCache>;
  /** The same as those of the VMs: a hypervisor does only so much at once. */
  readonly operations: OperationDeps;
  readonly wake: (name: string) => void;
  /** Whether machines may be destroyed at all: not while their kind goes away. */
  readonly mayDestroy: () => Promise<boolean>;
  /** What of a declaration its namespace may not have. */
  readonly forbidden: (vm: VirtualMachine, hypervisor: Hypervisor) => Failure | undefined;
  /** All that goes with a machine. */
  readonly namedVolumes: (
    claim: ClaimSpec,
    machine: Machine,
    leftovers: readonly Leftover[],
  ) => NonNullable<ClaimSpec["volumes"]>;
  /** It is out of the way: who failed because of it looks again. */
  readonly destroyed: (hypervisor: string, externalId: string) => void;
}

/**
 * What a process keeps of an Orphan between turns. All of it can be lost before any turn: that only
 * costs a further sweep.
 */
export interface OrphanCache {
  /** The operation that is known to have ended, and how many sweeps had begun by then. */
  ended?: { readonly id: string; readonly atSweep: number };
}

/** One run. `orphan` becomes newer as it is written. */
export interface OrphanTurn {
  readonly key: string;
  readonly deps: OrphanDeps;
  readonly memory: OrphanCache;
  readonly connection: Connection;
  readonly sweep: SweepMemory;
  /** What the last sweep showed. Absent also where this process has made none yet. */
  find: Find | undefined;
  sighting: Sighting | undefined;
  orphan: Orphan;
  /** The operation in the status, and what became of it. */
  operation?: Resumed | undefined;
  /** It is in line for slots. */
  isInLine?: boolean;
}

/** Where nothing goes on any more, and it is not in line, it needs no slot. */
export function leaveSlots({ deps, key, operation, orphan, isInLine }: OrphanTurn): void {
  const isRecorded = orphan.status?.operation !== undefined;
  const goesOn = isRecorded && (operation === undefined || isOpen(operation.settlement));
  if (!goesOn && isInLine !== true) deps.operations.slots.leave(holders.orphan(key));
}

/** Of an Orphan that does not exist any more. */
export function forgetOrphan(
  key: string,
  { memory, operations }: Pick<OrphanDeps, "memory" | "operations">,
): void {
  memory.delete(key);
  operations.memory.forget(holders.orphan(key));
  operations.slots.leave(holders.orphan(key));
}

/** What is written beside the state. */
export interface OrphanWrite {
  /** Absent: the record that is there, for as long as something rests on it. */
  readonly operation?: OperationRecord;
  readonly failedSteps?: readonly FailedStep[];
  readonly decidedFor?: OrphanStatus["decidedFor"];
}

/** Writes the status, if it says something new. */
export async function writeOrphan(
  turn: OrphanTurn,
  state: OrphanState,
  { operation = keptRecord(turn, state), failedSteps, decidedFor }: OrphanWrite = {},
): Promise<void> {
  const { deps, find, sighting, orphan } = turn;
  const counted = failedSteps ?? failedStepsOf(orphan);
  const view = { state, find, sighting, operation, failedSteps: counted, decidedFor };
  const status = orphanStatusOf(orphan, view, deps.clock.nowMs());
  const objects = deps.client.of(orphanKind);
  turn.orphan = deps.orphans.note(await writeStatus<Orphan>(objects, orphan, status));
}

/**
 * The record stays in the status until its outcome is known, and that of a failure is told. What
 * was blocked or met something changed stays while it waits, with that outcome: its next attempt is
 * paced by it. A VM that was released to be adopted is found by no sweep: only the record says that
 * it was.
 */
function keptRecord(
  { operation, orphan }: OrphanTurn,
  state: OrphanState,
): OperationRecord | undefined {
  const record = orphan.status?.operation;
  if (operation === undefined || record === undefined) return record;
  const told = state.is === "failed" ? state.failure.step : undefined;
  const untold = keptUntilTold(record, operation, told);
  if (untold !== undefined) return untold;
  const outcome = restingOutcome(record, operation.settlement, state);
  return outcome && { ...record, outcome };
}

/** How an operation ended, where the next one rests on it. */
function restingOutcome(
  { step }: OperationRecord,
  settlement: Settlement,
  { is }: OrphanState,
): OperationRecord["outcome"] {
  const isWaiting = is === "waiting";
  const isReleased = step === "Release" && isDone(settlement);
  if (isReleased && (isWaiting || is === "failed")) return "Done";
  if (!isWaiting) return undefined;
  if (settlement.is === "blocked") return "Blocked";
  return settlement.is === "ended" && settlement.outcome === "Changed" ? "Changed" : undefined;
}

/** Deletes this very version of the object. It does nothing to the hypervisor. */
export async function removeOrphan(
  { metadata }: Orphan,
  deps: Pick<OrphanDeps, "client" | "orphans" | "memory" | "operations">,
): Promise<Outcome> {
  const { name = "", uid = "", resourceVersion = "" } = metadata;
  try {
    const preconditions = { uid, resourceVersion };
    await deps.client.of(orphanKind).delete({ name }, { preconditions });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
  deps.orphans.forget(name);
  forgetOrphan(name, deps);
  return settled;
}
