import type { Claim } from "../../api/index.ts";
import { answered } from "../../hypervisor/index.ts";
import type { Answer, PastTask } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { failedTimes, keyOf } from "../operations/index.ts";
import { failVm } from "./failing.ts";
import { conflictOf, flapOf, reportedFlap, withConflict, type Flap } from "./flapping.ts";
import type { Step } from "./steps.ts";
import { effectiveSteps, lastDone, writeView, type ConnectedTurn } from "./turn.ts";

/** How often a reported conflict is observed: the other side may have stopped. */
const conflictMs = 60_000;

/** Ends a conflict with another controller: the step is not sent, and a person is asked. */
export async function stopFlapping(turn: ConnectedTurn, step: Step): Promise<Outcome | undefined> {
  const { vm, deps } = turn;
  const reported = reportedFlap(vm);
  const { failure } = vm.status ?? {};
  if (reported !== undefined && failure?.category === "ConflictingController") {
    await writeView(turn, { state: { is: "failed", failure, isStalled: true } });
    return again("ConflictingController", conflictMs);
  }
  if (reported !== undefined) return report(turn, reported, true);
  if (hadNoEffect(turn, step)) return undefined;
  // Also in this turn: a reply that was lost, or a digest that did not match, was no change.
  const recentSteps = [...effectiveSteps(turn)];
  const counted = { ...vm, status: { ...vm.status, recentSteps } };
  const flap = flapOf(counted, step, deps.clock.nowMs());
  return flap && report(turn, flap, false);
}

/** Another failure, as an outage, may have taken the place of one that was reported before. */
async function report(
  turn: ConnectedTurn,
  flap: Flap,
  isReported: boolean,
): Promise<Outcome | undefined> {
  const { vm, claim } = turn;
  if (claim === undefined) return undefined;
  const past = await historyOf(turn, claim, flap);
  // Without the list a guest that powers itself off would be taken for somebody else.
  if (!past.ok) return failVm(turn, past.failure);
  const found = conflictOf(vm, flap, past.value);
  const failure = found ?? (isReported ? conflictOf(vm, flap, undefined) : undefined);
  if (failure === undefined) return undefined;
  const recentSteps = withConflict(vm.status?.recentSteps ?? [], flap);
  return failVm(turn, failure, { recentSteps });
}

/** Undefined where the hypervisor keeps no list. */
async function historyOf(
  { driver }: ConnectedTurn,
  { spec }: Claim,
  { step, sinceMs }: Flap,
): Promise<Answer<readonly PastTask[] | undefined>> {
  if (driver.history === undefined) return answered(undefined);
  // Who moves a VM is listed where it was moved from.
  return driver.history(spec, sinceMs, { everywhere: step === "Migrate" });
}

/**
 * It was done without effect, with nothing in between, or it failed, or the guest did not follow:
 * then nobody undid it, and it is counted elsewhere.
 */
function hadNoEffect(turn: ConnectedTurn, { name, operation }: Step): boolean {
  return lastDone(turn)?.key === keyOf(operation).key || failedTimes(turn.vm, name) > 0;
}
