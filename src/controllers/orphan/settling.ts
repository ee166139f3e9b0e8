import { again, type Outcome } from "../../runtime/index.ts";
import { claimName } from "../claims/index.ts";
import { slotNames } from "../hypervisor/index.ts";
import {
  holders,
  isDone,
  pauseMs,
  pollMs,
  resumeOperation,
  type FailedOperation,
  type OperationRecord,
  type RecallOf,
  type Resumed,
  type Settlement,
  type StepTraits,
  type Subject,
} from "../operations/index.ts";
import { failOrphan } from "./failing.ts";
import type { OrphanState } from "./status.ts";
import { readClaim } from "./steps.ts";
import { writeOrphan, type OrphanTurn } from "./turn.ts";

/** The longest that a server holds a request, and then some. */
const windowMs = 60_000;
const fencedMs = 1_000;
const sendingMs = 1_000;
/** How often is asked for a task while its reply is lost. */
const recallMs = 10_000;
const changedMs = 5_000;

const traits: Readonly<Record<string, StepTraits>> = {
  Destroy: { windowMs, works: ["Destroy", "RemoveFile", "Other"] },
  Unlock: { windowMs, works: ["Configure"] },
  Release: { windowMs, works: ["Configure"] },
};

/** What a person is shown while it is done. */
export type WorkReason = Extract<OrphanState, { is: "working" }>["reason"];

/** An Orphan as the operations engine sees it. */
export function subjectOf(turn: OrphanTurn): Subject {
  const { key, connection } = turn;
  return {
    holder: holders.orphan(key),
    driver: connection.driver,
    hypervisor: connection.name,
    object: () => turn.orphan,
    record: () => turn.orphan.status?.operation,
    traitsOf: (step) => traits[step] ?? { windowMs, works: [] },
    recalls: (record) => recallsOf(turn, record),
    slotsOf: ({ step }) => slotsFor(turn, step, turn.orphan.status?.node),
    save: (record) => saveRecord(turn, record),
    saveBlocked: (record, waitsFor) => saveBlocked(turn, record, waitsFor),
  };
}

/** The slots of a step. To write a marker takes none. */
export function slotsFor(
  { connection }: OrphanTurn,
  step: string,
  node: string | undefined,
): string[] {
  return step === "Release" ? [] : slotNames(connection, node, undefined);
}

async function saveRecord(turn: OrphanTurn, operation: OperationRecord): Promise<void> {
  const state = { is: "working", reason: reasonOf(turn), message: operation.intent } as const;
  await writeOrphan(turn, state, { operation });
}

/** Somebody's lock is in the way: that is no failure, and no attempt is counted. */
async function saveBlocked(
  turn: OrphanTurn,
  operation: OperationRecord,
  waitsFor: string,
): Promise<void> {
  await writeOrphan(turn, { is: "waiting", for: "Lock", name: waitsFor }, { operation });
}

function reasonOf({ orphan }: OrphanTurn): WorkReason {
  const { decision } = orphan.spec;
  if (decision === "Adopt") return "Adopting";
  return decision === undefined ? "DestroyingByPolicy" : "Destroying";
}

/** Whose work it is: that of a file, or of the VM whose Claim knows it. */
async function recallsOf(
  turn: OrphanTurn,
  { step }: OperationRecord,
): Promise<RecallOf | undefined> {
  const { kind } = turn.orphan.spec;
  if (kind === "ISO" || kind === "Image") return recallsOfFile(turn);
  const { node, ownership } = turn.orphan.status ?? {};
  // The VM of that Claim may exist, and what is done to it is other work.
  if (ownership === "Probable") return undefined;
  const claim = await readClaim(turn, claimOf(turn));
  if (claim === undefined) return undefined;
  // A Claim says where a VM was destroyed; all else is done where the sweep found it.
  const where = step === "Destroy" ? (claim.spec.node ?? node) : (node ?? claim.spec.node);
  return where === undefined ? undefined : { target: { ...claim.spec, node: where } };
}

function recallsOfFile({ orphan }: OrphanTurn): RecallOf | undefined {
  const { node, storage, fileName } = orphan.status ?? {};
  if (node === undefined || storage === undefined || fileName === undefined) return undefined;
  return { target: { node, storage, fileName } };
}

