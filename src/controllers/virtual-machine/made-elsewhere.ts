import type { Claim, ClaimSpec } from "../../api/index.ts";
import type {
  Failure,
  ForeignSeen,
  InventoryMachine,
  Lock,
  Machine,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { Reservation } from "../claims/index.ts";
import type { Desired } from "./desired.ts";
import { reservationOf } from "./look-ahead.ts";
import type { ConnectedTurn } from "./turn.ts";

/** Each costs a read: more VMs with one name are not looked through, and nothing is created. */
const candidatesMax = 64;

/**
 * A VM that another run of this installation created for the object: the original, or a copy that
 * was started from a backup. It is in no Claim of this run.
 */
export type MadeElsewhere =
  | { readonly is: "nothing" }
  | { readonly is: "vm"; readonly reservation: Pick<Reservation, "externalId" | "node"> }
  /** That run released it too. It is taken back by the rules of a takeover. */
  | { readonly is: "released"; readonly reservation: Pick<Reservation, "externalId" | "node"> }
  /**
   * This installation created one for an object of this name, and no Claim knows it: the data of
   * Berth is older than that VM. It is another object's, or nobody can tell; and it is there.
   */
  | { readonly is: "lost"; readonly failure: Failure }
  /** It is being created at this moment. */
  | { readonly is: "locked"; readonly lock: Lock }
  | { readonly is: "failed"; readonly failure: Failure };

/** The id that every run of this installation tries first for the object. */
export function preferredId({ vm, deps, driver }: ConnectedTurn): string | undefined {
  return driver.prefer?.(`${deps.ledger.installation}\n${vm.metadata.uid ?? ""}`);
}

/**
 * Looks for it before a VM is created: among the VMs of the last list that have its name or an id
 * that it may have, and that no Claim holds. The list does not show ownership markers, so each of
 * them costs one read; there is none where nobody else created anything.
 */
export async function findMadeElsewhere(
  turn: ConnectedTurn,
  desired: Desired,
): Promise<MadeElsewhere> {
  const rows = candidates(turn, desired);
  if (!guard("made-elsewhere-all-read", rows.length <= candidatesMax)) {
    return { is: "failed", failure: tooManyFailure(turn, rows.length) };
  }
  const found: Found[] = [];
  for (const row of rows) {
    const seen = await lookAt(turn, desired, row);
    if ("machine" in seen) found.push(seen);
    else if (seen.is !== "nothing") return seen;
  }
  return foundOf(turn, found);
}

interface Found {
  readonly is: "vm" | "released" | "lost";
  readonly machine: Machine;
}

type Look = Found | Exclude<MadeElsewhere, { is: Found["is"] }>;

/** What was created for this very object comes first: then nothing is created beside the others. */
function foundOf(turn: ConnectedTurn, found: readonly Found[]): MadeElsewhere {
  const own = found.flatMap(({ is, machine }) => (is === "lost" ? [] : [{ is, machine }]));
  const [first] = own;
  if (first === undefined) return lostFound(turn, found);
  if (!guard("made-elsewhere-once", own.length === 1)) {
    const machines = own.map(({ machine }) => machine);
    return { is: "failed", failure: severalFailure(turn, machines) };
  }
  const { externalId, node } = first.machine;
  return { is: first.is, reservation: { externalId, node } };
}

function lostFound(turn: ConnectedTurn, [lost]: readonly Found[]): MadeElsewhere {
  if (lost === undefined) return { is: "nothing" };
  return { is: "lost", failure: lostFailure(turn, lost.machine) };
}

/** Its marker, its SMBIOS UUID and its id have to be those that this object's VM would have. */
export async function lookAt(
  turn: ConnectedTurn,
  desired: Desired,
  { externalId, node }: Pick<InventoryMachine, "externalId" | "node">,
): Promise<Look> {
  const reservation = reservationOf(turn, desired, { externalId, node });
  const draft = turn.deps.ledger.draft(reservation);
  const seen = await turn.driver.observe(draft, { withoutPower: true });
  switch (seen.at) {
    case "ours":
      return provenMade(turn, draft, { is: "vm", machine: seen.machine });
    case "unknown":
      return { is: "failed", failure: seen.failure };
    case "opaque":
      return seen.lock.state === "Dead" ? { is: "nothing" } : { is: "locked", lock: seen.lock };
    case "foreign":
      return lookAtForeign(turn, draft, seen);
    case "absent":
      return { is: "nothing" };
  }
}

async function lookAtForeign(
  turn: ConnectedTurn,
  draft: ClaimSpec,
  seen: ForeignSeen,
): Promise<Look> {
  const released = releasedOf(draft, seen);
  if (released !== undefined) return provenMade(turn, draft, { is: "released", machine: released });
  const lost = lostOf(draft, seen);
  const isFree = guard("one-vm-for-a-name", lost === undefined);
  return isFree || lost === undefined ? { is: "nothing" } : { is: "lost", machine: lost };
}

/**
 * A VM that this installation created for an object of this name, other than this one. A copy of it
 * is not meant: its id or its SMBIOS UUID is not the one in the marker. Pure.
 */
export function lostOf(
  { installation, owner }: ClaimSpec,
  { machine }: Pick<ForeignSeen, "machine">,
): Machine | undefined {
  const mark = machine?.mark;
  if (machine === undefined || mark?.state !== "Owned") return undefined;
  const isOurs = mark.installation === installation;
  const isOwners = mark.owner.namespace === owner.namespace && mark.owner.name === owner.name;
  const isNoCopy = mark.externalId === machine.externalId && mark.identity === machine.identity;
  const isIt =
    guard("lost-vm-of-installation", isOurs) &&
    guard("lost-vm-of-owner", isOwners) &&
    guard("lost-vm-no-copy", isNoCopy);
  return isIt ? machine : undefined;
}

/**
 * The identity of a VM follows from the installation and the object's uid. So a released VM that
 * has it was created for this very object, and not for another one of the same name.
 */
function releasedOf(
  { identity }: ClaimSpec,
  { reason, machine }: ForeignSeen,
): Machine | undefined {
  if (reason !== "Released" || machine === undefined) return undefined;
  const isItsOwn = machine.identity === identity;
  return guard("released-elsewhere-same-identity", isItsOwn) ? machine : undefined;
}

/**
 * A marker is text that others may write too. A VM is this object's only if Berth's own token has
 * worked on it since the object exists.
 */
async function provenMade(turn: ConnectedTurn, draft: ClaimSpec, found: Found): Promise<Look> {
  const { machine } = found;
  const sinceMs = Date.parse(turn.vm.metadata.creationTimestamp ?? "") || turn.deps.clock.nowMs();
  const tasks = await turn.driver.history?.({ ...draft, node: machine.node }, sinceMs);
  if (tasks?.ok === false) return { is: "failed", failure: tasks.failure };
  const isMade = tasks?.value.some(({ isOurs }) => isOurs) === true;
  if (guard("made-elsewhere-by-own-task", isMade)) return found;
  return { is: "failed", failure: unprovenFailure(turn, machine) };
}

function unprovenFailure(
  { connection, vm }: ConnectedTurn,
  { externalId, node }: Machine,
): Failure {
  const { namespace = "", name = "" } = vm.metadata;
  return {
    category: "IdentityConflict",
    message:
      `The VM ${externalId} on ${node} of ${connection.name} bears the ownership marker of ` +
      `${namespace}/${name}, and no task of Berth's on it is known.`,
    remedy:
      "Find out who wrote the marker into its description. Remove that line there, and Berth " +
      "creates a VM of its own; or adopt the VM (berth orphans adopt).",
  };
}

function candidates(turn: ConnectedTurn, { shape }: Desired): InventoryMachine[] {
  const { connection, vm, deps, pending } = turn;
  const ids = [preferredId(turn), vm.spec.externalId, vm.status?.externalId];
  return connection.inventory.machines
    .filter(({ kind }) => kind === "Machine")
    .filter(({ externalId, name }) => {
      // The name of a new VM is not in the list at once.
      const isNamed = name === undefined || name === shape.name || name === vm.metadata.name;
      return isNamed || ids.includes(externalId);
    })
    .filter(({ externalId }) => {
      // Nothing was sent under an id that is only reserved: what exists there, another run created.
      const isPending = pending?.spec.externalId === externalId;
      return isPending || isNobodys(deps.ledger.known(connection.systemId, externalId));
    });
}

/** What was released is taken back by its own rules. */
function isNobodys(claim: Claim | undefined): boolean {
  return claim === undefined || claim.spec.state === "Quarantined";
}

function lostFailure({ connection, vm }: ConnectedTurn, { externalId, node }: Machine): Failure {
  const { namespace = "", name = "" } = vm.metadata;
  return {
    category: "IdentityConflict",
    message:
      `This installation created the VM ${externalId} on ${node} of ${connection.name} for ` +
      `${namespace}/${name}, and no Claim knows it. Berth's data is probably older than that VM: ` +
      "it was rolled back or restored. No second VM is created.",
    remedy:
      `To go on with that VM, declare adopt: IfPresent and externalId: "${externalId}". If nobody ` +
      `needs it, remove it on the hypervisor, or run berth orphans destroy ${externalId} once it ` +
      "is listed there. Or give this object another name. Berth goes on by itself.",
  };
}

function tooManyFailure({ connection, vm }: ConnectedTurn, count: number): Failure {
  const { namespace = "", name = "" } = vm.metadata;
  return {
    category: "IdentityConflict",
    message:
      `${count} VMs on ${connection.name} have the name of ${namespace}/${name} or none, and no ` +
      `Claim knows them. Berth reads ${candidatesMax} at most to find out whether one is its own.`,
    remedy: "Give this object another name, or those VMs. Berth goes on by itself.",
  };
}

function severalFailure({ connection, vm }: ConnectedTurn, found: readonly Machine[]): Failure {
  const { namespace = "", name = "" } = vm.metadata;
  const ids = found.map(({ externalId, node }) => `${externalId} on ${node}`).join(" and ");
  return {
    category: "IdentityConflict",
    message: `Several VMs on ${connection.name} were created for ${namespace}/${name}: ${ids}.`,
    remedy: "Remove all of them but one on the hypervisor; Berth takes that one over.",
  };
}
