import type { Failure, TaskHandle } from "../../hypervisor/index.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { endBeginning } from "./beginning.ts";
import { noWorker, taskOf } from "./settling.ts";
import type { StatusOperation } from "./status.ts";
import {
  annotationOf,
  loseSight,
  settle,
  writeView,
  type ConnectedTurn,
  type Turn,
} from "./turn.ts";

const lookMs = 2_000;

/**
 * Nothing is done for a paused object; it is looked at all the same. Work that was under way goes
 * on, unless a person said that it should end, and its end is seen.
 */
export async function pauseVm(turn: Turn): Promise<Outcome> {
  const { vm, deps } = turn;
  const name = vm.status?.hypervisor ?? vm.spec.hypervisorRef.name;
  const reach = deps.connections.of(name);
  turn.isOpen = vm.status?.operation !== undefined;
  endBeginning(turn);
  if (reach.is === "away") return restUnseen(turn, name, reach.failure);
  const { connection } = reach;
  const connected: ConnectedTurn = Object.assign(turn, { connection, driver: connection.driver });
  const claim = await deps.ledger.find(vm);
  if (!claim.ok || claim.value === undefined) return rest(turn);
  connected.claim = claim.value;
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
  const { vm, memory, driver } = turn;
  const { operation } = vm.status ?? {};
  if (operation === undefined || operation.task === noWorker) return false;
  if (memory.settledId === operation.id) return settledNow(turn);
  const task = await taskOf(turn, operation);
  if (!task.ok) return true;
  // A request whose reply was lost may still take effect until its deadline.
  if (task.value === undefined) return isBeforeDeadline(turn, operation) || settledNow(turn);
  await cancelWhereAsked(turn, operation, task.value);
  const { state } = await driver.look(task.value);
  return state === "running" || state === "unknown" || settledNow(turn);
}

function settledNow(turn: ConnectedTurn): false {
  settle(turn);
  return false;
}

function isBeforeDeadline({ deps }: ConnectedTurn, operation: StatusOperation): boolean {
  return deps.clock.nowMs() < Date.parse(operation.deadline ?? operation.since);
}

/** A person's word about exactly this operation; about another it means nothing. */
async function cancelWhereAsked(
  turn: ConnectedTurn,
  { id, intent }: StatusOperation,
  task: TaskHandle,
): Promise<void> {
  const { vm, memory, driver, deps } = turn;
  if (annotationOf(vm.metadata, "cancel") !== id || memory.cancelled === id) return;
  const begun = await driver.cancel?.(task, deps.fence);
  if (begun?.outcome !== "done" && begun?.outcome !== "task") return;
  memory.cancelled = id;
  const message = `Stopped on a person's word: ${intent}`;
  deps.events.event(vm, { type: "Normal", reason: "Cancelled", message });
}
