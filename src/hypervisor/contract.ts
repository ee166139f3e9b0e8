import type { Answer, Failure } from "./categories.ts";
import type { EpochChange, EpochView } from "./epoch.ts";
import type { Inventory, SystemView } from "./inventory.ts";
import type { Allocating, Leftover } from "./allocation.ts";
import type { Lock, Machine, NewDisk, Shape } from "./machine.ts";
import type { Mark } from "./mark.ts";
import type { ClaimedMachine, Clone, Operation } from "./operation.ts";
import type { Survey } from "./survey.ts";

/**
 * What a driver does for Berth, in Berth's words. No vendor's type, id format or enumeration
 * crosses it: ids, slots, versions and task handles are opaque texts.
 *
 * Guarantees: every method may be repeated at any time; none waits for long work; values are plain
 * JSON, because they are stored. A driver keeps nothing that it could not find out again.
 *
 * Errors: what can go wrong at work is a value with a category. A throw is a bug.
 */
export interface HypervisorDriver {
  /** Who the system is, what it can do, and what the credentials lack. */
  system(): Promise<Answer<SystemView>>;
  /** Everything at one glance, at the price of one call. It says what it could not see. */
  inventory(): Promise<Answer<Inventory>>;
  /** What stands under a Claim. Only `ours` and `absent` may ever lead to an effect. */
  observe(claim: ClaimedMachine, hints?: ObserveHints): Promise<Seen>;
  /**
   * An id that is free at this moment, `first` if that is. Nothing is reserved by it: the Claim
   * does that.
   */
  propose(avoid: readonly string[], first?: string): Promise<Answer<string>>;
  /**
   * The id that is tried first for a key, whoever asks. Two runs of one installation that do not
   * know of each other try the same, and the hypervisor lets one of them create it. Pure. A driver
   * whose hypervisor chooses ids itself leaves it out.
   */
  prefer?(key: string): string;
  /** The shape as it would be seen here once applied, and what of it cannot be had. Pure. */
  fit(shape: Shape): Fitted;
  /** Everything that would make a creation or an addition fail, found before the first effect. */
  preflight(draft: Draft): Promise<Preflight>;
  /**
   * Begins one operation. It has one effect at most, and none that `fence` does not allow. Only the
   * volume that the Claim names (`allocation.volume`) may be made before, by a request of its own.
   */
  begin(operation: Operation, fence: Fence): Promise<Begun>;
  /** How far a task is. */
  look(task: TaskHandle): Promise<TaskView>;
  /**
   * When a task of ours ran, on the clock that dates the files of `node`; undefined: nobody knows
   * any more. A driver whose storages report no times of files leaves it out.
   */
  span?(task: TaskHandle, node: string): Promise<Answer<TaskSpan | undefined>>;
  /**
   * Asks a task of ours to end. What it has done by then is seen by looking. A driver whose
   * hypervisor cannot do that leaves it out.
   */
  cancel?(task: TaskHandle, fence: Fence): Promise<Begun>;
  /**
   * Work of our own credentials since a moment, on a machine or on a file: what a lost reply may
   * have begun. Newest first. The moment and the times are on Berth's clock; where the driver
   * cannot tell how that differs from the hypervisor's, it fails.
   */
  recall(
    target: RecallTarget,
    sinceMs: number,
    hints?: RecallHints,
  ): Promise<Answer<readonly RecalledTask[]>>;
  /**
   * Everybody's work on a machine since a moment, for people who ask who else is at it. A driver
   * whose hypervisor keeps no such list leaves it out.
   */
  history?(
    claim: ClaimedMachine,
    sinceMs: number,
    hints?: HistoryHints,
  ): Promise<Answer<readonly PastTask[]>>;
  /** What the agent in the guest says, if it does at once. Nothing ever waits for it. */
  guest(claim: ClaimedMachine): Promise<Answer<GuestView>>;
  /** What a change of a field costs here, by its path in a Difference. Pure. */
  changeOf(path: string, machine?: Machine): Change;
  /**
   * What an operation is about to allocate. It goes into the Claim before the operation begins:
   * what a dead worker leaves is judged by it. Undefined: it makes no volume, or none that has to
   * be known before. A driver whose hypervisor names every new volume leaves it out: then the Claim
   * has only which disk is made where. `id` is that of the operation: it is in the name of a volume
   * that is allocated by name.
   */
  allocating?(operation: Operation, id: string): Promise<Answer<Allocating | undefined>>;
  /** Volumes under a Claim's id that nothing refers to, with what is known of whose they are. */
  leftovers(claim: ClaimedMachine): Promise<Answer<readonly Leftover[]>>;
  /**
   * Everything that Berth may have made. Machines whose ids are `known` are listed and not looked
   * into; each other one costs a call. Volumes of a VM that exists are left out, but for the
   * `suspects` that nothing refers to.
   */
  survey(known: readonly string[], suspects?: readonly string[]): Promise<Answer<Survey>>;
  /** Image files on a storage, as a node sees it. */
  images(place: ImagePlace): Promise<Answer<readonly ImageFile[]>>;
  /** Discs on a storage, as a node sees it: also those that `putSeed` put there. */
  discs(place: ImagePlace): Promise<Answer<readonly ImageFile[]>>;
  /** The epoch of an installation, with who wrote it; undefined where there is none. */
  epoch(installation: string): Promise<Answer<EpochView | undefined>>;
  /**
   * Creates the epoch of an installation if it has none, or replaces the one that `from` names.
   * Nobody else can have written in between: whoever loses gets `changed`.
   */
  advance(change: EpochChange, fence: Fence): Promise<Advanced>;
  /** Lets go of connections. Calls under way may still end. */
  close(): void;
}

