import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Seen } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import { cloneHints } from "./fills.ts";
import type { PlanInput } from "./next.ts";
import { isDeleting, lastDone, type ConnectedTurn } from "./turn.ts";

/** Steps after which a machine that never stood may run. */
const powerSteps: ReadonlySet<string> = new Set(["Start", "PowerOff", "Suspend", "Resume"]);

/** What preflight saw of an id counts for so long. */
const freshMs = 60_000;

/** What stands under the Claim. Nothing does where nothing was ever sent: preflight has looked. */
export async function see(turn: ConnectedTurn, claim: Claim, withoutPower: boolean): Promise<Seen> {
  const { memory, driver } = turn;
  if (isFresh(turn, claim)) return { at: "absent" };
  delete memory.reserved;
  const { sight } = memory;
  delete memory.sight;
  if (sight !== undefined && withoutPower) return sight;
  return driver.observe(claim.spec, { ...hintsOf(turn, claim.spec), withoutPower });
}

/** By what a machine in the making is told to be ours. */
export function hintsOf(
  turn: ConnectedTurn,
  claim: ClaimSpec,
): NonNullable<PlanInput["huskHints"]> {
  const { deps } = turn;
  const sinceMs = Date.parse(claim.reservedAt ?? formatTime(deps.clock.nowMs()));
  const workerNeverStarted = claim.workerNeverStarted === true;
  return { sinceMs, workerNeverStarted, ...cloneHints(turn) };
}

/** Also after a while in line: whoever took the id since keeps it, because making it is refused. */
function isFresh({ memory, deps, vm }: ConnectedTurn, { metadata, spec }: Claim): boolean {
  const { claim, sinceMs = 0 } = memory.reserved ?? {};
  const isKnown = claim === metadata.name && vm.status?.operation === undefined;
  const isNew = deps.clock.monotonicMs() - sinceMs < freshMs;
  return isKnown && isNew && spec.state === "Reserved";
}

/**
 * A VM that is being created was never started, as long as nobody wrote down that it should be.
 * Where that may be lost, its power is observed before anything is decided about it.
 */
export function needsPower(turn: ConnectedTurn, claim: ClaimSpec): boolean {
  const { vm } = turn;
  const { step = "" } = vm.status?.operation ?? {};
  const isKept = guard("power-known-since-creation", step !== "Recover");
  const isMaking = !claim.everExisted && !isDeleting(vm) && isKept;
  return !isMaking || powerSteps.has(step) || wasPowerAsked(turn);
}

function wasPowerAsked(turn: ConnectedTurn): boolean {
  return turn.vm.status?.powerState !== undefined || lastDone(turn)?.step === "Start";
}
