import type { Operation } from "../../hypervisor/index.ts";
import type { ConnectedTurn } from "./turn.ts";

/**
 * Writes into the Claim how large an operation is about to make a volume. A volume is told from
 * another that got its name by its size, and its VM may be gone before the new one was seen.
 */
export async function recordGrowth(turn: ConnectedTurn, operation: Operation): Promise<void> {
  const { claim, deps } = turn;
  if (claim === undefined || operation.kind !== "grow") return;
  const growsTo = String(operation.sizeBytes);
  const { volumes = [] } = claim.spec;
  const grown = volumes.find(({ role, disk, state }) => {
    return role === "Disk" && disk === operation.disk && state === "Attached";
  });
  if (grown === undefined || grown.growsTo === growsTo) return;
  const change = volumes.map((volume) => (volume === grown ? { ...volume, growsTo } : volume));
  turn.claim = await deps.ledger.record(claim, { volumes: change });
}
