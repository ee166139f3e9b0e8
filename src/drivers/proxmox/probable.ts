import { taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { ClaimedMachine, Leftover } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { AllocatingTasks, DeadTask } from "./made-volumes.ts";
import type { ListedVolume } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";
import { guard } from "../../kernel/guard.ts";

type Allocation = NonNullable<ClaimedMachine["allocation"]>;

/** What a killed worker had started may write on for some seconds, and times are whole seconds. */
const slackMs = 10_000;

/** A task begins at once when its operation does, but for a request that waits for its turn. */
const beginsWithinMs = 60_000;

/** ZFS and RBD volumes have whole MiB, logical volumes whole extents of 4 MiB. */
const unitsBytes = [1, 1024 ** 2, 4 * 1024 ** 2] as const;

export interface Judged {
  readonly allocation: Allocation;
  readonly tasks: AllocatingTasks;
  readonly claim: ClaimedMachine;
  /** Storages that another cluster may use. */
  readonly shared: ReadonlySet<string>;
  /** Storages whose files may have the time of a server that nobody can ask for its clock. */
  readonly remote: ReadonlySet<string>;
}

type Verdict = Pick<Leftover, "proof" | "evidence">;

const nobodys: Verdict = { proof: "Unattributed" };

/**
 * Whose a volume is that neither the Claim names nor the machine refers to. By the log of our own
 * dead task it is ours, if nothing else speaks against it; by everything but a log it is so only
 * probably.
 */
export function judgeVolume(row: ListedVolume, judged: Judged): Verdict {
  const { allocation, tasks } = judged;
  // What was listed before the operation began was not made by it.
  const isNew = !allocation.listed.includes(row.volume);
  if (!guard("probable-not-listed-before", isNew)) return nobodys;
  const logged = tasks.died.find(({ volumes }) => volumes.has(row.volume));
  return (logged && judgeLogged(row, judged, logged)) ?? judgeUnlogged(row, judged);
}

/** Of a volume that the log of our own task names. Undefined: the log proves nothing. */
function judgeLogged(row: ListedVolume, judged: Judged, died: DeadTask): Verdict | undefined {
  // The name was free again: what has it now is another volume.
  const isRemoved = died.removed.has(row.volume);
  if (!guard("logged-volume-not-removed", !isRemoved)) return nobodys;
  if (!guard("logged-volume-left", isLeftBy(row, judged, died))) return undefined;
  return { proof: "TaskLogged", evidence: [`The log of our task ${died.task.task} names it.`] };
}

function judgeUnlogged(row: ListedVolume, judged: Judged): Verdict {
  const { allocation, tasks } = judged;
  if (!guard("probable-no-stranger", tasks.stranger === undefined)) return nobodys;
  // What the operation left was looked for: what came after that may be anybody's.
  const isAfter = allocation.settledAt !== undefined && row.createdMs === undefined;
  if (!guard("probable-not-after", !isAfter)) return nobodys;
  const died = tasks.died.find((one) => guard("probable-in-time", isInTime(row, one)));
  if (died === undefined || !fits(row, judged)) return nobodys;
  return { proof: "Probable", evidence: evidenceOf(row, allocation, died) };
}

function fits(row: ListedVolume, { allocation, claim, shared }: Judged): boolean {
  const { volume } = row;
  return (
    guard("probable-list-whole", allocation.complete) &&
    // On a storage that another cluster may use, only a log tells.
    guard("probable-on-private-storage", !shared.has(storageOf(volume))) &&
    guard("probable-same-size", isAskedSize(row, allocation)) &&
    guard("probable-automatic-name", isAutomatic(volume, claim.externalId))
  );
}

/** Whether the operation makes a volume of exactly this size on this storage. */
function isAskedSize(
  { volume, sizeBytes, isApproximate }: ListedVolume,
  { storage, size, also = [] }: Allocation,
): boolean {
  const where = storageOf(volume);
  const there = [{ storage, size }, ...also].filter((one) => {
    return guard("probable-same-storage", one.storage === where);
  });
  const exact = there.flatMap(({ size: asked }) => {
    if (asked === undefined) return [];
    return unitsBytes.map((unit) => Math.ceil(Number(asked) / unit) * unit);
  });
  return isApproximate !== true && exact.includes(sizeBytes);
}

function storageOf(volume: string): string {
  return parseVolume(volume)?.storage ?? "";
}

/** A name as the hypervisor chooses it. It proves nothing; another name proves the opposite. */
export function isAutomatic(volume: string, externalId: string): boolean {
  const name = /[:/](vm-\d+-[^/:]+)$/.exec(volume)?.[1] ?? "";
  const rest = name.startsWith(`vm-${externalId}-`) ? name.slice(`vm-${externalId}-`.length) : "";
  return /^(?:disk-\d+|cloudinit|state-suspend-\d{4}-\d\d-\d\d)(?:\.\w+)?$/.test(rest);
}

/**
 * Where the storage tells when it was made, that is while our task was at work. Both times are of
 * the same node, so that they are compared on its clock, whatever that says.
 */
function isInTime({ createdMs }: ListedVolume, { task }: DeadTask): boolean {
  if (createdMs === undefined) return true;
  const { startMs, endMs = Infinity, aheadMs } = task;
  const hereMs = createdMs - aheadMs;
  return hereMs >= startMs - slackMs && hereMs <= endMs + slackMs;
}

/**
 * Whether it is the very volume that a task named. A name is free again when the volume is gone:
 * what a failed task freed, or what was removed since, may be a stranger's new volume. So its size
 * has to be the one that was asked for, and its time one at which the task was at work. Where no
 * time of the node tells that, a killed task's is believed only until what it left was looked for.
 */
function isLeftBy(row: ListedVolume, judged: Judged, died: DeadTask): boolean {
  const { allocation, tasks, remote } = judged;
  const { isKilled } = died;
  const isTold = row.createdMs !== undefined && !remote.has(storageOf(row.volume));
  const isOpen = isKilled && allocation.settledAt === undefined;
  return (
    guard("logged-volume-size", isAskedSize(row, allocation)) &&
    guard("logged-volume-clock-kept", isClockKept(died, allocation)) &&
    guard("logged-volume-in-time", isMadeDuring(row, died)) &&
    // A task that failed has freed what it made: who has worked there since may have made this.
    guard("logged-volume-no-stranger", isKilled || tasks.stranger === undefined) &&
    guard("logged-volume-dated", isTold || isOpen)
  );
}

/**
 * The times of volumes and tasks are compared on the clock of their node, as each was written down
 * when it happened. A clock that was set since then may write the time of our task once more: then
 * the task seems, by what the clock says now, not to have begun when its operation did.
 */
function isClockKept({ task }: DeadTask, { since }: Allocation): boolean {
  const { startMs, endMs = Infinity } = task;
  const afterMs = startMs - Date.parse(since);
  return afterMs >= -taskTimeSlackMs && afterMs <= beginsWithinMs && endMs >= startMs;
}

/** As `isInTime`, but what a failed task made is older than the end of its task. */
function isMadeDuring(row: ListedVolume, died: DeadTask): boolean {
  const { createdMs } = row;
  if (createdMs === undefined || died.isKilled) return isInTime(row, died);
  const { startMs, endMs = 0, aheadMs } = died.task;
  const hereMs = createdMs - aheadMs;
  return hereMs >= startMs && hereMs < endMs;
}

function evidenceOf(
  { volume, sizeBytes, createdMs }: ListedVolume,
  { since }: Allocation,
  { task }: DeadTask,
): string[] {
  return [
    `The storage ${storageOf(volume)} was listed at ${since}, just before our operation began, ` +
      "without it.",
    `It has exactly the size of a volume that the operation makes: ${sizeBytes} bytes.`,
    `Its name ${volume} is one that the hypervisor chooses by itself.`,
    createdMs === undefined
      ? "The storage does not tell when it was created."
      : `It was created at ${formatTime(createdMs)}, while the task was running.`,
    `Our task ${task.task} did not end well: ${task.end ?? "without an end"}.`,
    "No task of anybody else on this id is known since then.",
  ];
}
