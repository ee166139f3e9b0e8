import type { Failure, RecallTarget } from "../../hypervisor/index.ts";
import { again, stalled, type Outcome } from "../../runtime/index.ts";
import { claimName, fileId } from "../claims/index.ts";
import { slotNames } from "../hypervisor/index.ts";
import {
  ageMs,
  failedTimes,
  heldStep,
  holders,
  pauseMs,
  performOperation,
  pollMs,
  resumeOperation,
  type OperationRecord,
  type Performed,
  type PlannedOperation,
  type Resumed,
  type StepTraits,
  type Subject,
} from "../operations/index.ts";
import { comingCopy, copyAt, countedCopy, recordOf, withCopy, type CopyWork } from "./copies.ts";
import { failCopy, failedCopy, tellHeld } from "./failing.ts";
import { forgetDownload, noteUploadTask, reserveFile } from "./file-claims.ts";
import { fileNameOf, placeKey, type Copy } from "./plan.ts";
import { fileOf } from "./steps.ts";
import { isUnreachable } from "./status.ts";
import { copiesOf, writeImage, type ImageTurn } from "./turn.ts";
import { guard } from "../../kernel/guard.ts";

const windowMs = 60_000;
const lookMs = 2_000;
const progressMs = 10_000;
const fencedMs = 1_000;
const slotMs = 30_000;
const lockTextMax = 512;

const traits: Readonly<Record<string, StepTraits>> = {
  Download: { windowMs, works: ["Download"] },
  Upload: { windowMs, works: ["Upload"] },
  Remove: { windowMs, works: ["RemoveFile"] },
};

/** One copy of an image as the operations engine sees it. */
function subjectOf(turn: ImageTurn, { connection, node, place }: CopyWork): Subject {
  return {
    holder: holders.copy(turn.key, placeKey(place)),
    driver: connection.driver,
    hypervisor: connection.name,
    object: () => turn.image,
    record: () => recordOf(turn.image, place),
    traitsOf: (step) => traits[step] ?? { windowMs, works: [] },
    recalls: ({ step }) => ({
      target: recalledFile(turn, { node, place }),
      hints: step === "Upload" ? { does: "Upload" } : {},
    }),
    slotsOf: () => slotNames(connection, node, place.storage),
    save: (record) => saveRecord(turn, { connection, node, place }, record),
    saveBlocked: (record, waitsFor) => saveBlocked(turn, { place, record }, waitsFor),
  };
}

function recalledFile(
  { image }: ImageTurn,
  { node, place }: Pick<CopyWork, "node" | "place">,
): RecallTarget {
  const { fileName = fileNameOf(image) } = copyAt(copiesOf({ image }), place) ?? {};
  return { node, storage: place.storage, fileName };
}

/** The record of a copy, durable. A copy that is only coming says so. */
async function saveRecord(
  turn: ImageTurn,
  { place, connection }: CopyWork,
  operation: OperationRecord,
): Promise<void> {
  const known = copyAt(copiesOf(turn), place);
  // A part that is written over gets another time.
  const { createdAt: _old, ...lasting } = known ?? {};
  const { storage, node } = place;
  const claim = claimName(connection.systemId, fileId({ ...fileOf(turn.image), storage, node }));
  const coming =
    known?.state === "Present" ? known : { ...lasting, ...comingCopy(turn.image, place, claim) };
  const { bytesTotal } = operation.progress ?? {};
  const size = bytesTotal === undefined ? {} : { size: String(bytesTotal) };
  const copy: Copy = {
    ...(operation.step === "Remove" ? (known ?? coming) : coming),
    ...size,
    operation,
  };
  await writeImage(turn, { copies: withCopy(copiesOf(turn), copy) });
}

