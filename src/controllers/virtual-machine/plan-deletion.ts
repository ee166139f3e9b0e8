import type { ClaimSpec } from "../../api/index.ts";
import type { Failure, Machine, SeenVolume } from "../../hypervisor/index.ts";
import { claimChange, withLeftovers } from "./plan-claim.ts";
import { planVmPowerOff, planVmResume } from "./plan-power.ts";
import { basisOf, stepOrWait, type Next, type PlanInput } from "./next.ts";

/** A machine that is ours and should go: let go, or off, accounted for and destroyed. */
export function planVmDeletion(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const { declared } = input;
  const change = claimChange(input, claim, machine);
  if (change !== undefined) return { do: "record", change };
  const at = { node: machine.node, version: machine.version };
  if (declared.fate === "Retain") return planVmRelease(input, claim, machine);
  if (declared.isProtected) return { do: "protect" };
  const strangers = machine.volumes.filter((volume) => volume.isOwn && !mayGo(claim, volume));
  if (strangers.length > 0) return { do: "fail", failure: unaccounted(claim, strangers) };
  if (machine.power === "Unknown") return { do: "wait", kind: "Task", name: "the power state" };
  const isStill = machine.power === "Stopped" || machine.power === "Suspended";
  if (!isStill) return planVmPowerOff(input, claim, machine);
  const found = accountFor(input, claim);
  if (found !== undefined) return found;
  const volumes = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const operation = { kind: "destroy", claim, at, volumes } as const;
  const intent = `Destroy the machine ${claim.externalId} with ${volumes.length} volumes.`;
  return stepOrWait(input, { name: "Destroy", operation, intent }, machine.lock);
}

function planVmRelease(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const found = accountFor(input, claim);
  if (found !== undefined) return found;
  // What is suspended takes no change at all, not even of its mark.
  if (machine.power === "Suspended") return planVmResume(input, claim, machine);
  const operation = { kind: "release", claim, at: basisOf(machine) } as const;
  const intent = "Let the machine go: it stays, and is no longer Berth's.";
  return stepOrWait(input, { name: "Release", operation, intent }, machine.lock);
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

/** Only what the Claim knows, and what the machine needs besides disks and keeps no data in. */
function mayGo(claim: ClaimSpec, { id }: SeenVolume): boolean {
  const known = claim.volumes?.find((volume) => volume.id === id);
  return known !== undefined && known.onDelete !== "Retain";
}

function unaccounted(claim: ClaimSpec, volumes: readonly SeenVolume[]): Failure {
  const ids = volumes.map(({ id }) => id).join(", ");
  return {
    category: "OrphanedVolumes",
    message:
      `Deleting the machine ${claim.externalId} would free volumes that have to stay: ` +
      `${ids}. Nothing was deleted.`,
    remedy:
      "Move these volumes to another machine on the hypervisor, or set onDelete: Delete for the " +
      "disks that may go, or set spec.deletionPolicy: Retain.",
  };
}
