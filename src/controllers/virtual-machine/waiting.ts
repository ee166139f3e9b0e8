import { again, type Outcome } from "../../runtime/index.ts";
import type { Next } from "./next.ts";
import { writeView, type ConnectedTurn } from "./turn.ts";

const lockMs = 5_000;
const settleMs = 1_000;
/** What has lasted for long is looked at less often: a tenth of that time later. */
const waitedShare = 0.1;
const waitMsMost = 30_000;

/** Says what it waits for, and when it looks again. It burns no attempt. */
export async function waitVm(
  turn: ConnectedTurn,
  { kind, name, lock }: Next & { do: "wait" },
): Promise<Outcome> {
  const waitingFor = { kind, name: name.slice(0, 512), lock };
  await writeView(turn, { state: { is: "waiting", waitingFor } }, "progress");
  const firstMs = kind === "Lock" ? lockMs : settleMs;
  const pauseMs = hasWaitedMs(turn, name) * waitedShare;
  return again(kind, Math.min(Math.max(pauseMs, firstMs), waitMsMost));
}

/** How long it has waited for the same already. */
function hasWaitedMs({ memory, deps }: ConnectedTurn, name: string): number {
  const nowMs = deps.clock.monotonicMs();
  if (memory.waits?.name !== name) memory.waits = { name, sinceMs: nowMs };
  return nowMs - memory.waits.sinceMs;
}
