import type { ClaimSpec } from "../../api/index.ts";
import type { Machine, SeenVolume } from "../../hypervisor/index.ts";
import { claimChange, withLeftovers } from "./plan-claim.ts";
import { planVmHandOver, planVmTakenMeanwhile } from "./plan-hand-over.ts";
import { planVmAwake } from "./plan-memory.ts";
import { planVmPowerOff, planVmResume } from "./plan-power.ts";
import { planVmSeedLoose } from "./plan-seed.ts";
import {
  basisOf,
  isUnsettled,
  stepOrWait,
  waitForOpen,
  type Next,
  type PlanInput,
} from "./next.ts";

/** A machine that is ours and should go: let go, or off, accounted for and destroyed. */
export function planVmDeletion(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const { declared } = input;
  const change = claimChange(input, claim, machine);
  if (change !== undefined) return { do: "record", change };
  const at = { node: machine.node, version: machine.version };
  if (declared.fate === "Retain") return planVmRelease(input, claim, machine);
  if (declared.isProtected) return { do: "protect" };
  const stays = machine.volumes.filter((volume) => volume.isOwn && !mayGo(claim, volume));
  const still = planVmStill(input, claim, { machine, keeps: stays.length > 0 });
  if (still !== undefined) return still;
  const handed =
    planVmTakenMeanwhile(input, { claim, machine }) ??
    planVmHandOver(input, { claim, machine }, stays);
  if (handed !== undefined) return handed;
  const found = accountFor(input, claim);
  if (found !== undefined) return found;
  if (isKeeperComing(input)) return waitForOpen(input);
  const volumes = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const operation = { kind: "destroy", claim, at, volumes } as const;
  const intent = `${destroyIntent(claim.externalId)} with ${volumes.length} volumes.`;
  return stepOrWait(input, { name: "Destroy", operation, intent }, machine.lock);
}

/** How the intent begins by which a machine is destroyed. */
export function destroyIntent(externalId: string): string {
  return `Destroy the machine ${externalId}`;
}

/** Off; or asleep, if all that it sleeps on goes with it. */
function planVmStill(
  input: PlanInput,
  claim: ClaimSpec,
  { machine, keeps }: { readonly machine: Machine; readonly keeps: boolean },
): Next | undefined {
  switch (machine.power) {
    case "Unknown":
      return { do: "wait", kind: "Task", name: "the power state" };
    case "Stopped":
      return undefined;
    case "Suspended":
      // Nothing can be taken off it, and what its memory has not written yet belongs on the disk.
      return keeps ? planVmResume(input, claim, machine) : undefined;
    case "Running":
    case "Paused":
      return planVmAwake(input, claim, machine) ?? planVmPowerOff(input, claim, machine);
  }
}

function planVmRelease(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  if (isKeeperComing(input)) return waitForOpen(input);
  // Left as it is, it could not be written to, or would start from that memory one day.
  const awake = planVmAwake(input, claim, machine) ?? accountFor(input, claim);
  const found = awake ?? planVmSeedLoose(input, claim, machine);
  if (found !== undefined) return found;
  // What is suspended takes no change, not even of its mark; and to wake it would be more than to
  // let it go. So the Claim alone says that it was.
  if (machine.power === "Suspended") {
    return isUnsettled(input) ? waitForOpen(input) : { do: "finish", how: "Release" };
  }
  const operation = { kind: "release", claim, at: basisOf(machine) } as const;
  const intent = "Let the machine go: it stays, and is no longer Berth's.";
  return stepOrWait(input, { name: "Release", operation, intent }, machine.lock);
}

/** A keeper that is not needed any more, and whose creation may still arrive. */
function isKeeperComing(input: PlanInput): boolean {
  const isThere = input.keeper?.seen.at === "ours";
  return isUnsettled(input) && input.open?.step === "MakeKeeper" && !isThere;
}

/**
 * What a failed step left under the id can be proven ours only while the marked machine stands. So
 * it goes into the Claim before the machine goes.
 */
function accountFor({ leftovers }: PlanInput, claim: ClaimSpec): Next | undefined {
  if (leftovers === undefined) return { do: "sweep" };
  const volumes = withLeftovers(claim, leftovers);
  return volumes === undefined ? undefined : { do: "record", change: { volumes } };
}

/**
 * Only what the Claim knows, and what the machine needs besides disks and keeps no data in. A named
 * disk goes only if a spec said so: after the restoration of an old backup none may have.
 */
function mayGo(claim: ClaimSpec, { id }: SeenVolume): boolean {
  const known = claim.volumes?.find((volume) => volume.id === id);
  if (known?.disk !== undefined) return known.onDelete === "Delete";
  return known !== undefined && known.onDelete !== "Retain";
}
