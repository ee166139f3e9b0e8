import { guard } from "../../kernel/guard.ts";
import type { ClaimSpec } from "../../api/index.ts";
import type { Answer, Failure, Leftover } from "../../hypervisor/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Next } from "./next.ts";
import type { ConnectedTurn } from "./turn.ts";

/** Volumes under the Claim's id that nothing refers to, where the plan asks for them. */
export async function lookForLeftovers(
  turn: ConnectedTurn,
  claim: ClaimSpec,
  { everywhere }: Next & { do: "sweep" },
): Promise<Answer<readonly Leftover[]>> {
  const here = await turn.driver.leftovers(withOpenAllocation(claim, turn.deps.clock.nowMs()));
  if (!here.ok || everywhere !== true) return here;
  const elsewhere = await lookElsewhere(turn, claim);
  if (!elsewhere.ok) return elsewhere;
  // What all nodes share is seen by each of them.
  const byVolume = new Map([...elsewhere.value, ...here.value].map((one) => [one.volume, one]));
  return answered([...byVolume.values()]);
}

/** So long after a worker died, what its own children still write may appear. */
const lateMs = 5 * 60_000;

/** An allocation that was settled a moment ago counts as open: what it left may appear late. */
export function withOpenAllocation(claim: ClaimSpec, nowMs: number): ClaimSpec {
  const { allocation } = claim;
  const settledMs = Date.parse(allocation?.settledAt ?? "");
  if (allocation === undefined || !(nowMs - settledMs < lateMs)) return claim;
  const { settledAt: _recent, ...open } = allocation;
  return { ...claim, allocation: open };
}

/**
 * A machine may have been moved since it was last seen, and have left its volumes there. The Claim
 * speaks of the volumes of its own node: the same id on another one proves nothing, so there it is
 * asked for with a Claim that knows none. A node that cannot be asked makes the answer a failure.
 */
async function lookElsewhere(
  { driver, connection }: ConnectedTurn,
  claim: ClaimSpec,
): Promise<Answer<readonly Leftover[]>> {
  const found: Leftover[] = [];
  const { driver: _listed, ...known } = claim;
  for (const { name: node } of connection.inventory.nodes) {
    if (node === claim.node) continue;
    const there = await driver.leftovers(knownOn(node, known));
    if (!there.ok) return failed(notAsked(node, there.failure));
    found.push(...there.value);
  }
  return answered(found);
}

/** What the Claim knows of another node: an operation that was sent there, and what that left. */
function knownOn(node: string, { allocation, probableVolumes, ...known }: ClaimSpec): ClaimSpec {
  const isThere = guard("allocation-on-this-node", allocation?.node === node);
  return {
    ...known,
    node,
    volumes: [],
    otherVolumes: [],
    ...(isThere && allocation !== undefined ? { allocation } : {}),
    probableVolumes: probableVolumes?.filter((one) => one.node === node) ?? [],
  };
}

function notAsked(node: string, failure: Failure): Failure {
  const message = `Whether volumes of the machine are on the node ${node} is not known: `;
  return { ...failure, message: message + failure.message };
}
