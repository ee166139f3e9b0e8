import type { ClaimSpec } from "../../api/index.ts";
import type {
  Failure,
  ForeignSeen,
  Leftover,
  Lock,
  Machine,
  Seen,
} from "../../hypervisor/index.ts";
import { isProvenOurs, proposeNames } from "../../hypervisor/index.ts";
import { withOrigins } from "./created-from.ts";
import { listText } from "../../kernel/list-text.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";
import { deadLock } from "../failures/index.ts";
import { basisOf, isUnsettled, stepOrWait, waitForLock, waitForOpen } from "./next.ts";
import type { Cloning, Next, PlanInput } from "./next.ts";
import { planVmDeletion } from "./plan-deletion.ts";
import { planVmForgettable } from "./plan-forgetting.ts";
import { planVmKeeperClosed } from "./plan-keeper.ts";
import { planVmAllocationSettled, planVmNamedSettled, probableChange } from "./plan-leftovers.ts";
import { planVmMachine } from "./plan-machine.ts";
import { planVmMissing } from "./plan-missing.ts";
import { planVmResume } from "./plan-power.ts";
import { planVmRestamp } from "./plan-restamp.ts";
import { planVmSeedGone } from "./plan-seed.ts";
import type { Step } from "./steps.ts";

/** So many empty reservations are left behind; then a person has to look. */
const husksMax = 3;

/** Decides the one next thing. Pure: every branch is here and in the two plans beside it. */
export function planVm(input: PlanInput): Next {
  const next = planVmAt(input);
  // A keeper that was claimed is closed before the object that claimed it goes.
  const { claim } = input;
  if (claim === undefined) return next;
  const closed = next.do === "finish" ? planVmKeeperClosed(input, claim) : undefined;
  return closed ?? planVmForgettable(input, claim, next);
}

function planVmAt(input: PlanInput): Next {
  const { declared, claim, seen } = input;
  if (claim === undefined) {
    return declared.isDeleting ? { do: "finish", how: "Nothing" } : { do: "reserve" };
  }
  switch (seen.at) {
    case "unknown":
      return { do: "fail", failure: seen.failure };
    case "absent":
      return planVmAbsent(input, claim);
    case "opaque":
      return planVmOpaque(input, claim, seen);
    case "foreign":
      return planVmForeign(input, claim, seen);
    case "ours":
      return planVmNamedSettled(input, claim) ?? planVmOurs(input, claim, seen.machine);
  }
}

function planVmOurs(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  if (!input.declared.isDeleting) return planVmMachine(input, claim, machine);
  return planVmUnprotected(input, claim, machine) ?? planVmDeletion(input, claim, machine);
}

/**
 * A hypervisor keeps what it was told to protect, also from us. What the object itself unprotected
 * is unprotected there; a protection that only a person set there is that person's to lift.
 */
function planVmUnprotected(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const { fate, isProtected, liftsProtection } = input.declared;
  // What was seen is in the Claim before anything is done.
  if (fate !== "Destroy" || isProtected || claim.state !== "Bound") return undefined;
  if (machine.shape.deletionProtection !== true) return undefined;
  if (!guard("protection-lifted-by-object", liftsProtection === true)) {
    return { do: "fail", failure: protectedThere(claim) };
  }
  // What is suspended takes no change.
  if (machine.power === "Suspended") return planVmResume(input, claim, machine);
  const shape = { deletionProtection: false };
  const operation = { kind: "configure", claim, at: basisOf(machine), shape } as const;
  const intent = "Lift the protection, as the object says.";
  return stepOrWait(input, { name: "Configure", operation, intent }, machine.lock);
}

function protectedThere({ externalId, hypervisor }: ClaimSpec): Failure {
  return {
    category: "ConfigurationError",
    message: `Somebody protected the machine ${externalId} on ${hypervisor.name}: it is kept.`,
    remedy: "Switch its protection off there, or set spec.deletionProtection to false.",
  };
}

function planVmAbsent(input: PlanInput, claim: ClaimSpec): Next {
  const { declared } = input;
  // A request that was sent just before a crash may still land.
  if (!guard("absent-vm-settled", !isUnsettled(input))) return waitForOpen(input);
  // The empty reservation is gone: one that appears under the id from now on may be anybody's.
  if (claim.workerNeverStarted === true) {
    return { do: "record", change: { workerNeverStarted: false } };
  }
  if (declared.isDeleting) {
    return planVmSeedGone(input, claim, claim.node) ?? planVmLeftovers(input, claim);
  }
  const mayCreate = !claim.everExisted || declared.onMissing === "Recreate";
  if (!guard("recreate-asked-for", mayCreate)) {
    return planVmMissing(input, claim);
  }
  return planVmSaidAnew(input, claim) ?? planVmMade(input, claim);
}

