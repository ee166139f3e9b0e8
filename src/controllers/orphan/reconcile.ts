import type { Orphan } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { again, settled, stalled, type Outcome } from "../../runtime/index.ts";
import { adopt } from "./adopt.ts";
import { planOrphan, type OrphanNext } from "./decide.ts";
import { lookAgain, perform, settle, waitFor, type Settled } from "./effects.ts";
import { orphanName } from "./orphan-name.ts";
import { isLongAbsent } from "./sightings.ts";
import type { OrphanOperation } from "./status.ts";
import { prepareDestruction, retireClaim } from "./steps.ts";
import {
  assumeSlots,
  dropSlots,
  failOrphan,
  leaveSlots,
  removeOrphan,
  writeOrphan,
  type OrphanDeps,
  type OrphanMemory,
  type OrphanTurn,
} from "./turn.ts";

const unseenMs = 30_000;
const listMs = 1_000;
const taskMs = 1_000;
const fencedMs = 1_000;
/** What was reclaimed can be read for so long. */
const goneMs = 60 * 60_000;

/** Carries out what was decided about one Orphan, one step at a time. */
export async function reconcileOrphan(key: string, deps: OrphanDeps): Promise<Outcome> {
  const orphan = deps.orphans.get(key);
  if (orphan === undefined || orphan.metadata.deletionTimestamp !== undefined) {
    deps.memory.delete(key);
    dropSlots(key, deps);
    return settled;
  }
  const { hypervisor } = orphan.spec;
  // Of a Hypervisor that is gone nothing can be said any more, and nothing is done.
  if (deps.hypervisors.get(hypervisor) === undefined) return removeOrphan(orphan, deps);
  const reach = deps.connections.of(hypervisor);
  const sweep = deps.sweeps.of(hypervisor);
  if (reach.is === "away" || sweep.swept === undefined) return again("Unseen", unseenMs);
  const memory = deps.memory.get(key) ?? {};
  deps.memory.set(key, memory);
  const { connection } = reach;
  const name = orphanName(connection.systemId, orphan.spec);
  const find = sweep.finds.get(name);
  const sighting = sweep.sightings.get(name);
  const turn: OrphanTurn = { key, deps, memory, connection, sweep, find, sighting, orphan };
  if (orphan.status?.reclaimed !== undefined) return rememberGone(turn);
  const waitMs = backoffMs(memory, orphan, deps.clock.nowMs());
  if (waitMs > 0) return again("Backoff", waitMs);
  try {
    return await settleAndPlan(turn, sweep.swept);
  } finally {
    leaveSlots(turn);
  }
}

/** How long a failure still has to rest, unless a person said something else since. */
function backoffMs({ retry }: OrphanMemory, { metadata }: Orphan, nowMs: number): number {
  return retry === undefined || retry.generation !== metadata.generation ? 0 : retry.atMs - nowMs;
}

/** It was destroyed. What it freed stays readable for a while; then the object goes. */
async function rememberGone(turn: OrphanTurn): Promise<Outcome> {
  const { deps, memory, orphan, find } = turn;
  const nowMs = deps.clock.nowMs();
  memory.goneAtMs ??= nowMs;
  const leftMs = memory.goneAtMs + goneMs - nowMs;
  // The same id again is another thing: a person has to decide about it anew.
  return leftMs <= 0 || find !== undefined ? removeOrphan(orphan, deps) : again("Gone", leftMs);
}

async function settleAndPlan(turn: OrphanTurn, swept: number): Promise<Outcome> {
  const settling = await settleOperation(turn);
  if (settling !== undefined && "type" in settling) return settling;
  const { orphan, find, key, sweep, connection } = turn;
  const nowMs = turn.deps.clock.nowMs();
  const graceMs = connection.spec.orphans.graceSeconds * 1000;
  const next = planOrphan({
    spec: orphan.spec,
    find,
    swept,
    operation: orphan.status?.operation,
    settledAt: settling?.atSweep,
    node: orphan.status?.node,
    isLongAbsent: isLongAbsent(sweep.absences.get(key), { nowMs, graceMs }),
    isChosen: sweep.chosen === key,
  });
  return act(turn, next);
}

