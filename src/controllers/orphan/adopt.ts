import { virtualMachineKind } from "../../api/index.ts";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import type { Failure, Machine, Seen } from "../../hypervisor/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { again, stalled, type Outcome } from "../../runtime/index.ts";
import { isHeld } from "../claims/index.ts";
import { declarationOf } from "./adoption.ts";
import { lookAgain, perform } from "./effects.ts";
import { failOrphan } from "./failing.ts";
import { holdClaim, prepareLocked } from "./steps.ts";
import { unlessGone } from "./sweep.ts";
import { removeOrphan, writeOrphan, type OrphanTurn } from "./turn.ts";

const soonMs = 1_000;

/**
 * Makes the VirtualMachine for a machine that nothing declares. It is first let go, mark and Claim,
 * and then taken over by the new object like any other that stands: that object does the rest, and
 * asks for approval where anything would change.
 */
export async function adopt(turn: OrphanTurn): Promise<Outcome> {
  const { deps, orphan } = turn;
  const { adoptAs, externalId, hypervisor } = orphan.spec;
  if (adoptAs === undefined) return refuse(turn, "It has to say which object adopts it: adoptAs.");
  const vms = deps.client.of(virtualMachineKind);
  const there = await unlessGone(() => vms.get(adoptAs));
  if (there === undefined) return adoptMachine(turn);
  const isIts =
    there.spec.externalId === externalId && there.spec.hypervisorRef.name === hypervisor;
  // The object sees to its machine from now on, and says what it waits for.
  if (isIts) return removeOrphan(orphan, deps);
  const name = `${adoptAs.namespace}/${adoptAs.name}`;
  return refuse(turn, `There is a VirtualMachine ${name} already, with another machine.`);
}

async function refuse(turn: OrphanTurn, message: string): Promise<Outcome> {
  await writeOrphan(turn, { is: "notAllowed", message });
  return stalled("NotAllowed");
}

async function adoptMachine(turn: OrphanTurn): Promise<Outcome> {
  const { find, connection, deps, orphan } = turn;
  const claim = await claimOf(turn);
  if (claim === undefined) {
    return find === undefined ? removeOrphan(orphan, deps) : lookAgain(turn);
  }
  const seen = await connection.driver.observe(claim.spec, {});
  if (seen.at === "unknown") return failOrphan(turn, seen.failure);
  if (seen.at === "ours") return letGo(turn, claim, seen.machine);
  const machine = seen.at === "foreign" && seen.reason === "Released" ? seen.machine : undefined;
  if (machine !== undefined) return declare(turn, claim, machine);
  // The last sweep did not find it either: it is gone, or somebody else's.
  if (find === undefined && isAnothers(seen)) return removeOrphan(orphan, deps);
  return lookAgain(turn);
}

function isAnothers({ at }: Seen): boolean {
  return at === "absent" || at === "foreign";
}

/**
 * The Claim that is held for it, or the one under which it was let go a moment ago: then no sweep
 * finds the machine any more, and only what was begun says that it is still to be adopted.
 */
async function claimOf(turn: OrphanTurn): Promise<Claim | undefined> {
  const { find, deps, orphan, connection } = turn;
  if (orphan.status?.operation?.step === "Release") {
    const released = await deps.ledger.releasedAs(connection.systemId, orphan.spec.externalId);
    if (released !== undefined) return released;
  }
  return holdClaim(turn, find);
}

/** The mark is rewritten; nothing else of the machine changes. */
async function letGo(turn: OrphanTurn, claim: Claim, machine: Machine): Promise<Outcome> {
  const { deps, connection, orphan } = turn;
  const denied = deniedTo(turn, machine) ?? (await refusalOf(turn, machine));
  if (denied === "there") return again("Exists", soonMs);
  if (denied !== undefined) return failOrphan(turn, denied);
  if (connection.observeOnly !== undefined) return failOrphan(turn, connection.observeOnly);
  if (!deps.operations.fence.mayWrite()) return again("Fenced", soonMs);
  const locked = prepareLocked(turn, claim, machine);
  if (locked !== undefined) return perform(turn, locked, "Adopting");
  const at = { node: machine.node, version: machine.version };
  const operation = { kind: "release", claim: claim.spec, at } as const;
  const intent = `Let the machine ${orphan.spec.externalId} go, so that it can be adopted.`;
  return perform(turn, { do: "begin", step: "Release", operation, intent }, "Adopting");
}

async function declare(turn: OrphanTurn, claim: Claim, machine: Machine): Promise<Outcome> {
  const { deps, orphan } = turn;
  if (isHeld(claim.spec)) await deps.ledger.release(claim, "let go to be adopted");
  const refusal = await refusalOf(turn, machine, { dryRun: false });
  if (refusal === "there") return again("Exists", soonMs);
  if (refusal !== undefined) return failOrphan(turn, refusal);
  const message = `The machine ${orphan.spec.externalId} is adopted as ${adopterOf(turn)}.`;
  deps.events.event(orphan, { type: "Normal", reason: "OrphanAdopted", message });
  return again("Declared", soonMs);
}

/** Nothing is let go for an object that may not have it. */
function deniedTo({ orphan, deps }: OrphanTurn, machine: Machine): Failure | undefined {
  const hypervisor = deps.hypervisors.get(orphan.spec.hypervisor);
  // cast: what the schema fills in is not looked at.
  const vm = declarationOf(orphan, machine) as unknown as VirtualMachine;
  return hypervisor && deps.forbidden(vm, hypervisor);
}

/** Why the server does not take the object; or that it is there, which the next turn looks at. */
async function refusalOf(
  turn: OrphanTurn,
  machine: Machine,
  options = { dryRun: true },
): Promise<Failure | "there" | undefined> {
  const vms = turn.deps.client.of(virtualMachineKind);
  try {
    await vms.create(declarationOf(turn.orphan, machine), options);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code >= 500) throw error;
    if (error.reason === "AlreadyExists") return "there";
    return {
      category: "ConfigurationError",
      message: `The VirtualMachine ${adopterOf(turn)} was refused: ${error.message}`,
      remedy: "Name another with berth orphans adopt --as, or mend what it says.",
    };
  }
}

function adopterOf({ orphan }: OrphanTurn): string {
  const { namespace = "", name = "" } = orphan.spec.adoptAs ?? {};
  return `${namespace}/${name}`;
}
