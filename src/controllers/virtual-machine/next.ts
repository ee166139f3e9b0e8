import type { ClaimSpec, VirtualMachineSpec, VirtualMachineStatus } from "../../api/index.ts";
import type {
  Basis,
  Change,
  ClaimedMachine,
  ClearHusk,
  Difference,
  Failure,
  Leftover,
  Lock,
  Machine,
  NewDisk,
  Operation,
  Seen,
  Shape,
} from "../../hypervisor/index.ts";
import { clearingOf, deadLock, lockText } from "../failures/index.ts";
import { isSameOperation, keyOf } from "../operations/index.ts";
import type { Seed } from "./seed.ts";
import type { Step } from "./steps.ts";

/** What is declared, with everything that it refers to already looked up. */
export interface Declared {
  readonly isDeleting: boolean;
  /** What deleting the object means for the machine. */
  readonly fate: "Destroy" | "Retain";
  readonly isProtected: boolean;
  /** The object itself says that there is no protection: then the hypervisor's is lifted. */
  readonly liftsProtection?: boolean;
  /** What the machine should be, as this hypervisor would show it. */
  readonly shape: Shape;
  readonly disks: readonly NewDisk[];
  /** Disks whose entry says that they are to be destroyed. */
  readonly absentDisks?: readonly string[];
  /** Disks whose entry itself names their storage. */
  readonly pinnedDisks?: readonly string[];
  /** Volumes that become the machine's own when it is made, by the names of their disks. */
  readonly takes?: Readonly<Record<string, string>>;
  /** What the guest is told by a disc of our own. */
  readonly seed?: Seed | undefined;
  /** What counts only until the machine stood, by field. */
  readonly createdFrom?: NonNullable<ClaimSpec["createdFrom"]>;
  /** What becomes of each disk with the machine, by name. */
  readonly onDelete: Readonly<Record<string, "Delete" | "Retain">>;
  readonly pool?: string | undefined;
  /** The node that it has to be moved to, where its placement is enforced. */
  readonly movesTo?: string | undefined;
  /** The machine that it is the hypervisor's own copy of. */
  readonly clone?: Cloning | undefined;
  readonly node: string;
  readonly power: VirtualMachineSpec["powerState"];
  readonly shutdown: VirtualMachineSpec["shutdown"];
  readonly updatePolicy: VirtualMachineSpec["updatePolicy"];
  readonly driftPolicy: VirtualMachineSpec["driftPolicy"];
  readonly onMissing: VirtualMachineSpec["onMissing"];
  /** A person asked for a restart that was not made yet. */
  readonly wantsRestart: boolean;
  /** This generation was not wholly applied yet: what differs is an edit, and no drift. */
  readonly isEdited: boolean;
}

/** A copy that only the hypervisor itself can make: linked, or of a snapshot. */
export interface Cloning {
  readonly source: string;
  readonly mode: "Linked" | "Full";
  readonly snapshot?: string;
  /** The disk that it boots from, and others by where they are. */
  readonly disk: string;
  readonly disks: readonly { readonly name: string; readonly slot: string }[];
}

/** An operation of which nobody knows whether it happened, or still will. */
export interface OpenOperation {
  readonly step: string;
  readonly intent: string;
  /** What tells it from others; a record of 0.1 has none, and may be any. */
  readonly key?: string | undefined;
}

/** An operation that ended well. */
export interface DoneOperation {
  readonly id?: string;
  readonly step: string;
  readonly key?: string | undefined;
}

/** The keeper that the Claim names, once it has a Claim of its own. */
export interface KeeperView {
  readonly claim: ClaimSpec;
  readonly seen: Seen;
}

/** A disk that a keeper holds for this object. */
export interface KeptDisk {
  /** Its name in the spec of this object. */
  readonly disk: string;
  readonly volume: string;
  readonly storage?: string;
  /** The keeper's id, and the node that it was last seen on. */
  readonly keeper: string;
  readonly node?: string;
  /** Another object holds the keeper, for a while. */
  readonly isBusy?: boolean;
}

export interface SeenPool {
  readonly name: string | undefined;
  /** That was seen before what was done last had ended. */
  readonly isOld?: boolean;
}

export interface PlanInput {
  readonly declared: Declared;
  readonly claim: ClaimSpec | undefined;
  readonly seen: Seen;
  readonly nowMs: number;
  /** An operation that may still take effect, for all that is known. */
  readonly open?: OpenOperation | undefined;
  /** The guest was asked to shut down, and did not. */
  readonly isShutdownIgnored?: boolean;
  /** The agent in the guest has answered. */
  readonly hasAgentAnswered?: boolean;
  /** The pool that it was last seen in, where that is known. */
  readonly seenPool?: SeenPool | undefined;
  /** The machine's power was not asked for, because it never ran. */
  readonly isPowerUnasked?: boolean;
  /** What was done last and ended well, as far as the record tells. */
  readonly lastDone?: DoneOperation | undefined;
  /** What was done before the operation of the record, whatever became of that one. */
  readonly doneBefore?: Pick<DoneOperation, "step"> | undefined;
  /** By what a reservation that is still empty was told to be ours. */
  readonly huskHints?: Pick<ClearHusk, "sinceMs" | "workerNeverStarted" | "clonedFrom">;
  /** Empty reservations that it gave up before, and that may still be there. */
  readonly husksLeft?: number;
  /** Locks of ours that are dead can be cleared here. */
  readonly mayUnlock?: boolean;
  /** The plan that a person approved, by its hash. */
  readonly approved?: string | undefined;
  /** Where its network cards were last seen, by name. */
  readonly lastNetworks?: Readonly<Record<string, string>>;
  /** What the change of a field costs here. */
  readonly changeOf?: (path: string, machine: Machine) => Change;
  readonly keeper?: KeeperView | undefined;
  readonly kept?: readonly KeptDisk[];
  /** Volumes under the id that nothing refers to; only looked for where the plan asks for it. */
  readonly leftovers?: readonly Leftover[] | undefined;
  /** They were looked for, and not every storage could be read. */
  readonly isUnlisted?: boolean;
}

