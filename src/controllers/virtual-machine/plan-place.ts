import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { basisOf, stepOrWait, wasJustDone, type Found, type Next, type PlanInput } from "./next.ts";
import { holdsSeed } from "./plan-seed.ts";
import type { Step } from "./steps.ts";

/** Where the machine is and who watches over it: its node, its pool, high availability. */
export function planVmPlace(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const { machine } = found;
  const isGuarded = input.declared.shape.highAvailability !== undefined;
  // How it is watched over is seen only together with its power.
  if (isGuarded && machine.power === "Unknown" && input.isPowerUnasked) return { do: "look" };
  const regroup = regroupStep(input, claim, machine);
  const step = moveStep(input, claim, machine) ?? regroup ?? guardStep(input, claim, found);
  if (step === undefined) return undefined;
  const isDone = step === regroup && isUnseen(input, step);
  if (isDone) return { do: "wait", kind: "Task", name: "a look at its pool" };
  return stepOrWait(input, step, machine.lock);
}

/** Only a glance shows the pool, some time later: until then nobody has seen it there. */
function isUnseen(input: PlanInput, step: Step): boolean {
  return wasJustDone(input, step) && input.seenPool?.isOld === true;
}

/** What keeps a VM where it is, for people: a disc in its drive is of one node, and stays there. */
export function moveWaits({ declared }: PlanInput, claim: ClaimSpec, machine: Machine): string[] {
  const { movesTo: to } = declared;
  const isWaiting = to !== undefined && to !== machine.node && holdsSeed(claim, machine);
  return isWaiting ? ["placement, until its guest has read the first-boot disc"] : [];
}

function moveStep(input: PlanInput, claim: ClaimSpec, machine: Machine): Step | undefined {
  const { movesTo: to } = input.declared;
  if (to === undefined || to === machine.node || !claim.everExisted) return undefined;
  if (moveWaits(input, claim, machine).length > 0) return undefined;
  const operation = { kind: "migrate", claim, at: basisOf(machine), to } as const;
  return { name: "Migrate", operation, intent: `Move the machine to the node ${to}.` };
}

function regroupStep(
  { declared, seenPool }: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Step | undefined {
  const { pool } = declared;
  if (pool === undefined || seenPool === undefined || seenPool.name === pool) return undefined;
  const intent = `Put the machine into the pool ${pool}.`;
  if (!claim.everExisted) return undefined;
  const operation = { kind: "regroup", claim, at: basisOf(machine), pool } as const;
  return { name: "SetPool", operation, intent };
}

function guardStep(
  { declared }: PlanInput,
  claim: ClaimSpec,
  { machine, differences }: Found,
): Step | undefined {
  const { highAvailability } = declared.shape;
  const isOther = differences.some(({ path }) => path.startsWith("highAvailability"));
  if (highAvailability === undefined || !isOther) return undefined;
  const power = declared.power === "Running" ? "Running" : "Stopped";
  const at = basisOf(machine);
  const operation = { kind: "guard", claim, at, highAvailability, power } as const;
  const intent = `Set high availability to ${JSON.stringify(highAvailability)}.`;
  return { name: "SetHighAvailability", operation, intent };
}