/** What is made anew is made from what is said now. */
function planVmSaidAnew({ declared }: PlanInput, claim: ClaimSpec): Next | undefined {
  const { createdFrom = claim.createdFrom } = declared;
  if (!claim.everExisted || createdFrom === undefined) return undefined;
  const known = withOrigins(claim.createdFrom ?? [], createdFrom);
  const isSame = jsonEqual(known, claim.createdFrom ?? []);
  return isSame ? undefined : { do: "record", change: { createdFrom: known } };
}

function planVmMade(input: PlanInput, claim: ClaimSpec): Next {
  if (hasNoVolumes(claim)) return planVmCopySettled(input, claim) ?? planVmCreate(input, claim);
  return planVmSeedGone(input, claim, claim.node) ?? planVmAnew(claim, input.leftovers);
}

function hasNoVolumes({ volumes = [] }: ClaimSpec): boolean {
  return volumes.length === 0;
}

/** A copy that failed may have left volumes, and the next one would leave more. */
function planVmCopySettled(input: PlanInput, claim: ClaimSpec): Next | undefined {
  return hasNoVolumes(claim) ? planVmAllocationSettled(input, claim, undefined) : undefined;
}

function planVmCreate(input: PlanInput, claim: ClaimSpec): Next {
  const { declared } = input;
  const { bootOrder: _later, ...said } = declared.shape;
  // A new machine starts with its node unless it says otherwise; an older one keeps what it has.
  const shape = { startOnBoot: true, ...said };
  const { node, pool, clone } = declared;
  if (clone !== undefined) return planVmClone(input, claim, clone);
  const create = { kind: "create", claim, node, shape, ...(pool ? { pool } : {}) } as const;
  const intent = `Make the machine ${claim.externalId} on node ${node}.`;
  return { do: "step", step: { name: "Create", operation: create, intent, ...again(claim) } };
}

/** A VM that existed is created again because the spec says so. */
function again({ everExisted }: ClaimSpec): Pick<Step, "fields"> {
  return everExisted ? { fields: ["onMissing"] } : {};
}

/** The hypervisor's own copy: it bears no mark until it was stamped. */
function planVmClone(
  { declared: { node, pool, shape, disks } }: PlanInput,
  claim: ClaimSpec,
  { source, mode, snapshot, disk }: Cloning,
): Next {
  const operation = {
    kind: "clone",
    claim,
    node,
    source,
    mode,
    ...(shape.name === undefined ? {} : { name: shape.name }),
    ...(snapshot === undefined ? {} : { snapshot }),
    ...(pool === undefined ? {} : { pool }),
  } as const;
  const intent = `Make the machine ${claim.externalId} as a copy of ${source} on node ${node}.`;
  const copiesTo = disks.find(({ name }) => name === disk)?.storage;
  const copy = { name: "Clone", operation, intent, ...(copiesTo ? { copiesTo } : {}) } as const;
  return { do: "step", step: { ...copy, ...again(claim) } };
}

/** A copy that our own task made under our id: it becomes ours by its mark. */
function planVmUnstamped(
  input: PlanInput,
  claim: ClaimSpec,
  { machine }: ForeignSeen,
): Next | undefined {
  const { clone, shape } = input.declared;
  if (machine === undefined || clone === undefined) return undefined;
  const operation = {
    kind: "stamp",
    claim,
    at: basisOf(machine),
    disks: [{ name: clone.disk, boots: true }, ...clone.disks],
    networks: (shape.networks ?? []).map(({ name }) => ({ name })),
    cloned: { from: clone.source },
  } as const;
  const intent = `Write Berth's mark into the copy ${claim.externalId}.`;
  return stepOrWait(input, { name: "WriteMarker", operation, intent }, machine.lock);
}

/** Before it is made anew the Claim forgets the volumes that went with it, if they really did. */
function planVmAnew(claim: ClaimSpec, leftovers: readonly Leftover[] | undefined): Next {
  if (leftovers === undefined) return { do: "sweep", everywhere: true };
  const ids = placesOf(claim, leftovers);
  if (guard("recreate-volumes-gone", ids.length === 0)) {
    return { do: "record", change: { volumes: [] } };
  }
  return {
    do: "fail",
    failure: {
      category: "OrphanedVolumes",
      message: `The machine ${claim.externalId} is gone, its volumes are not: ${listText(ids)}.`,
      remedy: "Save or remove them on the hypervisor; then the machine is made anew.",
    },
  };
}

function placesOf(claim: ClaimSpec, leftovers: readonly Leftover[]): string[] {
  return leftovers.map(({ volume, node }) => {
    return node === claim.node ? volume : `${volume} on the node ${node}`;
  });
}

