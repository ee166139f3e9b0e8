import type { ClaimSpec } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Reservation } from "../claims/index.ts";
import { combined } from "../failures/index.ts";
import type { DeclareAnswer, Elsewhere } from "./declare.ts";
import type { Desired } from "./desired.ts";
import { failVm } from "./failing.ts";
import { cloningOf, takesOf } from "./fills.ts";
import { outOfSight } from "./in-the-way.ts";
import { keptDisks } from "./kept-disks.ts";
import { overQuota } from "./permissions.ts";
import { notOurs } from "./plan.ts";
import { findTakeover } from "./takeover.ts";
import { declarationOf, writeView, type ConnectedTurn } from "./turn.ts";

/** An id is given up for these, where Berth chose it. */
export const idFailures: ReadonlySet<string> = new Set([
  "OrphanedVolumes",
  "IdentityConflict",
  "LockError",
]);
/** Ids that are tried before somebody should look at why none is free. */
const avoidMax = 50;
/** What a look ahead found is good for so long, however often a dependency says something new. */
const aheadMs = 5 * 60_000;

/**
 * Chooses an id and reserves it. The choice is in the status before the Claim exists, so that the
 * Claim is found by its name, whatever a list may show; and the Claim exists before the hypervisor
 * hears anything.
 */
export async function reserveId(
  turn: ConnectedTurn,
  desired: Desired,
  node: string,
): Promise<Outcome> {
  const taking = await takeOver(turn, desired, node);
  if (taking !== undefined) return taking;
  const { findings, reservation } = await lookAhead(turn, desired, { node });
  const isIdAtFault = findings.some(({ category }) => idFailures.has(category));
  if (isIdAtFault && mayChooseAnother(turn) && reservation !== undefined) {
    return avoidId(turn, reservation.externalId);
  }
  if (findings.length > 0 || reservation === undefined) return failVm(turn, combined(findings));
  return writeReservation(turn, reservation);
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
  const ahead = await knownAhead(turn, desired, place);
  // Who may not use an id is not told who has it.
  const isIdTold = !mayChooseAnother(turn) && !findings.some(isDenial);
  const told = ahead.filter(({ category }) => isIdTold || !idFailures.has(category));
  return combined([...findings, ...told]);
}

/** As it was found a short while ago, or now. */
async function knownAhead(
  turn: ConnectedTurn,
  desired: Desired,
  place: Elsewhere,
): Promise<readonly Failure[]> {
  const { memory, deps, vm } = turn;
  // What was found without a node, or on another one, says nothing of this one.
  const declaration = `${place.node ?? ""} ${declarationOf(vm)}`;
  const nowMs = deps.clock.monotonicMs();
  const isKnown = memory.ahead?.declaration === declaration && nowMs < memory.ahead.untilMs;
  if (memory.ahead !== undefined && isKnown) return memory.ahead.findings;
  const { findings } = await lookAhead(turn, desired, place);
  memory.ahead = { declaration, untilMs: nowMs + aheadMs, findings };
  return findings;
}

/** A look that did not see everything says nothing of what is not there. */
function isNotReach({ category }: Failure): boolean {
  return category !== "NetworkError" && category !== "NodeUnhealthy";
}

function isDenial({ category }: Failure): boolean {
  return category === "PermissionDenied";
}

interface Ahead {
  readonly findings: readonly Failure[];
  /** Absent where not even an id could be found. */
  readonly reservation?: Reservation;
}

