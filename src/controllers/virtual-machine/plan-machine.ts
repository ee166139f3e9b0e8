import type { ClaimSpec } from "../../api/index.ts";
import { shapeDifferences } from "../../hypervisor/index.ts";
import type { Difference, Failure, Machine, NewDisk, SeenDisk } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { fieldsChangedSince, originsChangedSince } from "./created-from.ts";
import { lostDiskFailure } from "./lost-disk.ts";
import { claimChange } from "./plan-claim.ts";
import { driftOf } from "./plan-drift.ts";
import { lostDisks, planVmDisks } from "./plan-disks.ts";
import { hasVolumesInDoubt, planVmForeignVolumes } from "./plan-foreign-volumes.ts";
import { planVmGoneVolumes } from "./plan-gone-volumes.ts";
import { planVmTakenBack } from "./plan-hand-over.ts";
import { planVmKeeperClosed } from "./plan-keeper.ts";
import { planVmAllocationSettled } from "./plan-leftovers.ts";
import { planVmAwake } from "./plan-memory.ts";
import { moveWaits, planVmPlace } from "./plan-place.ts";
import { planVmPower } from "./plan-power.ts";
import { planVmRefused, type Refusal } from "./plan-refused.ts";
import { planVmSeed, planVmSeedRead } from "./plan-seed.ts";
import { planVmShape } from "./plan-shape.ts";
import { sizeText } from "./quantities.ts";
import { basisOf, changeClass, isOff, unlocking } from "./next.ts";
import type { Found, Next, PlanInput } from "./next.ts";

/** A machine that is ours and should stand: disks, sizes, shape, power, in this order. */
export function planVmMachine(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const known = planVmKnown(input, claim, machine);
  if (known !== undefined) return known;
  const found = compare(input, claim, machine);
  const refusal = refusalOf(input, claim, found);
  if (refusal !== undefined) return planVmRefused(input, claim, { found, refusal });
  const isLeftAlone = isDriftLeftAlone(input, claim);
  const mayPower = !isLeftAlone || input.declared.wantsRestart;
  return (
    planVmSeedRead(input, claim, machine) ??
    (isLeftAlone ? undefined : planVmForm(input, claim, found)) ??
    (mayPower ? planVmPower(input, claim, found) : undefined) ??
    planVmKeeperClosed(input, claim) ??
    planVmRest(input, claim, {
      found: { ...found, later: [...found.later, ...waits(input, claim, found)] },
      isLeftAlone,
    })
  );
}

/** A dead lock of ours goes first, where it can be cleared: nothing else can be done before. */
function planVmLock(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const { lock } = machine;
  if (lock?.state !== "Dead" || input.mayUnlock !== true) return undefined;
  return unlocking(input, { claim, at: basisOf(machine) }, lock);
}

/** What was seen is written down before anything is done. */
function planVmKnown(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const change = claimChange(input, claim, machine);
  if (change !== undefined) return { do: "record", change };
  const { createdFrom } = input.declared;
  // One that was made before this was written down, or that was taken over, counts from now on.
  if (claim.everExisted && claim.createdFrom === undefined && createdFrom !== undefined) {
    return { do: "record", change: { createdFrom } };
  }
  return (
    planVmLock(input, claim, machine) ??
    planVmAllocationSettled(input, claim, machine.lock) ??
    planVmAwake(input, claim, machine) ??
    planVmTakenBack(input, { claim, machine }) ??
    planVmForeignVolumes(input, claim, machine) ??
    planVmGoneVolumes(input, claim, machine)
  );
}

function planVmRest(
  { declared }: PlanInput,
  claim: ClaimSpec,
  { found, isLeftAlone }: { readonly found: Found; readonly isLeftAlone: boolean },
): Next {
  if (!claim.everExisted) {
    const { createdFrom } = declared;
    return { do: "record", change: { everExisted: true, ...(createdFrom && { createdFrom }) } };
  }
  const { machine, later } = found;
  const pending = isLeftAlone ? machine.pending : [...new Set([...machine.pending, ...later])];
  const isApplied = isLeftAlone || later.length === 0;
  const changed = originsChangedSince(claim.createdFrom ?? [], declared.createdFrom ?? []);
  const told = changed.length === 0 ? {} : { changed };
  const drift = isLeftAlone ? driftOf(declared, found) : [];
  return { do: "rest", drift, pending, isApplied, ...told };
}

/** What differs; and of that, what has to wait until the machine is off. */
export function compare(input: PlanInput, claim: ClaimSpec, machine: Machine): Found {
  const differences = shapeDifferences(input.declared.shape, machine.shape);
  const isLater = ({ path }: Difference): boolean => {
    // What is suspended keeps its form with its memory.
    if (machine.power === "Suspended") return true;
    return !isOff(claim, machine) && changeClass(input, path, machine) === "PowerOff";
  };
  const later = differences.filter(isLater);
  return { machine, differences, later: later.map(({ path }) => path) };
}

/** What differs was not edited, so somebody changed it by hand; and that is not to be corrected. */
export function isDriftLeftAlone({ declared }: PlanInput, claim: ClaimSpec): boolean {
  return claim.everExisted && !declared.isEdited && declared.driftPolicy !== "Correct";
}