/**
 * A machine that others took away may have been moved before. One that was just destroyed was seen
 * on its node until then, and one that never stood was never anywhere else.
 */
function searchFor({ lastDone }: PlanInput, { everExisted }: ClaimSpec): Next {
  const isDestroyed = lastDone?.step === "Destroy";
  return everExisted && !isDestroyed ? { do: "sweep", everywhere: true } : { do: "sweep" };
}

/** What is provably ours goes one by one; what is not stays, and is no reason to stay. */
function planVmLeftovers(input: PlanInput, claim: ClaimSpec): Next {
  const { declared, leftovers } = input;
  if (leftovers === undefined) return searchFor(input, claim);
  const probable = probableChange(claim, leftovers, input.nowMs);
  if (probable !== undefined) return { do: "record", change: probable };
  const own = leftovers.filter((one) => guard("leftover-proven-ours", isProvenOurs(one)));
  // Somebody took the machine away and left its disks: Retain means them above all.
  const isAllKept = declared.fate === "Retain" && claim.everExisted;
  const kept = new Set(
    claim.volumes?.filter(({ onDelete }) => onDelete === "Retain").map(({ id }) => id),
  );
  const mayGo = guard("leftovers-vm-not-retained", !isAllKept);
  const mayRemove = (volume: string): boolean => {
    return guard("leftover-disk-not-retained", !kept.has(volume));
  };
  const going = mayGo ? own.find(({ volume }) => mayRemove(volume)) : undefined;
  // The Claim goes on saying whose the volumes were that stay.
  if (going === undefined) {
    const doubted = leftovers.filter(({ proof }) => proof === "Probable");
    const isNoneLeft = own.length + doubted.length === 0;
    const how = guard("retire-without-own-volumes", isNoneLeft) ? "Retire" : "Release";
    const nobodys = leftovers.filter(({ proof }) => proof === "Unattributed");
    const stays = [...nobodys, ...doubted];
    return { do: "finish", how, stays: placesOf(claim, stays) };
  }
  const { volume, node } = going;
  const operation = { kind: "removeVolume", claim, node, volume } as const;
  const intent = `Remove the volume ${volume}, which the machine left behind.`;
  return { do: "step", step: { name: "RemoveVolume", operation, intent } };
}

/** It holds nothing but its lock: with an account that may, it is cleared away. */
function planVmHusk(
  claim: ClaimSpec,
  node: string,
  hints: NonNullable<PlanInput["huskHints"]>,
): Next {
  const operation = { kind: "clearHusk", claim, node, ...hints } as const;
  const intent = `Destroy the empty reservation ${claim.externalId}, which a dead task left.`;
  return { do: "step", step: { name: "DestroyPlaceholder", operation, intent } };
}

function planVmOpaque(
  input: PlanInput,
  claim: ClaimSpec,
  seen: Extract<Seen, { at: "opaque" }>,
): Next {
  const { lock } = seen;
  if (!guard("placeholder-vm-dead-lock", lock.state === "Dead")) return waitForLock(lock);
  if (!guard("placeholder-vm-settled", !isUnsettled(input))) return waitForOpen(input);
  if (!guard("placeholder-programs-over", !mayStillAppear(claim, lock, input.nowMs))) {
    return { do: "wait", kind: "Task", name: `what is left of the task ${lock.task ?? ""}` };
  }
  // What the dead task left is recorded while its id is looked at: another id may be next.
  const settled = planVmCopySettled(input, claim);
  if (settled !== undefined) return settled;
  const failure = deadLock(claim, lock);
  if (input.mayUnlock === true && input.huskHints !== undefined) {
    return planVmHusk(claim, seen.node, input.huskHints);
  }
  const isLeft = !input.declared.isDeleting && guard("placeholder-left-behind", mayMoveOn(claim));
  if (!isLeft) return { do: "fail", failure };
  return leaveHusk(input, failure);
}

/**
 * A program of a killed worker ends what it began. So the volumes of a copy are looked for a while
 * after its task died: the Claim that could tell whose they are is given up with the id.
 */
function mayStillAppear({ allocation }: ClaimSpec, lock: Lock, nowMs: number): boolean {
  const { endedMs, aheadMs = 0 } = lock;
  const isOpen = allocation !== undefined && allocation.settledAt === undefined;
  return isOpen && endedMs !== undefined && Math.abs(nowMs - (endedMs - aheadMs)) < programsMs;
}

const programsMs = 30_000;