/** Finds out what became of the open operation: an outcome where the run ends here. */
async function settleOperation(turn: OrphanTurn): Promise<Outcome | Settled | undefined> {
  const { memory, orphan, connection } = turn;
  const operation = orphan.status?.operation;
  if (operation === undefined) return undefined;
  if (memory.settled?.operationId === operation.id) return memory.settled;
  assumeSlots(turn);
  if (operation.task === undefined) return settleLost(turn, operation);
  const view = await connection.driver.look(operation.task);
  switch (view.state) {
    case "running":
    case "unknown":
      return again(operation.step, taskMs);
    case "succeeded":
    case "warned":
      return settle(turn, operation);
    case "lost":
      // Where it has ended, whatever it did, listing everything tells.
      return view.mayRun ? settleLost(turn, operation) : settle(turn, operation, view.cause);
    case "blocked":
      return waitFor(turn, view.waitsFor);
    case "changed":
      return lookAgain(turn);
    case "failed":
      return failOrphan(turn, view.failure);
  }
}

/** Nobody knows what became of it: until its deadline it may still take effect. */
function settleLost(turn: OrphanTurn, operation: OrphanOperation): Outcome | Settled {
  const nowMs = turn.deps.clock.nowMs();
  const deadlineMs = Date.parse(operation.deadline ?? operation.since);
  if (nowMs < deadlineMs) return again("Unconfirmed", deadlineMs - nowMs);
  return settle(turn, operation, "no answer came");
}

/** The one place where what was decided becomes what is done. */
async function act(turn: OrphanTurn, next: OrphanNext): Promise<Outcome> {
  const { deps, orphan } = turn;
  switch (next.do) {
    case "remove":
      return removeOrphan(orphan, deps);
    case "finish":
      return finish(turn);
    case "list":
      deps.sweeps.hurry(orphan.spec.hypervisor);
      return again("List", listMs);
    case "wait":
      return again("Wait", taskMs);
    case "vain":
      return failOrphan(turn, inVain(turn));
    case "rest":
      await writeOrphan(turn, { is: next.as });
      return settled;
    case "refuse":
      await writeOrphan(turn, { is: "notAllowed", message: next.message });
      return stalled("NotAllowed");
    case "adopt":
      return adopt(turn);
    case "destroy":
      return destroy(turn, next.byPolicy);
  }
}

async function destroy(turn: OrphanTurn, byPolicy: boolean): Promise<Outcome> {
  if (!turn.deps.fence.mayWrite()) return again("Fenced", fencedMs);
  const prepared = await prepareDestruction(turn);
  return perform(turn, prepared, byPolicy ? "DestroyingByPolicy" : "Destroying");
}

/** It was listed again and is not there: only now is it gone, and its space free. */
async function finish(turn: OrphanTurn): Promise<Outcome> {
  const { deps, orphan, connection, memory } = turn;
  const { kind, externalId, hypervisor: name } = orphan.spec;
  if (!(await retireClaim(turn))) return again("Leftovers", listMs);
  const reclaimedBytes = Number(orphan.status?.size ?? 0);
  await writeOrphan(turn, { is: "gone", reclaimedBytes });
  memory.goneAtMs = deps.clock.nowMs();
  deps.figures.reclaimed(name, reclaimedBytes);
  const message = `Destroyed ${kind} ${externalId}: ${reclaimedBytes} bytes were reclaimed.`;
  const hypervisor = deps.hypervisors.get(connection.name);
  for (const object of [turn.orphan, hypervisor]) {
    if (object) deps.events.event(object, { type: "Normal", reason: "OrphanDestroyed", message });
  }
  deps.destroyed(name, externalId);
  return again("Gone", goneMs);
}

/** It was listed again, and it is there: what is said of the attempt is what was heard of it. */
function inVain({ orphan, memory }: OrphanTurn): Failure {
  const { externalId } = orphan.spec;
  const cause = memory.settled?.lost;
  const message =
    cause === undefined
      ? `The hypervisor says that it was destroyed, and it is still there: ${externalId}`
      : `Nobody says how the work that was to destroy it ended, and it is still there: ${externalId}`;
  return { category: "CreationFailed", message, ...(cause === undefined ? {} : { cause }) };
}
