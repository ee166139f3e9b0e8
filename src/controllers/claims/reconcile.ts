import type { Claim } from "../../api/index.ts";
import type { Informer } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import type { Ledger } from "./ledger.ts";

export interface ClaimDeps {
  readonly claims: Informer<Claim>;
  readonly ledger: Ledger;
  readonly clock: Clock;
}

/** Deletes a Claim whose quarantine is over. All others are none of its business. */
export async function reconcileClaim(key: string, deps: ClaimDeps): Promise<Outcome> {
  const claim = deps.claims.get(key);
  if (claim === undefined || claim.spec.state !== "Quarantined") return settled;
  const restMs = Date.parse(claim.spec.quarantineUntil ?? "") - deps.clock.nowMs();
  if (restMs > 0) return again("Quarantined", restMs);
  await deps.ledger.remove(claim);
  return settled;
}
