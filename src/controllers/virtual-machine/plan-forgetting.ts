import type { ClaimSpec } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { Next, PlanInput } from "./next.ts";

type Owner = Pick<ClaimSpec["owner"], "namespace" | "name">;

/**
 * An object that is to go, and whose machine cannot be seen or is not provably its own. What is
 * asked of people who want to keep such an object is of no use here: there is one way to let go.
 */
export function planVmForgettable(
  { declared, seen }: PlanInput,
  claim: ClaimSpec,
  next: Next,
): Next {
  if (next.do !== "fail" || !declared.isDeleting) return next;
  if (seen.at === "unknown") return { ...next, failure: orForget(next.failure, claim.owner) };
  if (seen.at !== "foreign") return next;
  const remedy = `To let the object go and touch nothing that stands there: ${command(claim.owner)}`;
  return { ...next, failure: { ...next.failure, remedy } };
}

/** What to do where what it waits for never comes back, after what else there is to do. */
export function orForget(failure: Failure, owner: Owner): Failure {
  const { remedy = "" } = failure;
  const way = `If it is gone for good: ${command(owner)}`;
  return { ...failure, remedy: `${remedy} ${way}`.trim() };
}

function command({ namespace, name }: Owner): string {
  return `berth forget vm/${name} -n ${namespace} --reason TEXT`;
}
