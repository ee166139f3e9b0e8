import type { Claim } from "../../api/index.ts";
import { answered, failed, type Answer, type Failure } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { isPending, type Reservation } from "../claims/index.ts";
import { combined } from "../failures/index.ts";
import type { DeclareAnswer, Elsewhere } from "./declare.ts";
import type { Desired } from "./desired.ts";
import { failVm } from "./failing.ts";
import {
  idFailures,
  lookAhead,
  ofItsOwn,
  quotaFailure,
  reservationOf,
  takenId,
  type Held,
} from "./look-ahead.ts";
import { letGo } from "./letting-go.ts";
import { unknownRecord } from "./lost-status.ts";
import { findMadeElsewhere, type MadeElsewhere } from "./made-elsewhere.ts";
import { waitForLock } from "./next.ts";
import { proposeId } from "./propose-id.ts";
import { findTakeover } from "./takeover.ts";
import { declarationOf, isDeleting, writeView, type ConnectedTurn } from "./turn.ts";
import { waitVm } from "./waiting.ts";

/** Ids that are tried before somebody should look at why none is free. */
const givenUpMax = 50;
/** Ids that others reserve in the very same moment. */
const collisionsMax = 5;
/** What a look ahead found is good for so long, however often a dependency says something new. */
const aheadMs = 5 * 60_000;

/**
 * The Claim that the object holds. One that is Pending is only a place to write down what is seen:
 * where it does not fit what is declared now it is given up, because nothing was sent for it.
 */
export async function takeClaim(turn: ConnectedTurn, claim: Claim | undefined): Promise<void> {
  if (claim === undefined || !isPending(claim.spec)) turn.claim = claim;
  else if (isStillMeant(turn, claim)) turn.pending = claim;
  else await turn.deps.ledger.remove(claim);
}

function isStillMeant({ vm, connection }: ConnectedTurn, { spec }: Claim): boolean {
  const { hypervisorRef, externalId } = vm.spec;
  const { name, systemId } = spec.hypervisor;
  const isHere = name === hypervisorRef.name && systemId === connection.systemId;
  return isHere && (spec.idChosenBy === "User" ? spec.externalId : undefined) === externalId;
}

/**
 * Chooses an id and reserves it, finds out whether the VM can be created, and only then lets it
 * begin. The Claim exists before the first look, so that what is seen under the id has a place that
 * outlives the process; and it is counted by quotas, and stands in the status, from when it passed.
 */
export async function reserveId(
  turn: ConnectedTurn,
  desired: Desired,
  node: string,
): Promise<Outcome> {
  const made = await findMadeElsewhere(turn, desired);
  const taking =
    (await takeMadeElsewhere(turn, desired, made)) ?? (await takeOver(turn, desired, { node }));
  if (taking !== undefined) return taking;
  if (made.is === "lost") return failVm(turn, made.failure);
  const held = await holdId(turn, desired, node);
  if (!held.ok) return failVm(turn, held.failure);
  const ahead = await lookAhead(turn, desired, { node, held: held.value });
  const isIdAtFault = ahead.findings.some(({ category }) => idFailures.has(category));
  if (isIdAtFault && mayChooseAnother(turn)) return giveUpId(turn);
  if (ahead.findings.length > 0) return failVm(turn, combined(ahead.findings));
  return begin(turn, ahead.held.reservation);
}

/**
 * All that is wrong with a declaration that cannot be had, together with what the hypervisor would
 * say to the rest of it: everything is named at once, before the first effect.
 */
export async function allWrong(
  turn: ConnectedTurn,
  { findings, desired, place = {} }: Exclude<DeclareAnswer, { ok: true }>,
): Promise<Failure> {
  // What is there already, or is to be taken over, is not made.
  const isMade = turn.claim !== undefined || turn.vm.spec.adopt !== undefined;
  if (isMade || desired === undefined) return combined(findings);
  // Who may not use an id is not told who has it, and does not keep others from it.
  const isDenied = findings.some(isDenial);
  const ahead = await knownAhead(turn, desired, { ...place, isDenied });
  const isIdTold = !mayChooseAnother(turn) && !isDenied;
  const told = ahead.filter(({ category }) => isIdTold || !idFailures.has(category));
  return combined([...findings, ...told]);
}

/** What would keep the VM from being created there, found out without reserving an id. */
export async function creationFindings(
  turn: ConnectedTurn,
  desired: Desired,
  node: string,
): Promise<readonly Failure[]> {
  const findings = await knownAhead(turn, desired, { node, isDenied: true });
  // Another id is chosen instead.
  return findings.filter(({ category }) => !(mayChooseAnother(turn) && idFailures.has(category)));
}

