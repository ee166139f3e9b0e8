import type { vmReasons } from "../../api/index.ts";
import type { Operation } from "../../hypervisor/index.ts";
import { nodeOf, slotNames, type SlotPlace } from "../hypervisor/index.ts";

/** The steps as people see them in `status.operation.step`. */
export type StepName =
  | "Create"
  | "Clone"
  | "AddDisk"
  | "Attach"
  | "Detach"
  | "DestroyDisk"
  | "MoveDisk"
  | "HandOver"
  | "TakeBack"
  | "Grow"
  | "Configure"
  | "Stamp"
  | "Adopt"
  | "Release"
  | "Start"
  | "Shutdown"
  | "PowerOff"
  | "Reboot"
  | "Suspend"
  | "Resume"
  | "Migrate"
  | "Regroup"
  | "Guard"
  | "Destroy"
  | "RemoveVolume"
  | "Unlock"
  | "ClearHusk"
  | KeeperStep
  | "PutSeed"
  | "EjectSeed"
  | "RemoveSeed";

/** Steps that are made to a keeper, and not to the object's own machine. */
type KeeperStep =
  | "MakeKeeper"
  | "MarkKeeper"
  | "AdoptKeeper"
  | "MoveKeeper"
  | "ReleaseKeeper"
  | "DestroyKeeper";

/** One effect on the hypervisor, decided and not yet made. */
export interface Step {
  readonly name: StepName;
  readonly operation: Operation;
  /** In one sentence, which tells this step from every other of the same machine. */
  readonly intent: string;
  /** The storage that the hypervisor's own copy is expected on. */
  readonly copiesTo?: string;
}

/** What is known of each step. */
export interface StepTraits {
  /** Why the object is not settled while it goes on. */
  readonly reason: keyof typeof vmReasons;
  /**
   * How long a request whose reply was lost may still take effect: the longest that a server holds
   * one, and then some.
   */
  readonly settleMs: number;
  /** What its work is called when it is recalled. */
  readonly does: readonly string[];
  /** Whether it copies data onto a storage, of which only few may go on at once. */
  readonly isCopy: boolean;
  /** Whose work it is, where it is not the machine's own. */
  readonly of?: "Keeper";
}

const settleMs = 60_000;

export const stepTraits: Readonly<Record<StepName, StepTraits>> = {
  Create: { reason: "Creating", settleMs, does: ["Create"], isCopy: false },
  Clone: { reason: "Creating", settleMs, does: ["Clone"], isCopy: true },
  AddDisk: { reason: "Creating", settleMs, does: ["Configure"], isCopy: true },
  Attach: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false },
  Detach: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false },
  DestroyDisk: { reason: "Updating", settleMs, does: ["Configure", "Other"], isCopy: false },
  MoveDisk: { reason: "Moving", settleMs, does: ["MoveDisk"], isCopy: true },
  HandOver: { reason: "Deleting", settleMs, does: ["MoveDisk"], isCopy: false },
  TakeBack: { reason: "Creating", settleMs, does: ["MoveDisk"], isCopy: false, of: "Keeper" },
  MakeKeeper: { reason: "Deleting", settleMs, does: ["Create"], isCopy: false, of: "Keeper" },
  MarkKeeper: { reason: "Deleting", settleMs, does: ["Configure"], isCopy: false, of: "Keeper" },
  AdoptKeeper: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false, of: "Keeper" },
  MoveKeeper: { reason: "Moving", settleMs, does: ["Migrate"], isCopy: false, of: "Keeper" },
  ReleaseKeeper: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false, of: "Keeper" },
  DestroyKeeper: { reason: "Updating", settleMs, does: ["Destroy"], isCopy: false, of: "Keeper" },
  Grow: { reason: "Updating", settleMs, does: ["Grow"], isCopy: false },
  Configure: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false },
  Adopt: { reason: "Adopting", settleMs, does: ["Configure"], isCopy: false },
  Stamp: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false },
  Release: { reason: "Deleting", settleMs, does: ["Configure"], isCopy: false },
  Start: { reason: "Starting", settleMs, does: ["Start"], isCopy: false },
  Shutdown: { reason: "Stopping", settleMs, does: ["Stop"], isCopy: false },
  PowerOff: { reason: "Stopping", settleMs, does: ["Stop"], isCopy: false },
  Reboot: { reason: "Updating", settleMs, does: ["Reboot"], isCopy: false },
  Suspend: { reason: "Stopping", settleMs, does: ["Suspend"], isCopy: false },
  Resume: { reason: "Starting", settleMs, does: ["Resume"], isCopy: false },
  Migrate: { reason: "Moving", settleMs, does: ["Migrate"], isCopy: false },
  Regroup: { reason: "Updating", settleMs, does: ["Other"], isCopy: false },
  Guard: { reason: "Updating", settleMs, does: ["Other"], isCopy: false },
  Destroy: { reason: "Deleting", settleMs, does: ["Destroy"], isCopy: false },
  PutSeed: { reason: "Creating", settleMs, does: ["Other"], isCopy: false },
  EjectSeed: { reason: "Updating", settleMs, does: ["Configure"], isCopy: false },
  RemoveSeed: { reason: "Updating", settleMs, does: ["Other"], isCopy: false },
  Unlock: { reason: "Unlocking", settleMs, does: ["Configure"], isCopy: false },
  ClearHusk: { reason: "Unlocking", settleMs, does: ["Destroy"], isCopy: false },
  RemoveVolume: { reason: "Deleting", settleMs, does: ["Other"], isCopy: false },
};

export function isStepName(text: string): text is StepName {
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