/** Somebody's lock is in the way: that is no failure, and no attempt is counted. */
async function saveBlocked(
  turn: ImageTurn,
  { place, record: operation }: Pick<CopyWork, "place"> & { readonly record: OperationRecord },
  waitsFor: string,
): Promise<void> {
  const known = copyAt(copiesOf(turn), place) ?? comingCopy(turn.image, place);
  const waitingFor = { kind: "Lock", name: waitsFor.slice(0, lockTextMax) } as const;
  await writeImage(turn, {
    copies: withCopy(copiesOf(turn), { ...known, operation }),
    waitingFor,
  });
}

/** The operation of a copy; or an outcome while it goes on, waits or has failed. */
export type ResumedWork =
  | { readonly is: "waiting"; readonly outcome: Outcome }
  | { readonly is: "known"; readonly before: Resumed | undefined };

/** Finds out what became of the open operation of a copy. */
export async function resumeWork(turn: ImageTurn, work: CopyWork): Promise<ResumedWork> {
  const before = await resumeOperation(turn.deps.operations, subjectOf(turn, work));
  if (before === undefined) return { is: "known", before };
  const outcome = await concludeResumed(turn, work, before);
  return outcome === undefined ? { is: "known", before } : { is: "waiting", outcome };
}

/** An outcome while it is open or waits; undefined where the file is to be looked for now. */
async function concludeResumed(
  turn: ImageTurn,
  work: CopyWork,
  resumed: Resumed,
): Promise<Outcome | undefined> {
  const { record, settlement, task } = resumed;
  if (settlement.is === "failed" || settlement.is === "doubtful") {
    await noteUploadTask(turn, work, { record, task });
  }
  switch (settlement.is) {
    case "running":
      await tellReached(turn, work, { ...record, task: settlement.task });
      return again(record.step, pollMs(turn.deps.operations, subjectOf(turn, work), record));
    case "sending":
      await tellProgress(turn, record);
      return again(record.step, lookMs);
    case "unseen":
      return failCopy(turn, work, { failure: settlement.failure });
    case "blocked":
      return pauseBlocked(turn, work, resumed);
    case "failed":
      return failWork(turn, work, { failure: settlement.failure, record });
    case "unconfirmed":
    case "ended":
    case "doubtful":
    case "ignored":
      return undefined;
  }
}

/** The engine wrote what it waits for. Until its time has come again nothing is listed either. */
function pauseBlocked(turn: ImageTurn, work: CopyWork, resumed: Resumed): Outcome | undefined {
  const waitMs = pauseMs(turn.deps.operations, subjectOf(turn, work), resumed);
  return waitMs > 0 ? again("Blocked", waitMs) : undefined;
}

/**
 * A download that failed leaves neither a file nor a Claim. The failure is written first: while it
 * is not, the Claim tells what was tried.
 */
async function failWork(
  turn: ImageTurn,
  work: CopyWork,
  failed: { readonly failure: Failure; readonly record: OperationRecord },
): Promise<Outcome> {
  const { record } = failed;
  if (record.step !== "Download") return failCopy(turn, work, failed);
  const end = { category: failed.failure.category, record };
  const { claim: _gone, ...known } = failedCopy(turn, work.place, end);
  const outcome = await failCopy(turn, work, { ...failed, copy: { ...known, brought: false } });
  await forgetDownload(turn, work, record);
  return outcome;
}

/** The hypervisor answers again: that it did not is told no longer. */
async function tellReached(
  turn: ImageTurn,
  { place }: CopyWork,
  operation: OperationRecord,
): Promise<void> {
  const copy = copyAt(copiesOf(turn), place);
  if (copy?.failure === undefined || !isUnreachable(copy.failure)) return;
  const { failure: _over, ...known } = copy;
  await writeImage(turn, { copies: withCopy(copiesOf(turn), { ...known, operation }) });
}

/** One write for all places, however many files are sent at once. */
async function tellProgress(turn: ImageTurn, record: OperationRecord): Promise<void> {
  const { seen } = turn.cache;
  const { clock } = turn.deps;
  const nowMs = clock.monotonicMs();
  const isTold = nowMs - (seen.get("progress") ?? -Infinity) < progressMs;
  if (isTold || ageMs(record, clock) < progressMs) return;
  seen.set("progress", nowMs);
  await writeImage(turn, { copies: copiesOf(turn).map((copy) => withProgress(turn, copy)) });
}