export interface ObserveHints {
  /** Since when work of ours may have begun: tells our husk from an older stranger's. */
  readonly sinceMs?: number;
  /** Our record of a reply by which a machine was reserved and no worker could be started. */
  readonly workerNeverStarted?: boolean;
  /** The power is not needed: saves a call, and leaves it Unknown. */
  readonly withoutPower?: boolean;
  /** The machine that ours is being cloned from: our task is found in its log. */
  readonly clonedFrom?: string;
  /** Nothing was ever sent for the Claim: saves a call where there is nothing, as expected. */
  readonly expectsNothing?: boolean;
  /** Names for parts of a machine that bears no mark, as adoption would stamp them. */
  readonly names?: PartSlots;
}

/** Where parts sit, by their names. */
export type PartSlots = Partial<Pick<Mark, "disks" | "networks" | "cdroms" | "pci" | "usb">>;

/** What work is recalled of: the machine of a Claim, or a file on a storage. */
export type RecallTarget = ClaimedMachine | FileTarget;

export interface FileTarget {
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
}

export interface RecallHints {
  /** The machine that ours was to be cloned from. */
  readonly clonedFrom?: string;
  /** What is looked for, where that needs another list. */
  readonly does?: Work;
}

export interface HistoryHints {
  /** Also on nodes that the machine is no longer on, as far as they answer. */
  readonly everywhere?: boolean;
}

/**
 * What stands under a Claim's id.
 *
 * - `unknown`: unreachable, filtered or partial. Never leads to an effect.
 * - `absent`: proven that nothing stands there.
 * - `opaque`: reserved by us, and nothing is written in it yet: a machine in the making or in the
 *   unmaking. Ours by the id and by a task of our own credentials.
 * - `foreign`: something stands there that is not provably ours. Never touched.
 * - `ours`: id, identity, mark and Claim agree.
 */
export type Seen =
  | { readonly at: "unknown"; readonly failure: Failure }
  | { readonly at: "absent" }
  | { readonly at: "opaque"; readonly node: string; readonly lock: Lock }
  | ForeignSeen
  | { readonly at: "ours"; readonly machine: Machine };

export interface ForeignSeen {
  readonly at: "foreign";
  readonly reason: ForeignReason;
  /** What disagrees, for people. */
  readonly detail: string;
  readonly node?: string;
  /** As far as it can be seen: adoption begins here. */
  readonly machine?: Machine;
}

