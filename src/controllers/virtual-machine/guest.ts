import type { VirtualMachine } from "../../api/index.ts";
import type { GuestView, Machine } from "../../hypervisor/index.ts";
import type { ConnectedTurn } from "./turn.ts";

/** When the agent is asked again, after the first time. A guest may have none, so it ends. */
const pausesMs: readonly number[] = [10_000, 20_000, 30_000, 60_000, 600_000];

/**
 * Asks the agent where an address is missing. Nothing waits for it: what it says is shown, and
 * what it does not say is asked for a few times more, ever more seldom.
 */
export async function askGuest(turn: ConnectedTurn): Promise<GuestView | undefined> {
  const { claim, memory, driver, deps } = turn;
  if (claim === undefined || !isAskable(turn)) return undefined;
  const nowMs = deps.clock.monotonicMs();
  const { times, nextMs } = memory.agent ?? { times: 0, nextMs: nowMs };
  if (nowMs < nextMs) return undefined;
  const pauseMs = pausesMs[times] ?? Number.POSITIVE_INFINITY;
  memory.agent = { times: times + 1, nextMs: nowMs + pauseMs };
  const answer = await driver.guest(claim.spec);
  return answer.ok ? answer.value : undefined;
}

/** When to ask again; undefined where it is not worth it. */
export function askAgainMs(turn: ConnectedTurn): number | undefined {
  const { memory, deps } = turn;
  if (!isAskable(turn) || memory.agent === undefined) return undefined;
  const leftMs = memory.agent.nextMs - deps.clock.monotonicMs();
  return Number.isFinite(leftMs) ? Math.max(leftMs, 0) : undefined;
}

function isAskable({ vm, seen, memory }: ConnectedTurn): boolean {
  if (seen?.at === "ours" && seen.machine.power === "Running") {
    return lacksAddress(vm, seen.machine);
  }
  delete memory.agent;
  return false;
}

/** A card of the spec of which no address is known, or nothing is known at all. */
function lacksAddress({ spec, status }: VirtualMachine, machine: Machine): boolean {
  if (spec.guestAgent?.enabled === false) return false;
  const known = new Set(status?.addresses?.map(({ network }) => network));
  const cards = machine.networks.filter(({ name }) => name !== undefined);
  return known.size === 0 || cards.some(({ name }) => !known.has(name));
}
