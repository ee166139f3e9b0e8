import type { ClaimSpec } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Reservation } from "../claims/index.ts";
import type { Desired } from "./desired.ts";
import { failVm } from "./failing.ts";
import { cloningOf, takesOf } from "./fills.ts";
import { overQuota } from "./permissions.ts";
import { notOurs } from "./plan.ts";
import { findTakeover } from "./takeover.ts";
import { writeView, type ConnectedTurn } from "./turn.ts";

/** An id is given up for these, where Berth chose it. */
const idFailures: ReadonlySet<string> = new Set([
  "OrphanedVolumes",
  "IdentityConflict",
  "LockError",
]);
/** Ids that are tried before somebody should look at why none is free. */
const avoidMax = 50;

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
  const { deps, driver } = turn;
  const taking = await takeOver(turn, desired, node);
  if (taking !== undefined) return taking;
  const proposal = await proposeId(turn);
  if (!proposal.ok) return failVm(turn, proposal.failure);
  const reservation = reservationOf(turn, desired, { node, externalId: proposal.value });
  const tooMuch = quotaFailure(turn, reservation);
  if (tooMuch !== undefined) return failVm(turn, tooMuch);
  const { shape, disks } = desired;
  const claim = deps.ledger.draft(reservation);
  const taken = await chosenIdFailure(turn, claim);
  if (taken !== undefined) return failVm(turn, taken);
  const cloning = cloningOf(turn);
  const takes = Object.values(takesOf(turn.vm));
  const draft = { claim, node, shape, disks: newDisks(turn, disks), takes };
  const { findings, volumesBefore } = await driver.preflight(
    cloning === undefined ? draft : { ...draft, clone: cloning },
  );
  const isIdAtFault = findings.some(({ category }) => idFailures.has(category));
  if (isIdAtFault && mayChooseAnother(turn)) return avoidId(turn, proposal.value);
  if (findings.length > 0) return failVm(turn, combined(findings));
  return writeReservation(turn, { ...reservation, preflightVolumes: volumesBefore });
}

/** Disks that are made. What the hypervisor copies itself comes with its copy. */
function newDisks(turn: ConnectedTurn, disks: Desired["disks"]): Desired["disks"] {
  const cloning = cloningOf(turn);
  const copied = [cloning?.disk, ...(cloning?.disks ?? []).map(({ name }) => name)];
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
  const known = { ...reservation, ...taking.reservation };
  const tooMuch = quotaFailure(turn, known);
  return tooMuch === undefined ? writeReservation(turn, known) : failVm(turn, tooMuch);
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
  const { externalId, identity, node, hypervisor } = reservation;
  await writeView(turn, {
    state: { is: "working", reason: "Creating", message: `Reserves the id ${externalId}.` },
    place: { hypervisor: hypervisor.name, externalId, identity, node },
  });
  const reserved = await turn.deps.ledger.reserve(reservation);
  if (reserved.is === "ours") {
    const name = reserved.claim.metadata.name ?? "";
    const isNew = !reserved.claim.spec.everStood;
    if (isNew && turn.vm.status?.operation === undefined) turn.memory.reserved = name;
    return again("Reserved");
  }
  if (mayChooseAnother(turn)) return avoidId(turn, externalId);
  return failVm(turn, takenId(externalId, reserved.by.spec.owner));
}

function reservationOf(
  { vm, deps, connection }: ConnectedTurn,
  desired: Desired,
  { node, externalId }: { readonly node: string; readonly externalId: string },
): Reservation {
  const { name, systemId } = connection;
  return {
    vm,
    hypervisor: { name, systemId },
    externalId,
    idChosenBy: vm.spec.externalId === undefined ? "Berth" : "User",
    identity: vm.status?.identity ?? deps.random.uuid(),
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
  const { vm, deps, connection, memory, driver } = turn;
  const { externalId: chosen } = vm.spec;
  if (chosen !== undefined) return { ok: true, value: chosen };
  const claimed = deps.ledger.idsOn(connection.systemId);
  const avoid = new Set([...claimed, ...memory.avoid, ...othersChoices(turn)]);
  const { externalId: earlier, hypervisor } = vm.status ?? {};
  // Chosen before a crash, and nothing was reserved: still the best choice.
  if (earlier !== undefined && hypervisor === connection.name && !avoid.has(earlier)) {
    return { ok: true, value: earlier };
  }
  return driver.propose([...avoid]);
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
): Failure | undefined {
  const namespace = vm.metadata.namespace ?? "";
  const held = deps.ledger.heldBy(namespace, connection.systemId);
  const hypervisor = deps.lookups.hypervisors.get(connection.name);
  return hypervisor && overQuota(hypervisor, namespace, { held, wanted });
}

/** All that is wrong at once, under the category of the first. */
export function combined(findings: readonly Failure[]): Failure {
  const [first] = findings;
  if (first === undefined || findings.length === 1) {
    return first ?? { category: "CreationFailed", message: "Nothing is wrong." };
  }
  const remedies = findings.flatMap(({ remedy }) => (remedy === undefined ? [] : [remedy]));
  return {
    ...first,
    message: findings.map(({ message }) => message).join(" "),
    ...(remedies.length > 0 ? { remedy: [...new Set(remedies)].join(" ") } : {}),
  };
}

function takenId(externalId: string, owner: { namespace: string; name: string }): Failure {
  return {
    category: "IdentityConflict",
    message: `The id ${externalId} belongs to ${owner.namespace}/${owner.name}.`,
    remedy: "Choose another spec.externalId, or leave it out.",
  };
}
