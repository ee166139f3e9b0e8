import type { vmReasons } from "../../api/index.ts";
import type { Failure, Operation, Work } from "../../hypervisor/index.ts";
import { nodeOf, slotNames, type SlotPlace } from "../hypervisor/index.ts";
import type { StepTraits } from "../operations/index.ts";

/** The steps as people see them in `status.operation.step`. */
export type StepName =
  | "Create"
  | "Clone"
  | "AddDisk"
  | "Attach"
  | "Detach"
  | "DestroyDisk"
  | "MoveDisk"
  | "TransferDisk"
  | "ReturnDisk"
  | "Grow"
  | "Configure"
  | "WriteMarker"
  | "Adopt"
  | "Release"
  | "Start"
  | "Shutdown"
  | "PowerOff"
  | "Reboot"
  | "Suspend"
  | "Resume"
  | "Migrate"
  | "SetPool"
  | "SetHighAvailability"
  | "Destroy"
  | "RemoveVolume"
  | "Unlock"
  | "DestroyPlaceholder"
  | KeeperStep
  | "UploadSeed"
  | "EjectSeed"
  | "RemoveSeed";

/** Steps that are made to a keeper, and not to the object's own machine. */
type KeeperStep =
  | "CreateDiskHolder"
  | "WriteDiskHolderMarker"
  | "AdoptDiskHolder"
  | "MigrateDiskHolder"
  | "ReleaseDiskHolder"
  | "DestroyDiskHolder";

/** One effect on the hypervisor, decided and not yet made. */
export interface Step {
  readonly name: StepName;
  readonly operation: Operation;
  /** In one sentence, for people. */
  readonly intent: string;
  /** The storage that the hypervisor's own copy is expected on. */
  readonly copiesTo?: string;
  /** The fields of the spec that it is for, where the operation does not tell. */
  readonly fields?: readonly string[];
}

/** What is known of each step of a VM. */
export interface VmStepTraits extends StepTraits {
  /** Why the object is not settled while it goes on. */
  readonly reason: keyof typeof vmReasons;
  /** Whether it copies data onto a storage, of which only few may go on at once. */
  readonly isCopy: boolean;
  /** Whose work it is, where it is not the VM's own. */
  readonly of?: "DiskHolder";
}

/** The longest that a server holds a request, and then some. */
const windowMs = 60_000;

function traits(
  reason: keyof typeof vmReasons,
  works: readonly Work[],
  more: Partial<VmStepTraits> = {},
): VmStepTraits {
  return { reason, windowMs, works, isCopy: false, meaning: ofOwnVolume, ...more };
}

/** A step that reads no image misses a volume of its own: to wait for it would be for ever. */
function ofOwnVolume(failure: Failure): Failure {
  const isOwn = failure.category === "ImageNotFound";
  return isOwn ? { ...failure, category: "CreationFailed" } : failure;
}

/** A step that was to make a VM go, and does not find it, has to observe. */
function ofRemoval(failure: Failure): Failure {
  const isGone = failure.category === "Missing";
  return isGone ? { ...failure, category: "UnknownOutcome" } : ofOwnVolume(failure);
}

const readsImage = { meaning: (failure: Failure): Failure => failure };
const makes = { makes: true };
const removes = { meaning: ofRemoval };
const asksGuest = { asksGuest: true };
const isProof = { isProof: true };
const holder = { of: "DiskHolder" } as const;

