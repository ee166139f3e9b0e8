import type { Basis, Begun, ClaimedMachine, Leftover, Mark } from "../../hypervisor/index.ts";
import { disagreement } from "./model-identity.ts";
import { changed, type ModelMachine, type ModelState, refused } from "./model-state.ts";

/** A VM that is proven ours, as it was seen when the operation was decided, and not locked. */
export interface Owned {
  readonly machine: ModelMachine;
  readonly mark: Mark;
}

export interface Target {
  readonly claim: ClaimedMachine;
  readonly at: Basis;
}

export function standing(state: ModelState, target: Target): Owned | Begun {
  const { claim, at } = target;
  const machine = state.machines.get(claim.externalId);
  if (machine === undefined || machine.node !== at.node) return changed("it is not there");
  if (machine.husk !== undefined) return changed("nothing is written in it");
  const { mark } = machine;
  const reason = disagreement(machine, claim);
  if (mark === undefined || reason !== undefined) return notOurs(claim, reason ?? "MarkLost");
  return unchanged(machine, at) ?? { machine, mark };
}

/** What keeps a VM from being changed now, whoever it belongs to. */
export function unchanged(machine: ModelMachine, at: Basis): Begun | undefined {
  if (String(machine.version) !== at.version) return changed("another version");
  if (machine.lock !== undefined) return { outcome: "blocked", waitsFor: machine.lock.detail };
  return undefined;
}

export function notOurs({ externalId }: ClaimedMachine, reason: string): Begun {
  return refused("IdentityConflict", `VM ${externalId} is not provably ours: ${reason}.`);
}

/** The proofs by which a volume is ours to remove. */
export const ours: ReadonlySet<Leftover["proof"]> = new Set(["Claimed", "TaskLogged"]);
