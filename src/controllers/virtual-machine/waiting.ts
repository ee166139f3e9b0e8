import { again, type Outcome } from "../../runtime/index.ts";
import { unconfirmedMs } from "../operations/index.ts";
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
  const { record, settlement } = turn.operation ?? {};
  if (record !== undefined && settlement?.is === "unconfirmed") {
    return again(kind, unconfirmedMs(record, settlement.leftMs, turn.deps.clock));
  }
  const firstMs = kind === "Lock" ? lockMs : settleMs;
  const pauseMs = hasWaitedMs(turn, name) * waitedShare;
  return again(kind, Math.min(Math.max(pauseMs, firstMs), waitMsMost));
}

/** How long it has waited for the same already, by the status. */
function hasWaitedMs({ vm, deps }: ConnectedTurn, name: string): number {
  const { waitingFor } = vm.status ?? {};
  if (waitingFor?.name !== name.slice(0, 512)) return 0;
  return Math.max(0, deps.clock.nowMs() - Date.parse(waitingFor.since));
}
