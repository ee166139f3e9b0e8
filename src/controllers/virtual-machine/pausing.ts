import type { Failure, TaskHandle } from "../../hypervisor/index.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { isPending } from "../claims/index.ts";
import {
  cancelOperation,
  isOpen,
  resumeOperation,
  type OperationRecord,
} from "../operations/index.ts";
import { endBeginning } from "./beginning.ts";
import { recoverRecord } from "./lost-status.ts";
import { subjectOf } from "./settling.ts";
import { annotationOf, loseSight, writeView, type ConnectedTurn, type Turn } from "./turn.ts";

const lookMs = 2_000;

/**
 * Nothing is done for a paused object; it is looked at all the same. Work that was under way goes
 * on, unless a person said that it should end, and its end is seen.
 */
export async function pauseVm(turn: Turn): Promise<Outcome> {
  const { vm, deps } = turn;
  const name = vm.status?.hypervisor ?? vm.spec.hypervisorRef.name;
  const reach = deps.connections.of(name);
  endBeginning(turn);
  if (reach.is === "away") return restUnseen(turn, name, reach.failure);
  const { connection } = reach;
  const connected: ConnectedTurn = Object.assign(turn, { connection, driver: connection.driver });
  const claim = await deps.ledger.find(vm);
  if (!claim.ok || claim.value === undefined || isPending(claim.value.spec)) return rest(turn);
  connected.claim = claim.value;
  await recoverRecord(connected, { is: "paused" });
  const isUnderWay = await followWork(connected);
  connected.seen = await connection.driver.observe(claim.value.spec, {});
  await writeView(turn, { state: { is: "paused" } });
  return isUnderWay ? again("Paused", lookMs) : settled;
}

function restUnseen(turn: Turn, name: string, failure: Failure): Promise<Outcome> {
  const { deps } = turn;
  if (!deps.connections.isUntried(name)) loseSight(turn, failure);
  return rest(turn);
}

async function rest(turn: Turn): Promise<Outcome> {
  await writeView(turn, { state: { is: "paused" } });
  return settled;
}

/** Whether the open operation is still under way. Once it has ended it is open no more. */
async function followWork(turn: ConnectedTurn): Promise<boolean> {
  const { operations } = turn.deps;
  turn.operation = await resumeOperation(operations, subjectOf(turn));
  if (turn.operation === undefined) return false;
  const { record, settlement } = turn.operation;
  if (settlement.is === "running") await cancelWhereAsked(turn, record, settlement.task);
  return isOpen(settlement);
}

/** A person's request about exactly this operation; about another it means nothing. */
async function cancelWhereAsked(
  turn: ConnectedTurn,
  record: OperationRecord,
  task: TaskHandle,
): Promise<void> {
  const { vm, deps } = turn;
  const isAsked = annotationOf(vm.metadata, "cancel") === record.id;
  if (!isAsked || record.cancelRequested === true) return;
  const isCancelled = await cancelOperation(deps.operations, subjectOf(turn), task);
  if (!isCancelled) return;
  await writeView(turn, {
    state: { is: "paused" },
    operation: { ...record, task, cancelRequested: true },
  });
  const message = `Stopped on request: ${record.intent}`;
  deps.events.event(vm, { type: "Normal", reason: "Cancelled", message });
}