interface Place extends Elsewhere {
  readonly isDenied: boolean;
}

/** As it was found a short while ago, or now. */
async function knownAhead(
  turn: ConnectedTurn,
  desired: Desired,
  place: Place,
): Promise<readonly Failure[]> {
  const { memory, deps, vm } = turn;
  // What was found without a node, or on another one, says nothing of this one.
  const declaration = `${place.node ?? ""} ${declarationOf(vm)}`;
  const nowMs = deps.clock.monotonicMs();
  const isKnown = memory.ahead?.declaration === declaration && nowMs < memory.ahead.untilMs;
  if (memory.ahead !== undefined && isKnown) return memory.ahead.findings;
  const findings = await findAhead(turn, desired, place);
  memory.ahead = { declaration, untilMs: nowMs + aheadMs, findings };
  return findings;
}

async function findAhead(
  turn: ConnectedTurn,
  desired: Desired,
  { node, lacks, isDenied }: Place,
): Promise<readonly Failure[]> {
  if (node === undefined) return ofItsOwn(turn, desired);
  // An id of Berth's own choice is chosen when it is needed.
  const isHolding = turn.vm.spec.externalId !== undefined && !isDenied;
  const held = isHolding
    ? await holdId(turn, desired, node)
    : await proposedId(turn, desired, node);
  if (!held.ok) return [held.failure];
  const where = { node, held: held.value, ...(lacks === undefined ? {} : { lacks }) };
  return (await lookAhead(turn, desired, where)).findings;
}

async function proposedId(
  turn: ConnectedTurn,
  desired: Desired,
  node: string,
): Promise<Answer<Held>> {
  if (turn.pending !== undefined)
    return answered(heldBy(turn, desired, { node, claim: turn.pending }));
  const proposal = await proposeId(turn, desired, []);
  if (!proposal.ok) return proposal;
  return answered({
    reservation: reservationOf(turn, desired, { node, externalId: proposal.value }),
  });
}

/** The id that is reserved for the object, if need be from now on. */
async function holdId(turn: ConnectedTurn, desired: Desired, node: string): Promise<Answer<Held>> {
  if (turn.pending !== undefined)
    return answered(heldBy(turn, desired, { node, claim: turn.pending }));
  const collided: string[] = [];
  for (;;) {
    const proposal = await proposeId(turn, desired, collided);
    if (!proposal.ok) return failed(proposal.failure);
    const externalId = proposal.value;
    const reservation = reservationOf(turn, desired, { node, externalId });
    const reserved = await turn.deps.ledger.reserve({ ...reservation, isPending: true });
    if (reserved.is === "ours") {
      turn.pending = reserved.claim;
      return answered(heldBy(turn, desired, { node, claim: reserved.claim }));
    }
    if (reserved.is === "released") return answered({ reservation, claim: reserved.claim });
    collided.push(externalId);
    const isSpent = collided.length >= collisionsMax;
    if (isSpent || !mayChooseAnother(turn)) return answered({ reservation, taken: reserved.by });
  }
}

function heldBy(
  turn: ConnectedTurn,
  desired: Desired,
  { node, claim }: { readonly node: string; readonly claim: Claim },
): Held {
  const { externalId, identity } = claim.spec;
  return { reservation: reservationOf(turn, desired, { node, externalId, identity }), claim };
}

function isDenial({ category }: Failure): boolean {
  return category === "PermissionDenied";
}

/** A machine that stands already is claimed with the identity that it has. */
async function takeOver(
  turn: ConnectedTurn,
  desired: Desired,
  { node, released }: { readonly node: string; readonly released?: string },
): Promise<Outcome | undefined> {
  const { externalId = released ?? "0" } = turn.vm.spec;
  const reservation = reservationOf(turn, desired, { node, externalId });
  const draft = turn.deps.ledger.draft(reservation);
  const taking = await findTakeover(turn, desired, { draft, isReleased: released !== undefined });
  if (taking.is === "nothing") return undefined;
  if (taking.is === "outcome") return taking.outcome;
  if (turn.pending !== undefined) await turn.deps.ledger.remove(turn.pending);
  turn.pending = undefined;
  return begin(turn, { ...reservation, ...taking.reservation });
}

/**
 * A VM that another run of this installation created for the object gets a Claim here instead of a
 * second VM. What that run sent may still arrive, so nothing is sent before its window is over.
 */
