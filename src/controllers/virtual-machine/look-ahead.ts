import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Failure, Preflight } from "../../hypervisor/index.ts";
import { jsonEqual } from "../../kernel/json.ts";
import { identityOf, type Reservation } from "../claims/index.ts";
import { isRetryAsked } from "../operations/index.ts";
import type { Desired } from "./desired.ts";
import type { Elsewhere } from "./declare.ts";
import { cloningOf, takesOf } from "./fills.ts";
import { keptDisks } from "./kept-disks.ts";
import { hiddenFailure, otherVolumesAfter, type Listing } from "./other-volumes.ts";
import { overQuota } from "./permissions.ts";
import { notOurs } from "./plan.ts";
import type { ConnectedTurn } from "./turn.ts";

/** An id is given up for these, where Berth chose it. */
export const idFailures: ReadonlySet<string> = new Set([
  "OrphanedVolumes",
  "IdentityConflict",
  "LockError",
]);
/** As many volumes as a Claim names. */
const otherVolumesMax = 256;

/** A look that did not see everything says nothing of what is not there. */
function isNotReach({ category }: Failure): boolean {
  return category !== "NetworkError" && category !== "NodeUnhealthy";
}

/** The id that is looked at, and what is known of it. */
export interface Held {
  readonly reservation: Reservation;
  /** Where what is seen under the id is written down; absent where there is no place for it. */
  readonly claim?: Claim;
  /** Somebody else has the id. */
  readonly taken?: Claim;
}

export interface Ahead {
  readonly findings: readonly Failure[];
  /** With what was seen. */
  readonly held: Held;
}

/** Quota, id, node, storages, images, networks, rights: everything that can be known before. */
export async function lookAhead(
  turn: ConnectedTurn,
  desired: Desired,
  { node, lacks = new Set(), held }: Elsewhere & { readonly node: string; readonly held: Held },
): Promise<Ahead> {
  const { reservation } = held;
  const claim = turn.pending?.spec ?? turn.deps.ledger.draft(reservation);
  const tooMuch = quotaFailure(turn, reservation, turn.deps.ledger.heldBeside(reservation));
  const taken = held.taken
    ? takenId(claim.externalId, held.taken.spec.owner)
    : await chosenIdFailure(turn, claim);
  const found = await preflight(turn, desired, { claim, node, lacks });
  // What stands there explains its own volumes: nobody may be told to remove them.
  const other = found.findings.filter(({ category }) => {
    return taken === undefined || !idFailures.has(category);
  });
  // Under an id that Berth chose nothing is waited for: it takes another one.
  const isChosen = turn.vm.spec.externalId !== undefined;
  const seen = isChosen ? await noteSeen(turn, held, found) : held;
  const { otherVolumes = [] } = seen.claim?.spec ?? {};
  const own = [
    tooMuch,
    taken,
    isChosen ? hiddenFailure(claim.externalId, otherVolumes) : undefined,
  ];
  return {
    findings: [...own.filter((failure) => failure !== undefined), ...other],
    held: { ...seen, reservation: { ...reservation, ...listedBy(found) } },
  };
}

async function preflight(
  turn: ConnectedTurn,
  { shape, disks, pool, seed }: Desired,
  {
    claim,
    node,
    lacks,
  }: { readonly claim: ClaimSpec; readonly node: string; readonly lacks: ReadonlySet<string> },
): Promise<Preflight> {
  const cloning = cloningOf(turn);
  const draft = {
    claim,
    node,
    shape,
    disks: newDisks(turn, disks).filter(({ storage }) => !lacks.has(storage)),
    takes: Object.values(takesOf(turn.vm)),
    isChosenId: turn.vm.spec.externalId !== undefined,
    ...(pool === undefined ? {} : { pool }),
    ...(seed === undefined ? {} : { seedStorage: seed.storage }),
  };
  return turn.driver.preflight(cloning === undefined ? draft : { ...draft, clone: cloning });
}

/**
 * Writes down in the Claim what was seen under the id, before anything is concluded from it: what
 * is there now and hidden at the next look still keeps the VM from being created.
 */
async function noteSeen(turn: ConnectedTurn, held: Held, found: Preflight): Promise<Held> {
  const { claim } = held;
  if (claim === undefined) return held;
  const { otherVolumes: known = [] } = claim.spec;
  const all = otherVolumesAfter(known, listingOf(turn, found));
  const otherVolumes = all.slice(0, otherVolumesMax);
  if (jsonEqual(otherVolumes, known)) return held;
  const noted = await turn.deps.ledger.record(claim, { otherVolumes });
  if (turn.pending !== undefined) turn.pending = noted;
  return { ...held, claim: noted };
}

function listingOf(
  { deps, vm }: ConnectedTurn,
  { findings, otherVolumes: listed }: Preflight,
): Listing {
  // After an outage or a pause the status does not say so: then nobody looked all the while.
  const isContinued = vm.status?.failure?.category === "OrphanedVolumes";
  return {
    listed,
    takes: Object.values(takesOf(vm)),
    isComplete: findings.every(isNotReach),
    isAsked: isRetryAsked(vm),
    nowMs: deps.clock.nowMs(),
    countedFromMs: isContinued ? deps.beganMs : Infinity,
  };
}

/** What a preflight listed under the id, as the Claim keeps it. */
export function listedBy({
  otherVolumes,
  notes,
}: Preflight): Pick<Reservation, "otherVolumes" | "driver"> {
  return { otherVolumes, ...(notes === undefined ? {} : { driver: notes }) };
}

/** What needs no node to be found out: the quota, and whose the id is that was chosen. */
export async function ofItsOwn(turn: ConnectedTurn, desired: Desired): Promise<Failure[]> {
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

export function reservationOf(
  { vm, deps, connection }: ConnectedTurn,
  desired: Desired,
  {
    node,
    externalId,
    identity = vm.status?.identity ?? identityOf(deps.ledger.installation, vm.metadata.uid ?? ""),
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
    otherVolumes: [],
    resources: resourcesOf(desired),
  };
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

export function quotaFailure(
  { vm, deps, connection }: ConnectedTurn,
  { resources: wanted }: Reservation,
  held: readonly ClaimSpec[],
): Failure | undefined {
  const namespace = vm.metadata.namespace ?? "";
  const hypervisor = deps.lookups.hypervisors.get(connection.name);
  return hypervisor && overQuota(hypervisor, namespace, { held, wanted });
}

export function takenId(externalId: string, owner: { namespace: string; name: string }): Failure {
  return {
    category: "IdentityConflict",
    message: `The id ${externalId} belongs to ${owner.namespace}/${owner.name}.`,
    remedy: "Choose another spec.externalId, or leave it out.",
  };
}