/**
 * - `Stranger`: no mark. `Husk`: empty and locked, by work that was not ours.
 * - `OtherInstallation`, `OtherOwner`: a whole mark that names another.
 * - `Copied`: our mark on another id or identity, as clones and restores have it.
 * - `Released`: our mark, let go on purpose.
 * - `MarkLost`: the identity is right and the mark is gone or broken: somebody edited it.
 * - `OtherKind`: the id belongs to something that is no virtual machine.
 * - `Unstamped`: a clone that our own task made under the Claim's id. `stamp` with `cloned` makes
 *   it ours; nothing else may be done to it.
 */
export type ForeignReason =
  | "Stranger"
  | "Husk"
  | "OtherInstallation"
  | "OtherOwner"
  | "Copied"
  | "Released"
  | "MarkLost"
  | "OtherKind"
  | "Unstamped";

export interface Fitted {
  readonly shape: Shape;
  readonly refusals: readonly Failure[];
}

/** A machine that is about to be made, or what is about to be added to one. */
export interface Draft {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly shape: Shape;
  readonly disks: readonly NewDisk[];
  /** Volumes that are there already and become the machine's own: they are no leftovers. */
  readonly takes?: readonly string[];
  /** Where the whole machine is to be the hypervisor's own copy of another. */
  readonly clone?: Pick<Clone, "source" | "mode">;
  /** The pool that it comes into. */
  readonly pool?: string;
  /** Where the disc for its first boot is put. */
  readonly seedStorage?: string;
  /** A person chose the id. Then nobody can take another one, and every storage is looked at. */
  readonly isChosenId?: boolean;
  /**
   * The machine stands, and the draft has only what is added to it: new disks, and cards on other
   * networks. Then what stands under the id is its own, and is neither looked for nor listed.
   */
  readonly isAddition?: boolean;
}

export interface Preflight {
  /** All that is wrong, at once. Empty: go ahead. `NetworkError` among them: not all was seen. */
  readonly findings: readonly Failure[];
  /** Volumes that exist under the id already: they are a stranger's for ever. */
  readonly otherVolumes: readonly string[];
  /** What the driver has to know of this listing later. Kept in the Claim as it is. */
  readonly notes?: DriverNotes;
  /** Volumes that keep the VM from being created. */
  readonly inTheWay?: readonly string[];
}

/** What a driver wants to be kept in the Claim. Nobody else reads it. */
export type DriverNotes = NonNullable<ClaimedMachine["driver"]>;

/** The old leader's fence: asked in the same tick in which the bytes leave. */
export interface Fence {
  mayWrite(): boolean;
}

/** The hypervisor's own name of long work. */
export type TaskHandle = string;

/**
 * What became of an attempt to begin.
 *
 * - `done`: it is so already, or was done at once.
 * - `task`: it is under way.
 * - `progressed`: it takes several effects here, and the next of them was done. Begin it again.
 * - `refused`: it was not done; of a `configure`, single fields may have been. `leaves: "Husk"`:
 *   nothing but an empty reservation, which has to be remembered (`workerNeverStarted`), since no
 *   task will ever prove whose it is.
 * - `blocked`: a lock or a limit of the hypervisor; nothing was done. No failure: wait.
 * - `changed`: the machine is not as it was seen. Nothing was done: observe and plan anew.
 * - `fenced`: the fence said no. Nothing was sent.
 * - `unknown`: the reply was lost. Observe and recall before anything else.
 */
export type Begun =
  | { readonly outcome: "done" }
  | { readonly outcome: "task"; readonly task: TaskHandle }
  | { readonly outcome: "progressed" }
  | { readonly outcome: "refused"; readonly failure: Failure; readonly leaves?: "Husk" }
  | { readonly outcome: "blocked"; readonly waitsFor: string }
  | { readonly outcome: "changed"; readonly detail: string }
  | { readonly outcome: "fenced" }
  | { readonly outcome: "unknown"; readonly failure: Failure };