export const stepTraits: Readonly<Record<StepName, VmStepTraits>> = {
  Create: traits("Creating", ["Create"], { ...makes, ...readsImage }),
  Clone: traits("Creating", ["Clone"], { ...makes, isCopy: true }),
  AddDisk: traits("Creating", ["Configure"], { ...readsImage, isCopy: true }),
  Attach: traits("Updating", ["Configure"]),
  Detach: traits("Updating", ["Configure"]),
  DestroyDisk: traits("Updating", ["Configure", "Other"]),
  MoveDisk: traits("Moving", ["MoveDisk"], { isCopy: true }),
  TransferDisk: traits("Deleting", ["MoveDisk"], isProof),
  ReturnDisk: traits("Creating", ["MoveDisk"], { ...holder, ...isProof }),
  CreateDiskHolder: traits("Deleting", ["Create"], { ...makes, ...holder }),
  WriteDiskHolderMarker: traits("Deleting", ["Configure"], holder),
  AdoptDiskHolder: traits("Updating", ["Configure"], holder),
  MigrateDiskHolder: traits("Moving", ["Migrate"], holder),
  ReleaseDiskHolder: traits("Updating", ["Configure"], holder),
  DestroyDiskHolder: traits("Updating", ["Destroy"], { ...holder, ...removes }),
  Grow: traits("Updating", ["Grow"]),
  Configure: traits("Updating", ["Configure"]),
  Adopt: traits("Adopting", ["Configure"]),
  WriteMarker: traits("Updating", ["Configure"], isProof),
  Release: traits("Deleting", ["Configure"]),
  Start: traits("Starting", ["Start"]),
  Shutdown: traits("Stopping", ["Stop"], asksGuest),
  PowerOff: traits("Stopping", ["Stop"]),
  Reboot: traits("Updating", ["Reboot"], asksGuest),
  Suspend: traits("Stopping", ["Suspend"]),
  Resume: traits("Starting", ["Resume"]),
  Migrate: traits("Moving", ["Migrate"]),
  SetPool: traits("Updating", ["Other"]),
  SetHighAvailability: traits("Updating", ["Other"]),
  Destroy: traits("Deleting", ["Destroy"], removes),
  UploadSeed: traits("Creating", ["Upload", "Other"], isProof),
  EjectSeed: traits("Updating", ["Configure"]),
  RemoveSeed: traits("Updating", ["RemoveFile", "Other"], isProof),
  Unlock: traits("Unlocking", ["Configure"]),
  DestroyPlaceholder: traits("Unlocking", ["Destroy"], removes),
  RemoveVolume: traits("CleaningUp", ["RemoveFile", "Other"]),
};

const unknownStep = traits("Progressing", []);

/** What steps are called in the records of 0.1. */
const stepsOf01: ReadonlyMap<string, StepName> = new Map([
  ["HandOver", "TransferDisk"],
  ["TakeBack", "ReturnDisk"],
  ["Stamp", "WriteMarker"],
  ["Regroup", "SetPool"],
  ["Guard", "SetHighAvailability"],
  ["ClearHusk", "DestroyPlaceholder"],
  ["MakeKeeper", "CreateDiskHolder"],
  ["MarkKeeper", "WriteDiskHolderMarker"],
  ["AdoptKeeper", "AdoptDiskHolder"],
  ["MoveKeeper", "MigrateDiskHolder"],
  ["ReleaseKeeper", "ReleaseDiskHolder"],
  ["DestroyKeeper", "DestroyDiskHolder"],
  ["PutSeed", "UploadSeed"],
]);

/** The name of a recorded step, whichever release recorded it. */
export function currentStep(step: string): string {
  return stepsOf01.get(step) ?? step;
}

/** Also of a step that an earlier or a later release recorded. */
export function traitsOf(recorded: string): VmStepTraits {
  const step = currentStep(recorded);
  return isStepName(step) ? stepTraits[step] : unknownStep;
}

function isStepName(text: string): text is StepName {
  return text in stepTraits;
}

/** The slots that a step needs, all at once. The VM's own are its key: it runs once at a time. */
export function slotsOf({ name, operation, copiesTo }: Step, hypervisor: SlotPlace): string[] {
  const storage = stepTraits[name].isCopy ? (copiesTo ?? storageOf(operation)) : undefined;
  const names = slotNames(hypervisor, nodeOf(operation), storage);
  if (operation.kind !== "clone") return names;
  // A copy lies where its source lies, whatever is declared: copies of one source take turns.
  return [...names, `source ${operation.source} of ${hypervisor.name}`];
}

/** The storage that data is copied onto. */
function storageOf(operation: Operation): string | undefined {
  if (operation.kind === "addDisk") return operation.disk.storage;
  return operation.kind === "moveDisk" ? operation.storage : undefined;
}
