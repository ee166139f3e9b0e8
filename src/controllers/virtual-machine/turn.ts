import { annotations, virtualMachineKind } from "../../api/index.ts";
import type {
  Claim,
  Hypervisor,
  VirtualMachine,
  VMClass,
  VMImage,
  VMNetwork,
} from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type {
  Failure,
  Fence,
  HypervisorDriver,
  Inventory,
  Seen,
  TaskHandle,
} from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import {
  writeStatus,
  type EventRecorder,
  type SlotLease,
  type Slots,
} from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import type { Connection, Connections } from "../hypervisor/index.ts";
import type { Reports } from "../reports/index.ts";
import type { InTheWay } from "./in-the-way.ts";
import type { Places } from "./places.ts";
import { statusOf, type StatusOperation, type VmView } from "./status.ts";
import type { Waiting } from "./status-waiting.ts";
import type { TaskPace } from "./task-pace.ts";
import { isNewsOfWait, tellWait } from "./told-waits.ts";

/** Objects that a VM refers to. */
export interface VmLookups {
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly classes: Informer<VMClass>;
  readonly images: Informer<VMImage>;
  readonly networks: Informer<VMNetwork>;
}

export interface VmDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventRecorder;
  /** What happens to operations, and what fails. */
  readonly reports: Reports;
  readonly vms: WrittenObjects<VirtualMachine>;
  readonly lookups: VmLookups;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly slots: Slots;
  readonly pace: TaskPace;
  readonly places: Places;
  /** Whether a write may go out at this very moment. */
  readonly fence: Fence;
  /** How long nothing may be written yet, because an earlier leader's requests may still land. */
  readonly writableInMs: () => number;
  /** Whether deleting an object may destroy its machine: not while its CRD goes away. */
  readonly mayDestroy: () => Promise<boolean>;
  /** Runs a key again. */
  readonly wake: (key: string) => void;
  readonly memory: Map<string, VmMemory>;
}

/**
 * What a process remembers of a VM between runs. All of it can be lost: it saves calls, and after
 * a crash the same is found out by looking.
 */
export interface VmMemory {
  /** The work under way, and when it began or was found, on the monotonic clock. */
  task?: {
    readonly operationId: string;
    readonly handle: TaskHandle;
    readonly sinceMs: number;
    /** It was under way already when it was found: how long it takes is not known. */
    readonly isFound: boolean;
    /** So long after that it was seen running. */
    runningMs?: number;
  };
  /** The operation whose outcome is not known, and since when on the monotonic clock we know it. */
  open?: { readonly id: string; readonly seenMs: number };
  /** The operation whose outcome is known. */
  settledId?: string;
  lease?: SlotLease;
  /** The hypervisor on which it asked to begin. */
  beginsOn?: string;
  /** Since when it stands in line for slots, with what was declared then. */
  line?: { readonly sinceMs: number; readonly declaration: string };
  lastWriteMs?: number;
  /** Not before, unless the declaration is another. */
  retry?: { readonly atMs: number; readonly declaration: string };
  /** It holds back until the hypervisor was looked at. */
  isHeld?: boolean;
  /** What it was told to wait for was being looked for or brought. */
  isUnderWay?: boolean;
  /** Its status tells that the hypervisor is away, by the category of that failure. */
  toldAway?: Failure["category"];
  /** What was last done and ended well, how often in a row, and the glance of that time. */
  done?: { readonly intent: string; readonly times: number; readonly glance?: Inventory };
  /** The step that ended well, until something else is done: then it had its effect. */
  ended?: { readonly intent: string; readonly step: string };
  /** What was last sent, told from others by a digest. */
  tried?: { readonly step: string; readonly digest: string };
  /** What may have been done or not, and what it is called if a look tells that it was not. */
  undone?: { readonly intent: string; readonly failure: Failure };
  /** What somebody else's lock was in the way of, and how often in a row. */
  blocked?: { readonly intent: string; readonly times: number };
  /** What it waits for, and since when, on the monotonic clock. */
  waits?: { readonly name: string; readonly sinceMs: number };
  /** The wait that people were told of, until it is over. */
  toldWait?: Waiting | undefined;
  /** The guest was asked to shut down, and did not. */
  isShutdownIgnored?: boolean;
  /** How often the agent was asked since the machine runs, and when it may be again. */
  agent?: { readonly times: number; readonly nextMs: number };
  /** What was seen before a step that leaves the machine as it is. What follows is bound to it. */
  sight?: Seen;
  /** The Claim that was reserved a moment ago, for which nothing was ever sent, and when. */
  reserved?: { readonly claim: string; readonly sinceMs: number };
  /** Volumes that keep it from being made under the id that was chosen for it. */
  inTheWay?: InTheWay;
  /** The operation whose task was asked to end. */
  cancelled?: string;
  /** What the hypervisor would refuse, found while something else was still missing. */
  ahead?: {
    readonly declaration: string;
    readonly untilMs: number;
    readonly findings: readonly Failure[];
  };
  /** The declaration whose additions to the standing machine were looked at, and were well. */
  additions?: string;
  /** Ids that turned out to be of no use. */
  avoid: string[];
}