/** Quota, id, node, storages, images, networks, rights: everything that can be known before. */
async function lookAhead(
  turn: ConnectedTurn,
  desired: Desired,
  { node, lacks = new Set() }: Elsewhere,
): Promise<Ahead> {
  if (node === undefined) return { findings: await ofItsOwn(turn, desired) };
  const proposal = await proposeId(turn);
  if (!proposal.ok) return { findings: [proposal.failure] };
  const reservation = reservationOf(turn, desired, { node, externalId: proposal.value });
  const { shape, disks } = desired;
  const claim = turn.deps.ledger.draft(reservation);
  const tooMuch = quotaFailure(turn, reservation, turn.deps.ledger.heldBeside(reservation));
  const own = [tooMuch, await chosenIdFailure(turn, claim)];
  const [, taken] = own;
  const cloning = cloningOf(turn);
  const takes = Object.values(takesOf(turn.vm));
  const made = newDisks(turn, disks).filter(({ storage }) => !lacks.has(storage));
  const { pool, seed } = desired;
  const draft = {
    claim,
    node,
    shape,
    disks: made,
    takes,
    ...(pool === undefined ? {} : { pool }),
    ...(seed === undefined ? {} : { seedStorage: seed.storage }),
  };
  const { findings, volumesBefore, inTheWay } = await turn.driver.preflight(
    cloning === undefined ? draft : { ...draft, clone: cloning },
  );
  // What stands there explains its own volumes: nobody may be told to remove them.
  const other = findings.filter(({ category }) => {
    return taken === undefined || !idFailures.has(category);
  });
  // Under an id that Berth chose nothing is waited for: it takes another one.
  const isChosen = turn.vm.spec.externalId !== undefined && findings.every(isNotReach);
  const storages = disks.map(({ storage }) => storage);
  const looked = { externalId: claim.externalId, node, storages, listed: inTheWay ?? [], takes };
  own.push(isChosen ? outOfSight(turn, looked) : undefined);
  return {
    findings: [...own.filter((failure) => failure !== undefined), ...other],
    reservation: { ...reservation, preflightVolumes: volumesBefore, preflightNode: node },
  };
}

/** What needs no node to be found out: the quota, and whose the id is that was chosen. */
async function ofItsOwn(turn: ConnectedTurn, desired: Desired): Promise<Failure[]> {
  const { externalId = "0" } = turn.vm.spec;
  // Nothing is reserved yet, so no identity is drawn either.
  const nobody = { node: "", externalId, identity: turn.vm.status?.identity ?? "" };
  const reservation = reservationOf(turn, desired, nobody);
  const claim = turn.deps.ledger.draft(reservation);
  const tooMuch = quotaFailure(turn, reservation, turn.deps.ledger.heldBeside(reservation));
  const own = [tooMuch, await chosenIdFailure(turn, claim)];
  return own.filter((failure) => failure !== undefined);
}

/** Disks that are made. What the hypervisor copies comes with its copy; what is kept is there. */
function newDisks(turn: ConnectedTurn, disks: Desired["disks"]): Desired["disks"] {
  const cloning = cloningOf(turn);
  const kept = keptDisks(turn).map(({ disk }) => disk);
  const copied = [cloning?.disk, ...(cloning?.disks ?? []).map(({ name }) => name), ...kept];
  return disks.filter(({ name }) => !copied.includes(name));
}

/** A machine that stands already is claimed with the identity that it has. */
async function takeOver(
  turn: ConnectedTurn,
  desired: Desired,
  node: string,
): Promise<Outcome | undefined> {
  const { externalId = "0" } = turn.vm.spec;
  const reservation = reservationOf(turn, desired, { node, externalId });
  const taking = await findTakeover(turn, desired, turn.deps.ledger.draft(reservation));
  if (taking.is === "nothing") return undefined;
  if (taking.is === "outcome") return taking.outcome;
  return writeReservation(turn, { ...reservation, ...taking.reservation });
}

/**
 * An id that a person chose, and that somebody has. It is found out before anything else is: the
 * volumes of a machine that stands there are no leftovers, and nobody may be told to remove them.
 */
async function chosenIdFailure(
  { vm, deps, driver }: ConnectedTurn,
  claim: ClaimSpec,
): Promise<Failure | undefined> {
  if (vm.spec.externalId === undefined) return undefined;
  const holder = await deps.ledger.holder(claim);
  if (holder !== undefined) return takenId(claim.externalId, holder.spec.owner);
  const seen = await driver.observe(claim, { withoutPower: true });
  switch (seen.at) {
    case "unknown":
      return seen.failure;
    case "foreign":
      return notOurs(claim, seen);
    case "absent":
    case "opaque":
    case "ours":
      return undefined;
  }
}