/** The one next thing. */
export type Next =
  /** Choose an id and reserve it by a Claim. */
  | { readonly do: "reserve" }
  /** The id is of no use: give its Claim back and choose another. */
  | { readonly do: "moveOn"; readonly failure: Failure; readonly leaves: "Nothing" | "Husk" }
  /** Write down in the Claim what was seen. */
  | { readonly do: "record"; readonly change: Partial<ClaimSpec> }
  /** Choose a keeper, or take up that one, and reserve it by a Claim of its own. */
  | { readonly do: "keep"; readonly from?: string }
  /** The same in the keeper's Claim. */
  | { readonly do: "recordKeeper"; readonly change: Partial<ClaimSpec> }
  /** The keeper was let go, is gone, or never came to be. */
  | {
      readonly do: "dropKeeper";
      readonly how: "Retire" | "Release" | "Forget";
      readonly why?: string;
    }
  | { readonly do: "step"; readonly step: Step }
  /** Look for volumes under the id that nothing refers to, on its node or all, and plan again. */
  | { readonly do: "sweep"; readonly everywhere?: true; readonly mayFail?: true }
  /** Look again, this time also at the power, and plan again. */
  | { readonly do: "look" }
  | {
      readonly do: "wait";
      readonly kind: "Lock" | "Task";
      readonly name: string;
      /** The lock itself, without who holds it. */
      readonly lock?: string;
    }
  /** With a plan: what a person may approve, and that would mend it. */
  | {
      readonly do: "fail";
      readonly failure: Failure;
      readonly plan?: VirtualMachineStatus["plan"];
    }
  /** deletionProtection is on. */
  | { readonly do: "protect" }
  /** Nothing of ours is left; the object may go. */
  | {
      readonly do: "finish";
      readonly how: "Retire" | "Release" | "Nothing";
      /** Volumes under its id that nothing proves to be ours. They stay, and a person is told. */
      readonly stays?: readonly string[];
    }
  | {
      readonly do: "rest";
      readonly drift: readonly Difference[];
      readonly pending: readonly string[];
      /** Nothing is left to be said to the hypervisor, though it may wait for a restart there. */
      readonly isApplied: boolean;
      /** What it was created from and says something else since, without effect on it. */
      readonly changed?: readonly string[];
    };

/** A machine against what is declared. */
export interface Found {
  readonly machine: Machine;
  readonly differences: readonly Difference[];
  /** Paths of differences that have to wait until the machine is off. */
  readonly later: readonly string[];
}

export function basisOf({ node, version }: Machine): Basis {
  return { node, version };
}

/** One that was never started is off, whether or not it was asked. */
export function isOff({ everExisted }: ClaimSpec, { power }: Machine): boolean {
  return power === "Stopped" || (power === "Unknown" && !everExisted);
}

export function changeClass(
  { changeOf }: PlanInput,
  path: string,
  machine: Machine,
): Change["class"] {
  return changeOf?.(path, machine).class ?? "Live";
}

/** Whether an operation may still take effect, for all that is known. */
export function isUnsettled({ open }: PlanInput): boolean {
  return open !== undefined;
}

/** The very same may still take effect: then it is not sent again. */
function isUnderWay({ open }: PlanInput, operation: Operation): boolean {
  return open !== undefined && isSameOperation({ key: open.key }, operation);
}

/** Whether exactly this was done last and ended well. */
export function wasJustDone({ lastDone }: PlanInput, { operation }: Step): boolean {
  return lastDone?.key !== undefined && lastDone.key === keyOf(operation).key;
}

export function waitForOpen({ open }: Pick<PlanInput, "open">): Next & { do: "wait" } {
  return { do: "wait", kind: "Task", name: `the outcome of: ${open?.intent ?? ""}` };
}

export function waitForLock(lock: Lock): Next & { do: "wait" } {
  return { do: "wait", kind: "Lock", name: lockText(lock), lock: lock.detail };
}

/** A step, unless the very same one may be under way, or the machine is locked. */
export function stepOrWait(input: PlanInput, step: Step, lock: Lock | undefined): Next {
  if (isUnderWay(input, step.operation)) return waitForOpen(input);
  if (lock === undefined) return { do: "step", step };
  if (lock.state !== "Dead") return waitForLock(lock);
  return unlockStep(input, step, lock) ?? { do: "fail", failure: deadLock(step.operation, lock) };
}

/** Where an account may, the lock goes first; it is proven dead once more in the same step. */
function unlockStep(input: PlanInput, { operation }: Step, lock: Lock): Next | undefined {
  if (input.mayUnlock !== true || !("at" in operation)) return undefined;
  return unlocking(input, operation, lock);
}

export function unlocking(
  input: PlanInput,
  { claim, at }: { readonly claim: ClaimedMachine; readonly at: Basis },
  lock: Lock,
): Next {
  const { operation, intent } = clearingOf({ claim, at }, lock);
  if (isUnderWay(input, operation)) return waitForOpen(input);
  return { do: "step", step: { name: "Unlock", operation, intent } };
}