function withProgress({ cache }: ImageTurn, copy: Copy): Copy {
  const { operation } = copy;
  const sent = cache.sent?.get(operation?.id ?? "");
  if (operation === undefined || sent === undefined) return copy;
  const bytesTotal = operation.progress?.bytesTotal ?? 0;
  const percent = Math.floor((sent.doneBytes / Math.max(bytesTotal, 1)) * 100);
  const progress = { percent, bytesDone: sent.doneBytes, bytesTotal };
  return { ...copy, operation: { ...operation, progress } };
}

/**
 * How long a step that failed at a place is not done again, whatever failed there since; undefined:
 * nothing holds it back.
 */
export async function heldBack(
  turn: ImageTurn,
  { place }: CopyWork,
  { step, before }: { readonly step: string; readonly before?: Resumed | undefined },
): Promise<Outcome | undefined> {
  if (before !== undefined) return undefined;
  const counted = countedCopy(turn.image, place);
  const held = heldStep(counted, { step }, turn.deps.clock.nowMs());
  if (guard("copy-step-not-held", held === undefined) || held === undefined) return undefined;
  await tellHeld(turn, place, held.failed);
  return held.waitMs === Infinity ? stalled("GivenUp") : again("Backoff", held.waitMs);
}

export interface Performing {
  readonly planned: Omit<PlannedOperation, "slots" | "failedTimes">;
  readonly before: Resumed | undefined;
  /** What the record says beside the operation itself. */
  readonly progress?: OperationRecord["progress"];
  /** Told of the record when it is durable, before anything is sent. */
  readonly opened?: (record: OperationRecord) => void;
}

/** Performs one operation on a copy, and says what follows from it. */
export async function performWork(
  turn: ImageTurn,
  work: CopyWork,
  { planned, before, progress, opened }: Performing,
): Promise<Outcome> {
  const { deps, key } = turn;
  const { observeOnly } = work.connection;
  if (observeOnly !== undefined) return failCopy(turn, work, { failure: observeOnly });
  const performed = await performOperation(deps.operations, subjectOf(turn, work), {
    planned: {
      ...planned,
      slots: slotNames(work.connection, work.node, work.place.storage),
      failedTimes: failedTimes(countedCopy(turn.image, work.place), planned.step),
    },
    before,
    wake: () => deps.wake(key),
    prepare: (record) => prepareWork(turn, work, { record, size: progress?.bytesTotal }),
    write: async (record) => {
      await saveRecord(turn, work, progress === undefined ? record : { ...record, progress });
      opened?.(record);
    },
  });
  return concludePerformed(turn, work, performed);
}

/** What is brought is in the ledger before; what is removed is there already. */
async function prepareWork(
  turn: ImageTurn,
  work: CopyWork,
  begun: { readonly record: OperationRecord; readonly size: number | undefined },
): Promise<Failure | undefined> {
  return begun.record.step === "Remove" ? undefined : reserveFile(turn, work, begun);
}

async function concludePerformed(
  turn: ImageTurn,
  work: CopyWork,
  performed: Performed,
): Promise<Outcome> {
  switch (performed.is) {
    case "queued":
      return again("Slot", slotMs);
    case "fenced":
      return again("Fenced", fencedMs);
    case "blocked":
      return again("Blocked", performed.waitMs);
    case "unprepared":
      return failCopy(turn, work, { failure: performed.failure });
    case "vain": {
      const record = recordOf(turn.image, work.place);
      return failCopy(turn, work, { failure: performed.failure, record });
    }
    case "unreported":
    case "performed": {
      const resumed = performed.is === "performed" ? performed : performed.before;
      return (await concludeResumed(turn, work, resumed)) ?? again("LookAgain", lookMs);
    }
  }
}