async function takeMadeElsewhere(
  turn: ConnectedTurn,
  desired: Desired,
  made: MadeElsewhere,
): Promise<Outcome | undefined> {
  switch (made.is) {
    case "nothing":
      return undefined;
    case "lost":
      // It keeps a VM from being created, and none from being adopted or taken back.
      return undefined;
    case "failed":
      return failVm(turn, made.failure);
    case "locked":
      return waitVm(turn, waitForLock(made.lock));
    case "vm":
      return takeMade(turn, desired, made);
    case "released":
      // Which VM is to be adopted is declared.
      return turn.vm.spec.adopt === undefined ? takeReleased(turn, desired, made) : undefined;
  }
}

/** A VM of this object exists: while it cannot be taken back, no second one is created. */
async function takeReleased(
  turn: ConnectedTurn,
  desired: Desired,
  { reservation: { node, externalId } }: Extract<MadeElsewhere, { is: "released" }>,
): Promise<Outcome> {
  const taking = await takeOver(turn, desired, { node, released: externalId });
  return taking ?? again("Released");
}

/**
 * An object that is deleted before this run created a VM for it. One that another run created is
 * taken over, so that it is deleted with its object; what cannot be observed keeps no object.
 */
export async function releaseUncreated(turn: ConnectedTurn, desired: Desired): Promise<Outcome> {
  const made = await findMadeElsewhere(turn, desired);
  if (made.is === "locked") return waitVm(turn, waitForLock(made.lock));
  return made.is === "vm" ? takeMade(turn, desired, made) : letGo(turn);
}

async function takeMade(
  turn: ConnectedTurn,
  desired: Desired,
  made: Extract<MadeElsewhere, { is: "vm" }>,
): Promise<Outcome> {
  const { pending } = turn;
  if (pending !== undefined && pending.spec.externalId !== made.reservation.externalId) {
    await turn.deps.ledger.remove(pending);
    turn.pending = undefined;
  }
  const reservation = reservationOf(turn, desired, made.reservation);
  return begin(turn, { ...reservation, isThere: true });
}

/** Nothing keeps the VM from being created or taken over: from now on it counts. */
async function begin(turn: ConnectedTurn, reservation: Reservation): Promise<Outcome> {
  const { ledger, clock } = turn.deps;
  // Since the quota was looked at others may have asked for the rest of it.
  const tooMuch = isDeleting(turn.vm)
    ? undefined
    : ledger.grant(reservation, (held) => quotaFailure(turn, reservation, held));
  if (tooMuch !== undefined) return failVm(turn, tooMuch);
  const { externalId, identity, node, hypervisor } = reservation;
  await writeView(turn, {
    state: { is: "working", reason: "Creating", message: `Reserves the id ${externalId}.` },
    place: { hypervisor: hypervisor.name, externalId, identity, node },
    ...(reservation.isThere === true ? { operation: unknownRecord(turn) } : {}),
  });
  const claim = await passed(turn, reservation);
  if (claim === undefined) return again("IdNotFree");
  if ("category" in claim) return failVm(turn, claim);
  if (!claim.spec.everExisted && turn.vm.status?.operation === undefined) {
    const sinceMs = clock.monotonicMs();
    turn.memory.reserved = { claim: claim.metadata.name ?? "", sinceMs };
  }
  tellReserved(turn, reservation);
  return again("Reserved");
}

/** The Claim as one for which a VM may be created; undefined where another id is to be chosen. */
async function passed(
  turn: ConnectedTurn,
  reservation: Reservation,
): Promise<Claim | Failure | undefined> {
  const { ledger } = turn.deps;
  const { externalId, node, resources, driver } = reservation;
  if (turn.pending !== undefined) {
    const notes = driver === undefined ? {} : { driver };
    return ledger.record(turn.pending, { preflight: "Passed", node, resources, ...notes });
  }
  const reserved = await ledger.reserve(reservation);
  if (reserved.is !== "taken") return reserved.claim;
  return mayChooseAnother(turn) ? undefined : takenId(externalId, reserved.by.spec.owner);
}

function tellReserved(
  { deps, vm }: ConnectedTurn,
  { externalId, node, hypervisor }: Reservation,
): void {
  const message = `Takes the id ${externalId} on ${node} of the Hypervisor ${hypervisor.name}.`;
  deps.events.event(vm, { type: "Normal", reason: "Reserved", message });
}

function mayChooseAnother({ vm, deps, connection }: ConnectedTurn): boolean {
  if (vm.spec.externalId !== undefined) return false;
  return deps.ledger.givenUpBy(vm, connection.systemId) < givenUpMax;
}

/** The id is of no use now. For a day nobody tries it. */
async function giveUpId(turn: ConnectedTurn): Promise<Outcome> {
  if (turn.pending !== undefined) await turn.deps.ledger.retire(turn.pending);
  turn.pending = undefined;
  return again("IdNotFree");
}
