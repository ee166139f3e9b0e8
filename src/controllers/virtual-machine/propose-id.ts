import { failed, type Answer, type Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { Desired } from "./desired.ts";
import { lookAt, preferredId } from "./made-elsewhere.ts";
import type { ConnectedTurn } from "./turn.ts";

/**
 * The id to reserve next: the chosen one, the one of before, or the one that every run of this
 * installation tries first for the object; where that is not free, any other.
 */
export async function proposeId(
  turn: ConnectedTurn,
  desired: Desired,
  collided: readonly string[],
): Promise<Answer<string>> {
  const { vm, connection } = turn;
  const { externalId: chosen } = vm.spec;
  if (chosen !== undefined) return { ok: true, value: chosen };
  const avoid = new Set([...idsToAvoid(turn), ...collided]);
  const { externalId: earlier, hypervisor } = vm.status ?? {};
  const isHere = earlier !== undefined && hypervisor === connection.name;
  if (!isHere || avoid.has(earlier)) return freeId(turn, desired, avoid);
  // Chosen before, and its Claim is lost: still the best choice. One that was given up is not: what
  // was left there stands in the way. The cache may not have it yet.
  const there = await turn.deps.ledger.read(connection.systemId, earlier);
  if (guard("earlier-id-not-given-up", there?.spec.state !== "Released")) {
    return { ok: true, value: earlier };
  }
  return freeId(turn, desired, avoid.add(earlier));
}

/** The id that is tried first for the object, unless it is taken by somebody else. */
async function freeId(
  turn: ConnectedTurn,
  desired: Desired,
  avoid: ReadonlySet<string>,
): Promise<Answer<string>> {
  const { driver } = turn;
  const preferred = preferredId(turn);
  if (preferred === undefined || avoid.has(preferred)) return driver.propose([...avoid]);
  const proposal = await driver.propose([...avoid], preferred);
  const isOther = proposal.ok && proposal.value !== preferred;
  const doubt = isOther ? await preferredFailure(turn, desired, preferred) : undefined;
  return doubt === undefined ? proposal : failed(doubt);
}

/**
 * Somebody took the preferred id. If the last list does not show who, it may be another run of this
 * installation, which creates the same VM at this moment: then no second one is created.
 */
async function preferredFailure(
  turn: ConnectedTurn,
  desired: Desired,
  externalId: string,
): Promise<Failure | undefined> {
  const { inventory, name } = turn.connection;
  if (inventory.machines.some((row) => row.externalId === externalId)) return undefined;
  const node = turn.node ?? "";
  const seen = await lookAt(turn, desired, { externalId, node });
  if (seen.is === "failed") return seen.failure;
  if (guard("preferred-id-of-others", seen.is === "nothing")) return undefined;
  return {
    category: "UnknownOutcome",
    message: `A VM of this object is being created as ${externalId} on ${name} by another run.`,
    remedy: "Berth takes it over when the next list of the hypervisor shows it.",
  };
}

/** Ids that somebody has, had lately, or is about to reserve. */
export function idsToAvoid(turn: ConnectedTurn): string[] {
  return [...turn.deps.ledger.idsOn(turn.connection.systemId), ...othersChoices(turn)];
}

/** Ids that other VMs are about to reserve. */
function othersChoices({ key, deps, connection }: ConnectedTurn): string[] {
  const others = deps.lookups.vms.byIndex("hypervisor", connection.name);
  return others.flatMap(({ metadata, status }) => {
    const isOther = `${metadata.namespace ?? ""}/${metadata.name ?? ""}` !== key;
    return isOther && status?.externalId !== undefined ? [status.externalId] : [];
  });
}