/** The name of the Claim that knows it. */
function claimOf({ orphan, connection }: OrphanTurn): string {
  const { kind, externalId } = orphan.spec;
  const isVm = kind === "Machine" || kind === "Husk";
  return isVm ? claimName(connection.systemId, externalId) : (orphan.status?.claim ?? "");
}

/**
 * Finds out what became of the operation in the status: an outcome where the turn ends here,
 * because it goes on, waits or has failed.
 */
export async function settleOperation(turn: OrphanTurn): Promise<Outcome | undefined> {
  turn.operation = await resumeOperation(turn.deps.operations, subjectOf(turn));
  return turn.operation && concludeSettlement(turn, turn.operation);
}

/** The one place where what became of an operation turns into what happens next. */
export async function concludeSettlement(
  turn: OrphanTurn,
  resumed: Resumed,
): Promise<Outcome | undefined> {
  const { record, settlement } = resumed;
  switch (settlement.is) {
    case "running":
      return again(record.step, pollMs(turn.deps.operations, subjectOf(turn), record));
    case "sending":
      return again(record.step, sendingMs);
    case "unconfirmed":
      // A marker tells by itself whether it was written.
      return record.step === "Release" ? undefined : waitUnconfirmed(settlement);
    case "unseen":
      return failOrphan(turn, settlement.failure);
    case "blocked":
      return pauseBlocked(turn, resumed);
    case "failed":
      return failOperation(turn, { record, settlement });
    case "ended":
      return concludeEnded(turn, resumed, settlement.outcome);
    case "doubtful":
    case "ignored":
      return undefined;
  }
}

/** Until its window ends it may still take effect, and nothing is repeated. */
export function waitUnconfirmed({ leftMs }: Extract<Settlement, { is: "unconfirmed" }>): Outcome {
  return again("Unconfirmed", Math.min(leftMs, recallMs));
}

/** Reports that an operation failed. By that write its record goes, and not before. */
export function failOperation(
  turn: OrphanTurn,
  { record, settlement }: FailedOperation,
): Promise<Outcome> {
  return failOrphan(turn, settlement.failure, { step: record.step, key: record.key });
}

/** The engine wrote what it waits for. */
function pauseBlocked(turn: OrphanTurn, resumed: Resumed): Outcome | undefined {
  const waitMs = pauseMs(turn.deps.operations, subjectOf(turn), resumed);
  return waitMs > 0 ? again("Blocked", waitMs) : undefined;
}

async function concludeEnded(
  turn: OrphanTurn,
  resumed: Resumed,
  outcome: Extract<Settlement, { is: "ended" }>["outcome"],
): Promise<Outcome | undefined> {
  switch (outcome) {
    case "Done":
      return undefined;
    case "Fenced":
      await writeOrphan(turn, {
        is: "waiting",
        for: "Leader",
        name: "the lease of the controllers",
      });
      return again("Fenced", fencedMs);
    case "Progressed":
    case "Changed":
      return pauseChanged(turn, resumed);
  }
}

/** It is not as it was seen, so nothing was done: everything is listed again. */
async function pauseChanged(turn: OrphanTurn, resumed: Resumed): Promise<Outcome | undefined> {
  const waitMs = pauseMs(turn.deps.operations, subjectOf(turn), resumed);
  if (resumed.record.outcome !== undefined) {
    return waitMs > 0 ? again("Changed", waitMs) : undefined;
  }
  await writeOrphan(turn, changedState);
  turn.deps.sweeps.hurry(turn.orphan.spec.hypervisor);
  return again("Changed", Math.max(waitMs, changedMs));
}

export const changedState = {
  is: "waiting",
  for: "Dependency",
  name: "another look at it: it changed meanwhile",
} as const satisfies OrphanState;

/** Whether it ended in a way that only a list of everything can confirm. */
export function isToBeListed({ settlement }: Resumed): boolean {
  return isDone(settlement) || settlement.is === "doubtful" || settlement.is === "ignored";
}

/**
 * The last sweep that may not have seen what an operation did that has ended. A process that has
 * forgotten when it ended takes the newest, which only costs a further sweep.
 */
export function endedAtSweep(
  { memory, sweep }: Pick<OrphanTurn, "memory" | "sweep">,
  { id }: Pick<OperationRecord, "id">,
): number {
  const known = memory.ended;
  if (known?.id === id && known.atSweep <= sweep.begun) return known.atSweep;
  memory.ended = { id, atSweep: sweep.begun };
  return sweep.begun;
}
