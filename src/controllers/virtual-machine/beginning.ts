import { again, type Outcome } from "../../runtime/index.ts";
import { retryWaitMs } from "../operations/index.ts";
import { declarationOf, writeView, type ConnectedTurn, type Turn } from "./turn.ts";

/** It is woken when its turn comes. */
const slotMs = 30_000;
/** Nobody moves up in a line by looking; this often it is looked at all the same. */
const lookInLineMs = 5 * 60_000;
/** A short wait is told to nobody, as it would cost a write. One that lasts longer is. */
const tellInLineMs = 10_000;

/** A failure rests, or its turn at a slot has not come. */
export function stillWaits(turn: Turn): Outcome | undefined {
  const waitMs = backoffMs(turn);
  if (waitMs > 0) return again("Backoff", waitMs);
  return isInLine(turn) ? again("Slot", slotMs) : undefined;
}

/**
 * Whether a new machine may begin. Those that have begun and are not copied yet would otherwise
 * take up all calls and all runs while the storages, which are what everybody waits for, stand
 * idle. So only as many begin ahead as keep the storages busy; the others were checked, and wait.
 */
export function mayBegin(turn: ConnectedTurn): boolean {
  const { deps, key, memory, connection } = turn;
  const names = [`begin ${connection.name}`];
  // Until an id was reserved a person may still name another hypervisor.
  if (memory.beginsOn !== connection.name) endBeginning(turn);
  memory.beginsOn = connection.name;
  const wake = (): void => deps.wake(key);
  return deps.slots.tryAcquire(names, beginnerOf(key), { wake }) !== "waiting";
}

/** It is past its beginning, or will not go on soon: another may begin. */
export function endBeginning({ deps, key }: Pick<Turn, "deps" | "key">): void {
  deps.slots.leave(beginnerOf(key));
}

/** Says what it waits for. Nothing has to be looked at before it is woken. */
export async function waitInLine(turn: ConnectedTurn, name: string): Promise<Outcome> {
  const { memory, deps } = turn;
  memory.line = { sinceMs: deps.clock.monotonicMs(), declaration: declarationOf(turn.vm) };
  const waitingFor = { kind: "Slot", name } as const;
  await writeView(turn, { state: { is: "waiting", waitingFor } }, "progress");
  return again("Slot", isToldOfLine(turn) ? slotMs : tellInLineMs);
}

/** Whether the status says that it waits in line, and not what it did before. */
function isToldOfLine({ vm }: Turn): boolean {
  return vm.status?.waitingFor?.kind === "Slot";
}

/** How long a failure still waits for its retry, unless the world has changed since. */
function backoffMs({ memory, vm, deps }: Turn): number {
  return memory.skipsBackoff === true ? 0 : retryWaitMs(vm, deps.clock.nowMs());
}

/** Nothing can be done before its turn comes, and nothing is known to have changed. */
function isInLine(turn: Turn): boolean {
  const { line } = turn.memory;
  if (line === undefined || line.declaration !== declarationOf(turn.vm)) return false;
  const waitedMs = turn.deps.clock.monotonicMs() - line.sinceMs;
  return isInSomeLine(turn) && waitedMs < (isToldOfLine(turn) ? lookInLineMs : tellInLineMs);
}

/** Whether it waits for slots that were not offered to it yet. */
function isInSomeLine({ deps, key }: Turn): boolean {
  return deps.slots.isWaiting(key) || deps.slots.isWaiting(beginnerOf(key));
}

/** Beside the slots of a step, which come and go with it. */
function beginnerOf(key: string): string {
  return `the beginning of ${key}`;
}