function planVmForeign(input: PlanInput, claim: ClaimSpec, seen: ForeignSeen): Next {
  if (!guard("foreign-vm-settled", !isUnsettled(input))) return waitForOpen(input);
  const failure = notOurs(claim, seen);
  if (seen.reason === "Released" && input.declared.isDeleting) {
    return { do: "finish", how: "Release" };
  }
  const taken = planVmTaken(input, claim, seen);
  if (taken !== undefined) return taken;
  // The identity is right and the mark is gone: that may well be our machine.
  if (seen.reason === "MarkLost") return planVmRestamp(input, claim, { seen, failure });
  if (!guard("other-id-while-reserved", claim.state === "Reserved")) return { do: "fail", failure };
  return planVmElsewhere(input, claim, seen);
}

/** Somebody else has the id. */
function planVmElsewhere(input: PlanInput, claim: ClaimSpec, seen: ForeignSeen): Next {
  const failure = notOurs(claim, seen);
  // An empty reservation may be the one that our own lost request made. Nothing proves it, so it is
  // left alone; but the Claim goes on saying where it is.
  const isHusk = seen.reason === "Husk";
  if (input.declared.isDeleting) return { do: "finish", how: isHusk ? "Release" : "Retire" };
  if (!guard("other-id-where-nothing-was", mayMoveOn(claim))) return { do: "fail", failure };
  return isHusk ? leaveHusk(input, failure) : { do: "moveOn", failure, leaves: "Nothing" };
}

/**
 * Another id helps where one reservation went wrong. Where one after the other does, the next would
 * only be one more that a person has to clear away.
 */
function leaveHusk({ husksLeft = 0 }: PlanInput, failure: Failure): Next {
  if (husksLeft < husksMax) return { do: "moveOn", failure, leaves: "Husk" };
  const before = `${husksLeft} ids were given up like this one before, so no further one is tried.`;
  const message = `${failure.message} ${before}`;
  return { do: "fail", failure: { ...failure, message } };
}

/** What is not marked yet and is to become ours: our own copy, or a machine to take over. */
function planVmTaken(input: PlanInput, claim: ClaimSpec, seen: ForeignSeen): Next | undefined {
  const failed: Next = { do: "fail", failure: notOurs(claim, seen) };
  // Also where it is to be deleted: only what bears our mark can be destroyed.
  if (seen.reason === "Unstamped") return planVmUnstamped(input, claim, seen) ?? failed;
  if (!isTakenOver(claim) || input.declared.isDeleting) return undefined;
  return planVmTakeover(input, claim, seen) ?? failed;
}

/** Only a machine that stood before it was claimed is Reserved and stood already. */
function isTakenOver({ state, everExisted }: ClaimSpec): boolean {
  return state === "Reserved" && everExisted;
}

/** It gets its mark, with the names of its parts where they sit; nothing else of it changes. */
function planVmTakeover(
  input: PlanInput,
  claim: ClaimSpec,
  { machine, reason }: ForeignSeen,
): Next | undefined {
  // An adopted one has its own identity and no mark yet, which looks like a mark that was lost.
  const isBare = reason === "MarkLost" && claim.origin === "Adopted";
  const mayTake = isBare || reason === "Stranger" || reason === "Released";
  if (machine === undefined || !guard("takeover-adoptable-vm", mayTake)) return undefined;
  if (!guard("takeover-same-identity", machine.identity === claim.identity)) return undefined;
  const names = proposeNames(input.declared.shape, machine);
  const { disks, networks } = machine.mark ?? names;
  const placed = (slots: Readonly<Record<string, string>>): { name: string; slot: string }[] => {
    return Object.entries(slots).map(([name, slot]) => ({ name, slot }));
  };
  const operation = {
    kind: "stamp",
    claim,
    at: basisOf(machine),
    disks: placed(disks),
    networks: placed(networks),
    adopt: true,
  } as const;
  const intent = `Take over the machine ${claim.externalId}: write Berth's mark into it.`;
  return stepOrWait(input, { name: "Adopt", operation, intent }, machine.lock);
}

/** Only an id that Berth chose, and under which nothing of ours ever stood. */
function mayMoveOn(claim: ClaimSpec): boolean {
  return claim.idChosenBy === "Berth" && claim.state === "Reserved" && !claim.everExisted;
}

export function notOurs({ externalId, hypervisor, owner }: ClaimSpec, seen: ForeignSeen): Failure {
  const category = seen.reason === "Husk" ? "LockError" : "IdentityConflict";
  return {
    category,
    message:
      `What stands under the id ${externalId} on ${hypervisor.name} ` +
      `is not provably this object's: ${seen.detail}.`,
    remedy:
      seen.reason === "MarkLost"
        ? "If it is this object's machine: berth adopt --restamp " +
          `vm/${owner.name} -n ${owner.namespace}`
        : "Choose another spec.externalId, or move what stands there.",
  };
}
