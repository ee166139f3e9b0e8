import { finalizers, virtualMachineKind, vmConditions, vmReasons } from "../../api/index.ts";
import type { ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { formatTime } from "../../kernel/clock.ts";
import { addFinalizer, again, settled, stalled, type Outcome } from "../../runtime/index.ts";
import { freeSlot } from "../operations/index.ts";
import { refuseAdditions } from "./additions.ts";
import { goWithout, holdBack, mayBeSilent } from "./away.ts";
import { endBeginning, mayBegin, stillWaits, waitInLine } from "./beginning.ts";
import { declare, movesTo, type Declaring } from "./declare.ts";
import { performStep, restartHandled } from "./effects.ts";
import { failVm, handledOf } from "./failing.ts";
import { foreseeCreation, foreseeVm } from "./foresee.ts";
import { askAgainMs, askGuest } from "./guest.ts";
import { chooseKeeper, dropKeeper, findKeeper, lookAtKeeper, recordKeeper } from "./keeper.ts";
import { keptDisks } from "./kept-disks.ts";
import { lookForLeftovers } from "./leftovers.ts";
import { finish, forgetVm, isForgotten } from "./letting-go.ts";
import { isRecovering, recoverRecord, waitRecovered } from "./lost-status.ts";
import type { Next, OpenOperation, PlanInput } from "./next.ts";
import { pauseVm } from "./pausing.ts";
import { planVm } from "./plan.ts";
import { seedSecondsLeft } from "./plan-seed.ts";
import { allWrong, releaseUncreated, reserveId, takeClaim } from "./reserve.ts";
import { isShutdownIgnored } from "./shutdown.ts";
import { pollTask, settleOperation } from "./settling.ts";
import { hintsOf, needsPower, see } from "./sight.ts";
import {
  annotationOf,
  isDeleting,
  doneBefore,
  lastDone,
  releaseSlots,
  writeView,
  type ConnectedTurn,
  type Turn,
  type VmDeps,
} from "./turn.ts";
import { waitVm } from "./waiting.ts";

/** As many things as are written down in a row on one sight. */
const recordsMax = 3;

const settleMs = 1_000;
/** Each costs a few reads, which a large installation has to be able to afford. */
const observeMs = 5 * 60_000;
const observeSpread = 0.2;

/** Moves one VM a single step toward its spec. Kill it at any await, run it again: no leak. */
export async function reconcileVm(key: string, deps: VmDeps): Promise<Outcome> {
  const vm = deps.vms.get(key);
  if (vm === undefined) return forget(key, deps);
  const memory = deps.memory.get(key) ?? {};
  deps.memory.set(key, memory);
  const turn: Turn = { key, deps, memory, vm };
  if (annotationOf(vm.metadata, "paused") === "true") return pauseVm(turn);
  const waiting = stillWaits(turn);
  if (waiting !== undefined) return waiting;
  delete memory.skipsBackoff;
  delete memory.isHeld;
  return goOn(turn);
}

async function goOn(turn: Turn): Promise<Outcome> {
  const { vm, deps } = turn;
  const isHeld = vm.metadata.finalizers?.includes(finalizers.machine) ?? false;
  if (isDeleting(vm)) return isHeld ? goAway(turn) : settled;
  const objects = deps.client.of(virtualMachineKind);
  turn.vm = deps.vms.note(await addFinalizer<VirtualMachine>(objects, vm, finalizers.machine));
  return connectAndGo(turn);
}

/** An object that is to go: in good order, or as it is where that fails and a person said so. */
async function goAway(turn: Turn): Promise<Outcome> {
  const outcome = await connectAndGo(turn);
  return isForgotten(turn) ? forgetVm(turn) : outcome;
}

function forget(key: string, deps: VmDeps): Outcome {
  endBeginning({ key, deps });
  deps.memory.delete(key);
  deps.places.forget(key);
  deps.slots.leave(key);
  return settled;
}

async function connectAndGo(turn: Turn): Promise<Outcome> {
  const { vm, deps } = turn;
  const name = vm.status?.hypervisor ?? vm.spec.hypervisorRef.name;
  if (mayBeSilent(turn, name)) return holdBack(turn);
  const reach = deps.connections.of(name);
  if (reach.is === "away") return goWithout(turn, name, reach);
  const { connection } = reach;
  const connected: ConnectedTurn = Object.assign(turn, { connection, driver: connection.driver });
  return (await pollTask(connected)) ?? settleAndGo(connected);
}

async function settleAndGo(turn: ConnectedTurn): Promise<Outcome> {
  const claim = await turn.deps.ledger.find(turn.vm);
  if (!claim.ok) return failVm(turn, claim.failure);
  await takeClaim(turn, claim.value);
  turn.keeper = await findKeeper(turn);
  await recoverRecord(turn);
  const open = await settleOperation(turn);
  if (open !== undefined && "type" in open) return open;
  if (open !== undefined && isRecovering(open)) return waitRecovered(turn, open);
  return observeAndPlan(turn, open);
}

async function observeAndPlan(
  turn: ConnectedTurn,
  open: OpenOperation | undefined,
): Promise<Outcome> {
  const { driver, claim, deps } = turn;
  const declaring = await declare(turn);
  if (!declaring.ok) return failVm(turn, await allWrong(turn, declaring));
  if (claim === undefined) {
    return reserveFrom(turn, declaring.value);
  }
  const { declared } = declaring.value;
  const isPowerUnasked = !needsPower(turn, claim.spec);
  const seen = await see(turn, claim, isPowerUnasked);
  turn.seen = seen;
  const input: PlanInput = {
    declared,
    claim: claim.spec,
    seen,
    nowMs: deps.clock.nowMs(),
    open,
    isShutdownIgnored: isShutdownIgnored(turn),
    isPowerUnasked,
    seenPool: poolOf(turn, claim.spec),
    hasAgentAnswered: hasAnswered(turn.vm),
    lastDone: lastDone(turn),
    doneBefore: doneBefore(turn),
    approved: annotationOf(turn.vm.metadata, "approve"),
    lastNetworks: lastNetworks(turn.vm),
    keeper: await lookAtKeeper(turn),
    kept: isDeleting(turn.vm) ? [] : keptDisks(turn),
    changeOf: (path, machine) => driver.changeOf(path, machine),
    mayUnlock: turn.connection.capabilities.includes("Unlock"),
    huskHints: hintsOf(turn, claim.spec),
    husksLeft: deps.ledger.husksOf(claim.spec),
  };
  const next = await lookCloser(turn, input, await recordAndPlan(turn, input));
  if (turn.connection.observeOnly !== undefined && concludes.has(next.do)) {
    turn.planned = await foreseeVm(turn, input, { next, declaring: declaring.value });
  }
  return act(turn, next, declaring.value);
}

/** The pool at the last glance, if the machine was in it. */
function poolOf(
  { connection, memory }: ConnectedTurn,
  { externalId: id }: ClaimSpec,
): PlanInput["seenPool"] {
  const row = connection.inventory.machines.find(({ externalId }) => externalId === id);
  return row && { name: row.pool, isOld: memory.endedAt === connection.inventory };
}

function lastNetworks({ status }: VirtualMachine): Record<string, string> {
  const cards = status?.networks ?? [];
  return Object.fromEntries(cards.flatMap(({ name, device }) => (device ? [[name, device]] : [])));
}

/** Addresses that the agent told: it runs, so the guest has come up. */
function hasAnswered({ status }: VirtualMachine): boolean {
  return status?.addresses?.some(({ source }) => source === "Agent") ?? false;
}

/** What the plan asks to be looked at beside the machine, each at most once. */
async function lookCloser(turn: ConnectedTurn, input: PlanInput, next: Next): Promise<Next> {
  const { claim } = turn;
  if (claim === undefined) return next;
  if (next.do === "look") {
    turn.seen = await see(turn, claim, false);
    const seen = { ...input, claim: claim.spec, seen: turn.seen, isPowerUnasked: false };
    return lookCloser(turn, seen, await recordAndPlan(turn, seen));
  }
  if (next.do !== "sweep" || input.leftovers !== undefined) return next;
  const leftovers = await lookForLeftovers(turn, claim.spec, next);
  const known = { ...input, claim: claim.spec };
  if (leftovers.ok) return planVm({ ...known, leftovers: leftovers.value });
  if (next.mayFail !== true) return { do: "fail", failure: leftovers.failure };
  const unlisted = { ...known, isUnlisted: true };
  return lookCloser(turn, unlisted, planVm(unlisted));
}

/**
 * Writes down in the Claim what was seen, and plans anew on the same sight: a write to our own
 * ledger changes nothing about the machine, so there is nothing to look at again.
 */
async function recordAndPlan(turn: ConnectedTurn, input: PlanInput): Promise<Next> {
  let next = planVm(input);
  for (let times = 0; times < recordsMax; times += 1) {
    if (input.seen.at !== "ours") return next;
    if (next.do === "record") await record(turn, next);
    else if (next.do === "recordKeeper") await recordKeeper(turn, next);
    else return next;
    // Where the VM was found on another node, it may have to go back from there.
    const declared = { ...input.declared, movesTo: movesTo(turn) };
    next = planVm({ ...input, declared, claim: turn.claim?.spec, ...keeperPart(turn, input) });
  }
  return next;
}

/** What was recorded of a disk-holder VM may be another name of what it keeps. */
function keeperPart(turn: ConnectedTurn, input: PlanInput): Pick<PlanInput, "keeper" | "kept"> {
  const { keeper, vm } = turn;
  if (keeper === undefined || input.keeper === undefined) return {};
  const kept = isDeleting(vm) ? [] : keptDisks(turn);
  return { keeper: { ...input.keeper, claim: keeper.spec }, kept };
}

/** Without a Claim: it gets one, or an object that is deleted goes. */
async function reserveFrom(
  turn: ConnectedTurn,
  { desired, declared }: Declaring,
): Promise<Outcome> {
  const { observeOnly } = turn.connection;
  if (observeOnly !== undefined) {
    turn.planned = await foreseeCreation(turn, { desired, declared });
    return failVm(turn, observeOnly);
  }
  const whole = { ...desired, shape: declared.shape };
  if (isDeleting(turn.vm)) return releaseUncreated(turn, whole);
  if (!mayBegin(turn)) return waitInLine(turn, freeSlot([`begin ${turn.connection.name}`]));
  return reserveId(turn, whole, declared.node);
}

/**
 * What a run that only observes leaves alone: every effect, and every conclusion about an id. The
 * run that acts may be creating, moving or destroying at this moment.
 */
const concludes: ReadonlySet<Next["do"]> = new Set([
  "step",
  "moveOn",
  "keep",
  "dropKeeper",
  "finish",
]);

/** The one place where what was decided becomes what is done. */
async function act(turn: ConnectedTurn, next: Next, declaring: Declaring): Promise<Outcome> {
  const { observeOnly } = turn.connection;
  // Another run of this installation acts: what this one would do is only reported.
  if (observeOnly !== undefined && concludes.has(next.do)) return failVm(turn, observeOnly);
  switch (next.do) {
    case "reserve":
      return reserveFrom(turn, declaring);
    case "moveOn":
      return moveOn(turn, next);
    case "record":
      await record(turn, next);
      return again("Recorded");
    case "keep":
      return chooseKeeper(turn, next);
    case "recordKeeper":
      await recordKeeper(turn, next);
      return again("Recorded");
    case "dropKeeper":
      return dropKeeper(turn, next);
    case "step":
      return (
        (await refuseAdditions(turn, declaring.declared)) ?? (await performStep(turn, next.step))
      );
    case "wait":
      return waitVm(turn, next);
    case "fail":
      releaseSlots(turn);
      return failVm(turn, next.failure, { plan: next.plan });
    case "protect":
      endBeginning(turn);
      await writeView(turn, { state: { is: "protected" } });
      return stalled(vmReasons.Protected);
    case "sweep":
    case "look":
      return again("LookAgain");
    case "finish":
      return finish(turn, next);
    case "rest":
      return rest(turn, next);
  }
}

async function record(turn: ConnectedTurn, next: Next & { do: "record" }): Promise<void> {
  const { deps, claim } = turn;
  if (claim === undefined) return;
  const isBinding = next.change.state === "Bound" && claim.spec.boundAt === undefined;
  const boundAt = isBinding ? { boundAt: formatTime(deps.clock.nowMs()) } : {};
  turn.claim = await deps.ledger.record(claim, { ...next.change, ...boundAt });
}

/** The id is of no use. What stands there, if anything of ours, is only an empty reservation. */
async function moveOn(turn: ConnectedTurn, next: Next & { do: "moveOn" }): Promise<Outcome> {
  const { deps, claim } = turn;
  if (claim === undefined) return again("NotClaimed");
  const { message, remedy = "" } = next.failure;
  const why = `${message} ${remedy}`.slice(0, 1024);
  if (next.leaves === "Husk") await deps.ledger.release(claim, why);
  else await deps.ledger.retire(claim);
  deps.events.event(turn.vm, { type: "Warning", reason: "IdGivenUp", message });
  return again("MovedOn");
}

async function rest(
  turn: ConnectedTurn,
  { do: _rest, ...found }: Next & { do: "rest" },
): Promise<Outcome> {
  const { drift, pending } = found;
  releaseSlots(turn);
  endBeginning(turn);
  const wasReady = turn.vm.status?.failure === undefined && turn.vm.status?.operation === undefined;
  tellDrift(turn, drift);
  // What was begun has had its effect, or can have none any more.
  turn.operation = undefined;
  const state = { is: "resting", ...found } as const;
  const handled = { ...handledOf(turn), ...restartHandled(turn) };
  await writeView(turn, { state, handled, operation: undefined });
  if (!wasReady) tellRest(turn, pending);
  // A silent agent holds its caller up, so everything else is said before.
  const guest = await askGuest(turn);
  if (guest !== undefined) await writeView(turn, { state, handled, guest, operation: undefined });
  const waits = [askAgainMs(turn), seedMs(turn), observeAgainMs(turn)].filter(
    (ms) => ms !== undefined,
  );
  return waits.length === 0 ? settled : again("Guest", Math.min(...waits));
}

/**
 * Another copy changes VMs that this one would change back, and a list does not show all of that:
 * what it would do is observed again, so that `berth takeover` shows it as it is now.
 */
function observeAgainMs({ connection, deps }: ConnectedTurn): number | undefined {
  if (connection.observeOnly === undefined) return undefined;
  return observeMs * (1 - observeSpread * deps.random.number());
}

/** What waits for a restart is not as declared yet. */
function tellRest({ vm, deps }: ConnectedTurn, pending: readonly string[]): void {
  const isWhole = pending.length === 0;
  const reason = isWhole ? vmReasons.Succeeded : vmReasons.RestartRequired;
  const waits = `Waits for the next restart: ${listText(pending)}.`.slice(0, 1024);
  const message = isWhole ? "The machine is as declared." : waits;
  deps.events.event(vm, { type: "Normal", reason, message });
}

/** Once, when it is found: what it is stands in the condition. */
function tellDrift({ vm, deps }: ConnectedTurn, drift: (Next & { do: "rest" })["drift"]): void {
  const { conditions = [] } = vm.status ?? {};
  const isTold = conditions.some(({ type, reason }) => {
    return type === vmConditions.Synced && reason === vmReasons.Drifted;
  });
  if (drift.length === 0 || isTold || vm.spec.driftPolicy !== "Warn") return;
  const message = `Changed by hand: ${listText(drift.map(({ path }) => path))}.`.slice(0, 1024);
  deps.events.event(vm, { type: "Warning", reason: vmReasons.Drifted, message });
}

/** A disc that still lies in the drive is taken out as soon as the guest has read it. */
function seedMs({ claim, seen, vm }: ConnectedTurn): number | undefined {
  if (claim === undefined || seen?.at !== "ours") return undefined;
  const seconds = seedSecondsLeft(claim.spec, seen.machine);
  if (seconds === undefined) return undefined;
  return hasAnswered(vm) ? settleMs : (seconds + 1) * 1000;
}
