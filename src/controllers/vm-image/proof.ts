import type { Claim } from "../../api/index.ts";
import {
  answered,
  isSameFile,
  taskTimeSlackMs,
  type Answer,
  type KnownFile,
  type TaskHandle,
  type TaskSpan,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { FilePart } from "../claims/index.ts";
import { isDone, type Resumed } from "../operations/index.ts";
import type { CopyWork } from "./copies.ts";
import type { Copy } from "./plan.ts";

/** A file that is there, under a Claim that was written before it was brought. */
export interface Found {
  readonly claim: Claim;
  readonly there: KnownFile;
  /** The operation that was to bring it, as far as it is known. */
  readonly before: Resumed | undefined;
  /** What the status says of the copy: a part that was seen before is known by it. */
  readonly copy: Copy | undefined;
}

type FoundPart = Pick<Found, "there" | "copy"> & { readonly claim: Claim | undefined };

/**
 * Whether a file that is there is Berth's.
 *
 * - `open`: the hypervisor has not noticed yet that the task has ended: ask again.
 * - `unproven`: it stays, and the reason goes into its Claim.
 */
export type Proof =
  | { readonly is: "proven" }
  | { readonly is: "open" }
  | { readonly is: "unproven"; readonly reason: string };

const proven: Proof = { is: "proven" };
const noProof =
  "a file of this name exists, and nothing proves that Berth brought it: it is left alone";
const unproven: Proof = { is: "unproven", reason: noProof };

/** Why the Claim of a file is released that is not proven. */
export function reasonOf(proof: Proof): string {
  return proof.is === "unproven" ? proof.reason : noProof;
}

/**
 * Whether a file that is there is what a Reserved Claim was written for, or the part of it that our
 * upload left. It was not there when the Claim was written, and anybody can put one there since,
 * under any name, also in the place of the one that our task brought. So a task of our own
 * operation has to have ended well, and the file has to be of its time.
 */
export async function proofOf(work: CopyWork, found: Found): Promise<Answer<Proof>> {
  const { claim, there, before } = found;
  const { file } = claim.spec;
  if (file === undefined) return answered(unproven);
  if (isPart(file, there)) return proofOfPart(work, found);
  const isDoneByIts = isDoneBy(before, file.operation?.id);
  if (!guard("brought-by-done-operation", isDoneByIts)) return answered(unproven);
  if (!guard("proven-file-size", isOfSentSize(file, there))) return answered(unproven);
  return isOfTask(work, before?.task, there);
}

/** The same for a file that is smaller than what our upload was to write. */
export async function proofOfPart(
  work: CopyWork,
  { claim, there, copy }: FoundPart,
): Promise<Answer<Proof>> {
  const { file } = claim?.spec ?? {};
  if (file === undefined || !isPart(file, there)) return answered(unproven);
  // Times are whole seconds: somebody may have put another file there in the same one.
  if (!guard("part-as-seen", isAsSeen(copy, there))) return answered(unproven);
  // It was proven before, and nothing wrote over it since.
  if (there.createdAt !== undefined && isSameTime(file, there)) return answered(proven);
  const { task } = file.operation ?? {};
  if (!guard("part-of-a-task", task !== undefined)) return answered(unproven);
  return isOfTask(work, task, there);
}

/** An upload writes under the whole name: what is smaller may be a part of it. */
function isPart({ operation, size }: FilePart, there: KnownFile): boolean {
  return operation?.step === "Upload" && Number(there.size) < Number(size);
}

/** How large a download becomes is not known before. */
function isOfSentSize({ operation, size }: FilePart, there: KnownFile): boolean {
  const isSent = operation?.step === "Upload" && size !== undefined;
  return !isSent || Number(there.size) === Number(size);
}

/** A part has its time in the status from when it was first seen until it is written over. */
function isAsSeen(copy: Copy | undefined, there: KnownFile): boolean {
  const isSeen = copy?.state !== "Present" && copy?.createdAt !== undefined;
  return !isSeen || isSameFile(copy, there);
}

function isSameTime(known: KnownFile, there: KnownFile): boolean {
  return Date.parse(known.createdAt ?? "") === Date.parse(there.createdAt ?? "");
}

/** Of a file that was there before the request a driver says that it is done, without a task. */
function isDoneBy(before: Resumed | undefined, id: string | undefined): boolean {
  if (before === undefined || before.record.id !== id) return false;
  return isDone(before.settlement) && guard("brought-by-a-task", before.task !== undefined);
}

/**
 * Whether a task may have left a file as it is there. That the task ended well says nothing of what
 * somebody put in the place of its file afterwards; the time of the file does. Where the storage
 * reports none, the task is all that can be known; where nobody knows any more when the task ran,
 * nothing is proven.
 */
async function isOfTask(
  { connection, node }: CopyWork,
  task: TaskHandle | undefined,
  there: KnownFile,
): Promise<Answer<Proof>> {
  if (there.createdAt === undefined) return answered(proven);
  const span = await connection.driver.span?.(task ?? "", node);
  if (span?.ok === false) return span;
  return answered(judgeTime(Date.parse(there.createdAt), span?.value));
}

/** Pure. Both times are on the same clock, in whole seconds. */
export function judgeTime(createdMs: number, span: TaskSpan | undefined): Proof {
  if (span === undefined) return unproven;
  const { startedMs, endedMs } = span;
  if (endedMs === undefined) return { is: "open" };
  const isBefore = createdMs < startedMs - taskTimeSlackMs;
  const isAfter = createdMs > endedMs + taskTimeSlackMs;
  if (guard("file-not-before-task", !isBefore) && guard("file-not-after-task", !isAfter)) {
    return proven;
  }
  const when = isAfter ? "after the task of Berth had ended" : "before the task of Berth began";
  return {
    is: "unproven",
    reason: `the file of this name was created or changed ${when}: it is left alone`,
  };
}
