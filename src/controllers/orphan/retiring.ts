import type { Claim } from "../../api/index.ts";
import { mayBeOurs, seedIdentity } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { isHeld, type Ledger } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { names, suspected, type SweepInput } from "./plan.ts";

/**
 * Claims that are held for nothing: their object is gone, and a complete survey shows neither the
 * VM nor a volume or an ISO of it. Whoever was to release them, an Orphan that a person deleted, is
 * gone too. A volume under the same id that the Claim does not name is somebody else's. Pure.
 */
export function claimsOfNothing({ claims, survey, isDeclared }: SweepInput): Claim[] {
  const ids = new Set(survey.machines.map(({ externalId }) => externalId));
  const seeds = new Set(survey.files.map(({ fileName }) => seedIdentity(fileName)));
  return claims.filter(({ spec }) => {
    if (!isHeld(spec) || !guard("retire-undeclared", !isDeclared(spec))) return false;
    const isNamed = survey.volumes.some((volume) => {
      return names(spec, volume) || suspected(spec, volume) !== undefined;
    });
    return (
      guard("retire-no-vm-listed", !ids.has(spec.externalId)) &&
      guard("retire-no-volume-listed", !isNamed) &&
      guard("retire-no-seed-listed", !seeds.has(spec.identity))
    );
  });
}

/** Since when each Claim was held for nothing in every look. */
export function planRetiring(
  claims: readonly Claim[],
  before: ReadonlyMap<string, number>,
  nowMs: number,
): Map<string, number> {
  return new Map(claims.map(({ metadata: { uid = "" } }) => [uid, before.get(uid) ?? nowMs]));
}

/** An id under which nothing seems to be, and how its owner is asked for at the server. */
interface Doubt {
  readonly externalId: string;
  readonly hasOwner: (claim: Claim) => Promise<boolean>;
}

/**
 * Proves once more that nothing is there, and that nobody holds the Claim; then it rests. An open
 * request may still have made something until the grace time was over.
 */
export async function retireUnlessThere(
  { driver, systemId }: Connection,
  ledger: Ledger,
  { externalId, hasOwner }: Doubt,
): Promise<void> {
  const claim = await ledger.read(systemId, externalId);
  if (claim === undefined || !guard("retire-held-claim", isHeld(claim.spec))) return;
  if (!guard("retire-ownerless-claim", !(await hasOwner(claim)))) return;
  const seen = await driver.observe(claim.spec, {});
  if (!guard("retire-absent-vm", seen.at === "absent")) return;
  const leftovers = await driver.leftovers(claim.spec);
  if (!leftovers.ok) return;
  const isNothingLeft = !leftovers.value.some(mayBeOurs);
  if (guard("retire-no-leftovers", isNothingLeft)) await ledger.retire(claim);
}
