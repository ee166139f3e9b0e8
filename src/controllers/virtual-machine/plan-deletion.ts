import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { claimChange, withLeftovers } from "./plan-claim.ts";
import { withoutGone } from "./plan-gone-volumes.ts";
import { planVmHandOver, planVmTakenMeanwhile } from "./plan-hand-over.ts";
import { probableChange } from "./plan-leftovers.ts";
import { planVmAwake } from "./plan-memory.ts";
import { planVmPowerOff, planVmResume } from "./plan-power.ts";
import { planVmVolumesInDoubt } from "./plan-foreign-volumes.ts";
import { planVmSeedLoose } from "./plan-seed.ts";
import { mayGoWithVm } from "./volume-ownership.ts";
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
  if (!guard("deletion-vm-not-retained", declared.fate !== "Retain")) {
    return planVmRelease(input, claim, machine);
  }
  if (!guard("deletion-unprotected", !declared.isProtected)) return { do: "protect" };
  const doubted = planVmVolumesInDoubt(input, claim, machine);
  if (doubted !== undefined) return doubted;
  const stays = machine.volumes.filter((volume) => {
    return volume.isOwn && !guard("deletion-volume-may-go", mayGoWithVm(claim, volume));
  });
  const still = planVmStill(input, claim, { machine, keeps: stays.length > 0 });
  if (still !== undefined) return still;
  const handed =
    planVmTakenMeanwhile(input, { claim, machine }) ??
    planVmHandOver(input, { claim, machine }, stays);
  if (handed !== undefined) return handed;
  const found = accountFor(input, claim, machine);
  if (found !== undefined) return found;
  if (isKeeperComing(input)) return waitForOpen(input);
  const volumes = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const operation = { kind: "destroy", claim, at, volumes } as const;
  const intent = `Destroy the machine ${claim.externalId} with ${volumes.length} volumes.`;
  return stepOrWait(input, { name: "Destroy", operation, intent }, machine.lock);
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
  const awake = planVmAwake(input, claim, machine) ?? accountFor(input, claim, machine);
  const found = awake ?? planVmSeedLoose(input, claim, machine);
  if (found !== undefined) return found;
  // What is suspended takes no change, not even of its mark; and to wake it would be more than to
  // let it go. So the Claim alone says that it was.
  if (machine.power === "Suspended") {
    const isSettled = guard("release-suspended-settled", !isUnsettled(input));
    return isSettled ? { do: "finish", how: "Release" } : waitForOpen(input);
  }
  const operation = { kind: "release", claim, at: basisOf(machine) } as const;
  const intent = "Let the machine go: it stays, and is no longer Berth's.";
  return stepOrWait(input, { name: "Release", operation, intent }, machine.lock);
}

/** A keeper that is not needed any more, and whose creation may still arrive. */
function isKeeperComing(input: PlanInput): boolean {
  const isThere = input.keeper?.seen.at === "ours";
  return isUnsettled(input) && input.open?.step === "CreateDiskHolder" && !isThere;
}

/** What a failed step left under the id is recorded in the Claim before the VM is destroyed. */
function accountFor(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const { leftovers, nowMs } = input;
  if (leftovers === undefined) return { do: "sweep" };
  const left = withoutGone(input, claim, machine);
  if (left !== undefined) return { do: "record", change: { volumes: left } };
  const volumes = withLeftovers(claim, leftovers);
  const probable = probableChange(claim, leftovers, nowMs);
  if (volumes === undefined && probable === undefined) return undefined;
  return { do: "record", change: { ...(volumes && { volumes }), ...probable } };
}
