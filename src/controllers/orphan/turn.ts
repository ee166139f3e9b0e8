import { orphanKind } from "../../api/index.ts";
import type { ClaimSpec, Hypervisor, Orphan, VirtualMachine } from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Failure, Fence, Leftover, Machine } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { ApiError } from "../../kernel/status.ts";
import {
  again,
  nextAttempt,
  settled,
  stalled,
  writeStatus,
  type EventRecorder,
  type Outcome,
  type SlotLease,
  type Slots,
} from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import { describeFailure } from "../failures/index.ts";
import { slotNames, type Connection, type Connections } from "../hypervisor/index.ts";
import type { Find } from "./find.ts";
import type { OrphanFigures, Sighting, SweepMemory, Sweeps } from "./memory.ts";
import { orphanStatusOf, type OrphanOperation, type OrphanState } from "./status.ts";

export interface OrphanDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly events: EventRecorder;
  readonly fence: Fence;
  readonly figures: OrphanFigures;
  readonly sweeps: Sweeps;
  readonly orphans: WrittenObjects<Orphan>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly memory: Map<string, OrphanMemory>;
  /** The same as those of the machines: a hypervisor does only so much at once. */
  readonly slots: Slots;
  readonly wake: (name: string) => void;
  /** Whether machines may be destroyed at all: not while their kind goes away. */
  readonly mayDestroy: () => Promise<boolean>;
  /** What of a declaration its namespace may not have. */
  readonly forbidden: (vm: VirtualMachine, hypervisor: Hypervisor) => Failure | undefined;
  /** All that goes with a machine. */
  readonly namedVolumes: (
    claim: ClaimSpec,
    machine: Machine,
    leftovers: readonly Leftover[],
  ) => NonNullable<ClaimSpec["volumes"]>;
  /** It is out of the way: who failed because of it looks again. */
  readonly destroyed: (hypervisor: string, externalId: string) => void;
}

/** What a process remembers of an Orphan between runs. All of it can be lost. */
export interface OrphanMemory {
  /** The operation whose work is over, and how many sweeps had begun by then. */
  settled?: {
    readonly operationId: string;
    readonly atSweep: number;
    /** Nobody said how it ended: all that was heard of it. */
    readonly lost?: string;
  };
  /** Not before, unless a person says something else. */
  retry?: { readonly atMs: number; readonly generation: number };
  /** Since when it is known to be destroyed. */
  goneAtMs?: number;
  /** The slots of its work, while that goes on. */
  lease?: SlotLease;
  /** What it waits for, and how often it has looked. */
  waits?: { readonly name: string; readonly times: number };
}

/** One run. `orphan` becomes newer as it is written. */
export interface OrphanTurn {
  readonly key: string;
  readonly deps: OrphanDeps;
  readonly memory: OrphanMemory;
  readonly connection: Connection;
  readonly sweep: SweepMemory;
  readonly find: Find | undefined;
  readonly sighting: Sighting | undefined;
  orphan: Orphan;
  /** It stands in line for slots. */
  isInLine?: boolean;
}

/** Takes the slots of its work; false: they are taken, and it is woken when its turn has come. */
export function takeSlots(turn: OrphanTurn, node: string | undefined): boolean {
  const { deps, key, memory, connection } = turn;
  memory.lease?.release();
  const names = slotNames(connection, node, undefined);
  const lease = deps.slots.tryAcquire(names, holderOf(key), { wake: () => deps.wake(key) });
  turn.isInLine = lease === "waiting";
  if (lease === "waiting") return false;
  memory.lease = lease;
  return true;
}

/** Work that an earlier process began takes its slots all the same. */
export function assumeSlots({ deps, key, memory, connection, orphan }: OrphanTurn): void {
  const names = slotNames(connection, orphan.status?.node, undefined);
  memory.lease ??= deps.slots.assume(names, holderOf(key));
}

/** Where nothing goes on any more, and it does not stand in line, it needs no slot. */
export function leaveSlots({ deps, key, memory, orphan, isInLine }: OrphanTurn): void {
  const open = orphan.status?.operation?.id;
  const goesOn = open !== undefined && memory.settled?.operationId !== open;
  if (goesOn || isInLine === true) return;
  dropSlots(key, deps);
  delete memory.lease;
}

/** Of an Orphan that is no more. */
export function dropSlots(key: string, { slots }: Pick<OrphanDeps, "slots">): void {
  slots.leave(holderOf(key));
}

/** Beside the machines, which are known by their namespace and name. */
function holderOf(key: string): string {
  return `orphan ${key}`;
}

/** Writes the status, if it says something new. */
export async function writeOrphan(
  turn: OrphanTurn,
  state: OrphanState,
  operation?: OrphanOperation,
): Promise<void> {
  const { deps, find, sighting } = turn;
  const view = { state, find, sighting, operation };
  const status = orphanStatusOf(turn.orphan, view, deps.clock.nowMs());
  const objects = deps.client.of(orphanKind);
  turn.orphan = deps.orphans.note(await writeStatus<Orphan>(objects, turn.orphan, status));
}

/** Says what failed and what comes next, by the one table of policies. */
export async function failOrphan(turn: OrphanTurn, failure: Failure): Promise<Outcome> {
  const { deps, memory, orphan } = turn;
  const old = orphan.status?.failure;
  const policy = categoryPolicies[failure.category];
  const isCounted = policy.next === "retry" || policy.next === "look";
  const isSame = old?.category === failure.category && isCounted;
  const attempts = isSame ? old.attempts + 1 : 1;
  const next = nextAttempt(policy, attempts, deps.random);
  const nowMs = deps.clock.nowMs();
  const isRetried = isCounted && next.type === "retry";
  const nextRetryMs = isRetried ? nowMs + next.afterMs : undefined;
  const described = describeFailure(failure, { nowMs, old, attempts, nextRetryMs });
  await writeOrphan(turn, { is: "failed", failure: described, isStalled: next.type === "stall" });
  if (next.type === "stall") return stalled(failure.category);
  memory.retry = { atMs: nowMs + next.afterMs, generation: orphan.metadata.generation ?? 0 };
  return again(failure.category, next.afterMs);
}

/** Deletes this very version of the object. It does nothing to the hypervisor. */
export async function removeOrphan(
  { metadata }: Orphan,
  deps: Pick<OrphanDeps, "client" | "orphans" | "memory" | "slots">,
): Promise<Outcome> {
  const { name = "", uid = "", resourceVersion = "" } = metadata;
  try {
    const preconditions = { uid, resourceVersion };
    await deps.client.of(orphanKind).delete({ name }, { preconditions });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
  deps.orphans.forget(name);
  deps.memory.delete(name);
  dropSlots(name, deps);
  return settled;
}
