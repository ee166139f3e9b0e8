import type { ClaimSpec } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { Found, Next, PlanInput } from "./next.ts";
import { planVmPower } from "./plan-power.ts";

export type Refusal = Next & { readonly do: "fail" };

const intentMax = 1000;

/**
 * What cannot be changed in place changes nothing of the form; but a machine that is off though it
 * is to run has nothing to do with that. Its power is kept as declared, and no restart is made for
 * changes that wait: they are of the form.
 */
export function planVmRefused(
  input: PlanInput,
  claim: ClaimSpec,
  { found, refusal }: { readonly found: Found; readonly refusal: Refusal },
): Next {
  if (refusal.failure.category !== "ReplacementRequired") return refusal;
  const machine = { ...found.machine, pending: [] };
  const power = planVmPower(input, claim, { ...found, machine, later: [] });
  return power === undefined ? refusal : withRefusal(power, refusal.failure);
}

/** Both are said where both are so. */
function withRefusal(power: Next, refused: Failure): Next {
  switch (power.do) {
    case "step": {
      const intent = `${power.step.intent} ${refused.message}`.slice(0, intentMax);
      return { ...power, step: { ...power.step, intent } };
    }
    case "wait":
      // A lock is known by its own words.
      return power.kind === "Lock"
        ? power
        : { ...power, name: `${power.name}. ${refused.message}` };
    case "fail":
      return { ...power, failure: joined(power.failure, refused) };
    default:
      return power;
  }
}

function joined(first: Failure, { category, message, remedy = "" }: Failure): Failure {
  const remedies = [first.remedy ?? "", remedy].filter((text) => text !== "").join(" ");
  return { category, message: `${first.message} ${message}`, remedy: remedies };
}
