import type { Claim } from "../../api/index.ts";
import { seedIdentity } from "../../hypervisor/index.ts";
import { isHeld, type Ledger } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isKeeper, type SweepInput } from "./plan.ts";

/**
 * Claims that are held for nothing: their object is gone, and a whole look shows neither the
 * machine nor a volume or a disc of it. Whoever was to let them go, an Orphan that a person
 * deleted, is gone too. Pure.
 */
export function claimsOfNothing({ claims, survey, isDeclared }: SweepInput): Claim[] {
  const ids = new Set([...survey.machines, ...survey.volumes].map(({ externalId }) => externalId));
  const volumes = new Set(survey.volumes.map(({ volume }) => volume));
  const seeds = new Set(survey.files.map(({ fileName }) => seedIdentity(fileName)));
  return claims.filter(({ spec }) => {
    if (!isHeld(spec) || isKeeper(spec) || isDeclared(spec)) return false;
    const isNamed = spec.volumes?.some(({ id }) => volumes.has(id)) === true;
    return !ids.has(spec.externalId) && !isNamed && !seeds.has(spec.identity);
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
  if (claim === undefined || !isHeld(claim.spec) || (await hasOwner(claim))) return;
  const seen = await driver.observe(claim.spec, {});
  if (seen.at !== "absent") return;
  const leftovers = await driver.leftovers(claim.spec);
  if (leftovers.ok && leftovers.value.length === 0) await ledger.retire(claim);
}