function planVmForm(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  if (found.machine.power === "Suspended") return undefined;
  return (
    planVmSeed(input, claim, found.machine) ??
    planVmOwnDisks(input, claim, found) ??
    planVmShape(input, claim, found) ??
    planVmPlace(input, claim, found)
  );
}

/** No disk is touched while nobody can tell whose one of them is. */
function planVmOwnDisks(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const isClear = !hasVolumesInDoubt(input, claim, found.machine);
  return guard("disks-not-in-doubt", isClear) ? planVmDisks(input, claim, found) : undefined;
}

function waits(input: PlanInput, claim: ClaimSpec, found: Found): string[] {
  return [...frozen(input, claim, found), ...moveWaits(input, claim, found.machine)];
}

/** What is suspended keeps its form with its memory: what it lacks waits until it has run again. */
function frozen(input: PlanInput, claim: ClaimSpec, found: Found): string[] {
  const { machine } = found;
  if (machine.power !== "Suspended" || found.later.length > 0) return [];
  const off = { ...found, machine: { ...machine, power: "Stopped" } } as const;
  return planVmForm(input, claim, off) === undefined ? [] : ["disks and placement"];
}

/**
 * What cannot be changed in place is refused whole, before anything of it is applied. Where nobody
 * edited the object, somebody changed the machine: then there are no fields to put back.
 */
function refusalOf(input: PlanInput, claim: ClaimSpec, found: Found): Refusal | undefined {
  // What is not to be put back is not refused for being impossible to put back.
  if (isDriftLeftAlone(input, claim)) return undefined;
  const { machine } = found;
  const { disks, isEdited } = input.declared;
  const sizes = shrinkingDisks(disks, machine);
  const fields = [
    ...sizes.map(sizeField),
    ...(claim.everExisted ? fixedFields(input, claim, found) : []),
  ];
  const [lost] = claim.everExisted ? lostDisks(disks, claim, machine) : [];
  if (lost !== undefined && !guard("disk-not-lost", lost === undefined)) {
    return { do: "fail", failure: lostDiskFailure({ claim, machine }, lost) };
  }
  if (guard("change-possible-in-place", fields.length === 0)) return undefined;
  if (!claim.everExisted) return { do: "fail", failure: tooSmall(fields) };
  const named = fields.join(", ");
  return {
    do: "fail",
    failure: {
      category: "ReplacementRequired",
      message: isEdited
        ? `This cannot be changed in place: ${named}. Nothing was applied but the power state.`
        : `Somebody changed this by hand, and it cannot be put back in place: ${named}.`,
      remedy: replacementRemedy(sizes, waysBack(input, fields.length > sizes.length)),
    },
  };
}

/** A disk that was grown stays as large: what is left to do is to say so. */
function replacementRemedy(sizes: readonly SeenDisk[], back: readonly string[]): string {
  const told = sizes.map(({ name = "", sizeBytes }) => {
    return `declare size: ${sizeText(sizeBytes)} for the disk ${name}`;
  });
  const ways = [...told, ...back, "make a new VirtualMachine"].join(", or ");
  return `${ways.charAt(0).toUpperCase()}${ways.slice(1)}.`;
}

function waysBack({ declared }: PlanInput, isBesideSizes: boolean): string[] {
  if (declared.isEdited) return ["put the fields back"];
  return isBesideSizes ? ["change it back on the hypervisor"] : [];
}

/** The source and the first boot's data count only until it stood; of the rest the driver knows. */
function fixedFields(
  input: PlanInput,
  { createdFrom = [] }: ClaimSpec,
  { machine, differences }: Found,
): string[] {
  const anew = fieldsChangedSince(createdFrom, input.declared.createdFrom ?? createdFrom);
  const isToldAnew = anew.some((field) => field.startsWith("spec.cloudInit"));
  // What the hypervisor shows may differ without an edit: somebody changed it there.
  const isFirstBoot = differences.some(({ path }) => path.startsWith("cloudInit"));
  const fixed = differences.filter(({ path }) => {
    return !path.startsWith("cloudInit") && changeClass(input, path, machine) === "Impossible";
  });
  const told = isFirstBoot && !isToldAnew ? ["spec.cloudInit"] : [];
  return [...anew, ...told, ...fixed.map(({ path }) => `spec.${path}`)];
}

/** A new disk is as large as what fills it, and that is known only when it was filled. */
function tooSmall(fields: readonly string[]): Failure {
  return {
    category: "ConfigurationError",
    message: `A disk cannot be smaller than what fills it: ${fields.join(", ")}.`,
    remedy: "Declare it at least so large. Berth goes on by itself.",
  };
}

/** The disks that are larger than declared, as they were seen. */
function shrinkingDisks(disks: readonly NewDisk[], machine: Machine): SeenDisk[] {
  return disks.flatMap(({ name, sizeBytes }) => {
    const seen = machine.disks.find((disk) => disk.name === name);
    return seen && sizeBytes !== undefined && sizeBytes < seen.sizeBytes ? [seen] : [];
  });
}

function sizeField({ name = "", sizeBytes }: SeenDisk): string {
  return `spec.disks[${name}].size (it has ${sizeText(sizeBytes)})`;
}