async function writeReservation(turn: ConnectedTurn, reservation: Reservation): Promise<Outcome> {
  const { ledger, clock } = turn.deps;
  // Since the quota was looked at others may have asked for the rest of it.
  const tooMuch = ledger.grant(reservation, (held) => quotaFailure(turn, reservation, held));
  if (tooMuch !== undefined) return failVm(turn, tooMuch);
  const { externalId, identity, node, hypervisor } = reservation;
  await writeView(turn, {
    state: { is: "working", reason: "Creating", message: `Reserves the id ${externalId}.` },
    place: { hypervisor: hypervisor.name, externalId, identity, node },
  });
  const reserved = await ledger.reserve(reservation);
  if (reserved.is === "ours") {
    const { metadata, spec } = reserved.claim;
    const sinceMs = clock.monotonicMs();
    if (!spec.everStood && turn.vm.status?.operation === undefined) {
      turn.memory.reserved = { claim: metadata.name ?? "", sinceMs };
    }
    tellReserved(turn, reservation);
    return again("Reserved");
  }
  if (mayChooseAnother(turn)) return avoidId(turn, externalId);
  return failVm(turn, takenId(externalId, reserved.by.spec.owner));
}

function tellReserved(
  { deps, vm }: ConnectedTurn,
  { externalId, node, hypervisor }: Reservation,
): void {
  const message = `Takes the id ${externalId} on ${node} of the Hypervisor ${hypervisor.name}.`;
  deps.events.event(vm, { type: "Normal", reason: "Reserved", message });
}

function reservationOf(
  { vm, deps, connection }: ConnectedTurn,
  desired: Desired,
  {
    node,
    externalId,
    identity = vm.status?.identity ?? deps.random.uuid(),
  }: { readonly node: string; readonly externalId: string; readonly identity?: string },
): Reservation {
  const { name, systemId } = connection;
  return {
    vm,
    hypervisor: { name, systemId },
    externalId,
    idChosenBy: vm.spec.externalId === undefined ? "Berth" : "User",
    identity,
    node,
    preflightVolumes: [],
    resources: resourcesOf(desired),
  };
}

function mayChooseAnother({ vm, memory }: ConnectedTurn): boolean {
  return vm.spec.externalId === undefined && memory.avoid.length < avoidMax;
}

function avoidId({ memory }: ConnectedTurn, externalId: string): Outcome {
  memory.avoid.push(externalId);
  return again("IdNotFree");
}

async function proposeId(turn: ConnectedTurn): ReturnType<ConnectedTurn["driver"]["propose"]> {
  const { vm, connection, driver } = turn;
  const { externalId: chosen } = vm.spec;
  if (chosen !== undefined) return { ok: true, value: chosen };
  const avoid = new Set(idsToAvoid(turn));
  const { externalId: earlier, hypervisor } = vm.status ?? {};
  // Chosen before a crash, and nothing was reserved: still the best choice.
  if (earlier !== undefined && hypervisor === connection.name && !avoid.has(earlier)) {
    return { ok: true, value: earlier };
  }
  return driver.propose([...avoid]);
}

/** Ids that somebody has, had lately, or is about to reserve. */
export function idsToAvoid(turn: ConnectedTurn): string[] {
  const claimed = turn.deps.ledger.idsOn(turn.connection.systemId);
  return [...claimed, ...turn.memory.avoid, ...othersChoices(turn)];
}

/** Ids that other VMs are about to reserve. */
function othersChoices({ key, deps, connection }: ConnectedTurn): string[] {
  const others = deps.lookups.vms.byIndex("hypervisor", connection.name);
  return others.flatMap(({ metadata, status }) => {
    const isOther = `${metadata.namespace ?? ""}/${metadata.name ?? ""}` !== key;
    return isOther && status?.externalId !== undefined ? [status.externalId] : [];
  });
}

function resourcesOf({ shape, disks }: Desired): Reservation["resources"] {
  const { cores = 1, sockets = 1 } = shape.cpu ?? {};
  const storage = disks.reduce((total, { sizeBytes = 0 }) => total + sizeBytes, 0);
  return {
    cpu: cores * sockets,
    memory: String(shape.memory?.sizeBytes ?? 0),
    storage: String(storage),
  };
}

function quotaFailure(
  { vm, deps, connection }: ConnectedTurn,
  { resources: wanted }: Reservation,
  held: readonly ClaimSpec[],
): Failure | undefined {
  const namespace = vm.metadata.namespace ?? "";
  const hypervisor = deps.lookups.hypervisors.get(connection.name);
  return hypervisor && overQuota(hypervisor, namespace, { held, wanted });
}

function takenId(externalId: string, owner: { namespace: string; name: string }): Failure {
  return {
    category: "IdentityConflict",
    message: `The id ${externalId} belongs to ${owner.namespace}/${owner.name}.`,
    remedy: "Choose another spec.externalId, or leave it out.",
  };
}
