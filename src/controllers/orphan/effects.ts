import type { Begun, Operation } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { nodeOf, slotNames } from "../hypervisor/index.ts";
import type { OrphanOperation, OrphanState } from "./status.ts";
import type { Prepared } from "./steps.ts";
import { failOrphan, takeSlots, writeOrphan, type OrphanMemory, type OrphanTurn } from "./turn.ts";

const taskMs = 1_000;
const waitMsFirst = 5_000;
const waitMsMost = 60_000;
/** A place in line is kept by whoever asks for it now and then. */
const slotMs = 30_000;
const fencedMs = 1_000;
/** A lost request may still take effect for so long. */
const settleMs = 60_000;

/** What a person is shown while it is done. */
export type WorkReason = Extract<OrphanState, { is: "working" }>["reason"];

/** Does what was prepared, or says why nothing is done. */
export async function perform(
  turn: OrphanTurn,
  prepared: Prepared,
  reason: WorkReason,
): Promise<Outcome> {
  switch (prepared.do) {
    case "begin":
      return begin(turn, prepared, reason);
    case "fail":
      return failOrphan(turn, prepared.failure);
    case "wait":
      return waitFor(turn, prepared.name);
    case "look":
      turn.deps.sweeps.hurry(turn.orphan.spec.hypervisor);
      return again("Changed", rarerMs(turn, "a look"));
  }
}

/** Somebody else's work comes first: that is no failure, and burns no attempt. */
export async function waitFor(turn: OrphanTurn, name: string): Promise<Outcome> {
  await writeOrphan(turn, { is: "waiting", name: name.slice(0, 512) });
  return again("Waiting", rarerMs(turn, "somebody"));
}

/** It is not as it was seen, so nothing was done: everything is listed anew. */
export async function lookAgain(turn: OrphanTurn): Promise<Outcome> {
  await writeOrphan(turn, { is: "waiting", name: "another look at it: it changed meanwhile" });
  turn.deps.sweeps.hurry(turn.orphan.spec.hypervisor);
  return again("Changed", rarerMs(turn, "a look"));
}

/** Each time it waits for the same, it waits longer. */
function rarerMs({ memory }: OrphanTurn, name: string): number {
  const times = memory.waits?.name === name ? memory.waits.times : 0;
  memory.waits = { name, times: times + 1 };
  return Math.min(waitMsFirst * 2 ** times, waitMsMost);
}

export type Settled = NonNullable<OrphanMemory["settled"]>;

/** Its work is over: a sweep that begins from now on sees what it did. */
export function settle(
  { memory, sweep }: OrphanTurn,
  { id }: OrphanOperation,
  lost?: string,
): Settled {
  delete memory.waits;
  memory.settled = {
    operationId: id,
    atSweep: sweep.begun,
    ...(lost === undefined ? {} : { lost }),
  };
  return memory.settled;
}

type Beginning = Extract<Prepared, { do: "begin" }>;

/** The intent is in the status before the hypervisor hears of it. */
async function begin(turn: OrphanTurn, beginning: Beginning, reason: WorkReason): Promise<Outcome> {
  const { deps, connection } = turn;
  const { operation: effect, intent: message } = beginning;
  const node = nodeOf(effect);
  if (!takeSlots(turn, node)) return waitInLine(turn, slotNames(connection, node, undefined));
  const operation = operationOf(turn, beginning);
  const state = { is: "working", reason, message } as const;
  await writeOrphan(turn, state, operation);
  deps.events.event(turn.orphan, { type: "Normal", reason, message });
  tellUnlock(turn, effect, message);
  const begun = await connection.driver.begin(effect, deps.fence);
  if (begun.outcome !== "task") return conclude(turn, operation, begun);
  await writeOrphan(turn, state, { ...operation, task: begun.task });
  return again(operation.step, taskMs);
}

/** Its turn comes after others': it is woken then. */
async function waitInLine(turn: OrphanTurn, names: readonly string[]): Promise<Outcome> {
  await writeOrphan(turn, { is: "waiting", name: `a free slot: ${names.join(", ")}` });
  return again("Slot", slotMs);
}

function operationOf({ deps, orphan }: OrphanTurn, beginning: Beginning): OrphanOperation {
  const { step, intent, attempt = (orphan.status?.failure?.attempts ?? 0) + 1 } = beginning;
  const nowMs = deps.clock.nowMs();
  // Times in the API are whole seconds, rounded down: one more is the same or later.
  const deadline = formatTime(nowMs + settleMs + 1_000);
  return { id: deps.random.uuid(), step, intent, attempt, since: formatTime(nowMs), deadline };
}

/** Every use of the account for unlocking is told. */
function tellUnlock({ deps, orphan }: OrphanTurn, { kind }: Operation, message: string): void {
  if (kind !== "unlock" && kind !== "clearHusk") return;
  deps.events.event(orphan, { type: "Warning", reason: "UnlockUsed", message });
}

/** The one place where the answer to an attempt becomes what happens next. */
async function conclude(
  turn: OrphanTurn,
  operation: OrphanOperation,
  begun: Exclude<Begun, { outcome: "task" }>,
): Promise<Outcome> {
  switch (begun.outcome) {
    case "done":
      settle(turn, operation);
      return again(operation.step);
    case "refused":
      return failOrphan(turn, begun.failure);
    case "blocked":
      return waitFor(turn, begun.waitsFor);
    case "changed":
    case "progressed":
      return lookAgain(turn);
    case "fenced":
      await writeOrphan(turn, { is: "waiting", name: "the lease of the controllers" });
      return again("Fenced", fencedMs);
    case "unknown":
      return again("UnknownOutcome", settleMs);
  }
}