/**
 * What became of an attempt to advance an epoch. `done`: the hypervisor shows the new one, written
 * by this run. `changed`: it shows another one than the one that was to be replaced.
 */
export type Advanced =
  | Exclude<Begun, { readonly outcome: "task" | "progressed" | "changed" }>
  /** The epoch was another than `from`: `seen`, or none. */
  | { readonly outcome: "changed"; readonly detail: string; readonly seen?: EpochView };

/**
 * - `warned`: it succeeded and complained: verify what it should have done.
 * - `blocked`: it ended because another held a lock; try again later, no attempt is counted.
 * - `changed`: it found the machine not as it was seen, and did nothing: observe and plan anew.
 * - `lost`: it ended without saying how, or nobody remembers it: observe.
 * - `unknown`: it could not be looked at: look again.
 */
export type TaskView =
  | { readonly state: "running" }
  | { readonly state: "succeeded" }
  | { readonly state: "warned"; readonly cause: string }
  | { readonly state: "failed"; readonly failure: Failure }
  | { readonly state: "blocked"; readonly waitsFor: string }
  | { readonly state: "changed"; readonly cause: string }
  /** Nobody knows how it ended; or, where nobody knows of it at all, whether it has ended. */
  | { readonly state: "lost"; readonly cause: string; readonly mayRun?: true }
  | { readonly state: "unknown"; readonly failure: Failure };

/** When a task ran, as exactly as `taskTimeSlackMs` says. */
export interface TaskSpan {
  readonly startedMs: number;
  /** Absent: the hypervisor has not noticed its end yet. */
  readonly endedMs?: number;
}

export interface RecalledTask {
  readonly task: TaskHandle;
  readonly does: Work;
  readonly isRunning: boolean;
  /** When it began, on Berth's clock, as exactly as `taskTimeSlackMs` says. */
  readonly sinceMs: number;
  /** How much later it may have begun, where that is known better. */
  readonly withinMs?: number;
}

export interface PastTask {
  readonly does: Work;
  readonly sinceMs: number;
  /** Whose it was, in the hypervisor's words. */
  readonly user: string;
  /** It was begun with our own credentials. */
  readonly isOurs: boolean;
}

export type Work =
  | "Create"
  | "Clone"
  | "Configure"
  | "Grow"
  | "MoveDisk"
  | "Start"
  | "Stop"
  | "Reboot"
  | "Suspend"
  | "Resume"
  | "Migrate"
  | "Destroy"
  | "Restore"
  | "Download"
  | "Upload"
  | "RemoveFile"
  | "Other";

/**
 * What the agent says.
 *
 * - `Off`: the machine does not run, or has no channel for an agent.
 * - `Silent`: nobody answers. That is no failure: a guest may have none.
 */
export type GuestView =
  | { readonly agent: "Off" | "Silent" }
  | { readonly agent: "Answered"; readonly cards: readonly GuestCard[] };

export interface GuestCard {
  /** The card of the spec, where the hardware address tells it. */
  readonly network?: string;
  readonly macAddress?: string;
  /** The guest's own name for it. */
  readonly device: string;
  readonly addresses: readonly { readonly address: string; readonly prefix: number }[];
}

/**
 * What a change costs.
 *
 * - `Live`: a running machine takes it, and does not notice.
 * - `Reboot`: it is written and waits for the next restart.
 * - `PowerOff`: the machine has to be off while it is made.
 * - `Impossible`: it cannot be made in place.
 */
export interface Change {
  readonly class: "Live" | "Reboot" | "PowerOff" | "Impossible";
  /** How it is made, or why it is not, for people. */
  readonly detail: string;
}

export interface ImagePlace {
  readonly node: string;
  readonly storage: string;
}

export interface ImageFile {
  readonly volume: string;
  readonly fileName: string;
  readonly sizeBytes: number;
  /** When it was created or last changed; absent where the storage does not say it. */
  readonly createdMs?: number;
}
