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
  const here = await turn.driver.leftovers(claim);
  if (!here.ok || everywhere !== true) return here;
  const elsewhere = await lookElsewhere(turn, claim);
  if (!elsewhere.ok) return elsewhere;
  // What all nodes share is seen by each of them.
  const byVolume = new Map([...elsewhere.value, ...here.value].map((one) => [one.volume, one]));
  return answered([...byVolume.values()]);
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
  for (const { name: node } of connection.inventory.nodes) {
    if (node === claim.node) continue;
    const there = await driver.leftovers({ ...claim, node, volumes: [], preflightVolumes: [] });
    if (!there.ok) return failed(notAsked(node, there.failure));
    found.push(...there.value);
  }
  return answered(found);
}

function notAsked(node: string, failure: Failure): Failure {
  const message = `Whether volumes of the machine are on the node ${node} is not known: `;
  return { ...failure, message: message + failure.message };
}