/** One run. `vm` and `claim` become newer as it writes them. */
export interface Turn {
  readonly key: string;
  readonly deps: VmDeps;
  readonly memory: VmMemory;
  vm: VirtualMachine;
  claim?: Claim | undefined;
  /** The keeper that the Claim names, once it has a Claim of its own. */
  keeper?: Claim | undefined;
  connection?: Connection;
  seen?: Seen;
  /** The node that was chosen, also while something else is still missing. */
  node?: string;
  /** How the run failed, where it did. */
  failed?: StatusFailure;
  /** The operation in the status may still take effect. */
  isOpen: boolean;
}

/** A run that has found its hypervisor. */
export interface ConnectedTurn extends Turn {
  readonly connection: Connection;
  readonly driver: HypervisorDriver;
}

/** Progress is written at most this often; what matters is written at once, as a new wait does. */
const progressMs = 10_000;

/** Writes the status, if it says something new. */
export async function writeView(
  turn: Turn,
  view: VmView,
  urgency: "now" | "progress" = "now",
): Promise<void> {
  const { deps, memory } = turn;
  const nowMs = deps.clock.nowMs();
  if (urgency === "progress" && isTooEarly(turn, view, nowMs)) return;
  const { waitingFor: waited } = turn.vm.status ?? {};
  const open = turn.isOpen ? { operation: turn.vm.status?.operation } : {};
  const known = { claim: turn.claim?.spec, seen: turn.seen, ...open };
  const status = statusOf(turn.vm, { ...known, ...view }, nowMs);
  const written = await writeStatus<VirtualMachine>(
    deps.client.of(virtualMachineKind),
    turn.vm,
    status,
  );
  if (written !== turn.vm) {
    memory.lastWriteMs = nowMs;
    turn.vm = deps.vms.note(written);
  }
  tellWait(turn, view.state, waited);
}

function isTooEarly(turn: Turn, { state }: VmView, nowMs: number): boolean {
  const isEarly = nowMs - (turn.memory.lastWriteMs ?? 0) < progressMs;
  return isEarly && !isNewsOfWait(turn, state);
}

/**
 * Nobody can look at the machine now: it is Unknown, whatever it was. What was never seen is not
 * unknown by that, because there is nothing yet to be seen.
 */
export function loseSight(turn: Turn, failure: Failure): void {
  if (turn.vm.status?.disks !== undefined) turn.seen = { at: "unknown", failure };
}

/** Something ended well. Whether it had its effect is seen by looking. */
export function noteDone(
  { memory, connection }: ConnectedTurn,
  { intent, step }: Pick<StatusOperation, "intent" | "step">,
): void {
  memory.ended = { intent, step };
  delete memory.blocked;
  const times = memory.done?.intent === intent ? memory.done.times : 0;
  memory.done = { intent, times: times + 1, glance: connection.inventory };
}

/** What a person can change: as long as it is the same, an old failure is still the same. */
export function declarationOf({ metadata }: VirtualMachine): string {
  const { generation = 0, deletionTimestamp = "" } = metadata;
  const asked = annotationOf(metadata, "reconcileAt") ?? "";
  const forgotten = annotationOf(metadata, "forget") ?? "";
  return [generation, deletionTimestamp, asked, forgotten].join("\n");
}

export function annotationOf(
  { annotations: written }: VirtualMachine["metadata"],
  name: keyof typeof annotations,
): string | undefined {
  return written?.[annotations[name]];
}

export function isDeleting({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** The slots of work that has ended. */
export function releaseSlots({ memory }: Turn): void {
  memory.lease?.release();
  delete memory.lease;
}

/** The outcome of the operation in the status is known. */
export function settle(turn: Turn): void {
  const { memory, vm } = turn;
  turn.isOpen = false;
  delete memory.task;
  if (vm.status?.operation !== undefined) memory.settledId = vm.status.operation.id;
  releaseSlots(turn);
}
