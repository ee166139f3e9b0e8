import type { ClaimedMachine, Leftover } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { AllocatingTasks, DeadTask } from "./made-volumes.ts";
import type { ListedVolume } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";
import { guard } from "../../kernel/guard.ts";

type Allocation = NonNullable<ClaimedMachine["allocation"]>;

/** What a killed worker had started may write on for some seconds, and times are whole seconds. */
const slackMs = 10_000;

export interface Judged {
  readonly allocation: Allocation;
  readonly tasks: AllocatingTasks;
  readonly claim: ClaimedMachine;
  /** Storages that another cluster may use. */
  readonly shared: ReadonlySet<string>;
}

type Verdict = Pick<Leftover, "proof" | "evidence">;

const nobodys: Verdict = { proof: "Unattributed" };

/**
 * Whose a volume is that neither the Claim names nor the machine refers to. By the log of our own
 * dead task it is ours; by everything else together it is so only probably.
 */
export function judgeVolume(row: ListedVolume, judged: Judged): Verdict {
  const { allocation, tasks } = judged;
  // What was listed before the operation began was not made by it.
  const isNew = !allocation.listed.includes(row.volume);
  if (!guard("probable-not-listed-before", isNew)) return nobodys;
  const logged = tasks.died.find(({ volumes }) => volumes.has(row.volume));
  const isLeft = logged !== undefined && isLeftBy(row, allocation, logged);
  if (logged !== undefined && guard("logged-volume-left", isLeft)) {
    return { proof: "TaskLogged", evidence: [`The log of our task ${logged.task.task} names it.`] };
  }
  if (!guard("probable-no-stranger", tasks.stranger === undefined)) return nobodys;
  // What the operation left was looked for: what came after that may be anybody's.
  const isAfter = allocation.settledAt !== undefined && row.createdMs === undefined;
  if (!guard("probable-not-after", !isAfter)) return nobodys;
  const died = tasks.died.find((one) => guard("probable-in-time", isInTime(row, one)));
  if (died === undefined || !fits(row, judged)) return nobodys;
  return { proof: "Probable", evidence: evidenceOf(row, allocation, died) };
}

function fits({ volume, sizeBytes }: ListedVolume, { allocation, claim, shared }: Judged): boolean {
  const { storage, complete, size, also = [] } = allocation;
  const where = parseVolume(volume)?.storage ?? "";
  const there = [{ storage, size }, ...also].filter((one) => {
    return guard("probable-same-storage", one.storage === where);
  });
  const isAsked = there.some((one) => Number(one.size) === sizeBytes);
  return (
    guard("probable-list-whole", complete) &&
    // On a storage that another cluster may use, only a log tells.
    guard("probable-on-private-storage", !shared.has(where)) &&
    guard("probable-same-size", isAsked) &&
    guard("probable-automatic-name", isAutomatic(volume, claim.externalId))
  );
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
 * what a failed task freed, or what was removed since, may be a stranger's new volume. Where the
 * storage tells when it was made, that decides; else a killed task's is believed only until what it
 * left was looked for.
 */
function isLeftBy(row: ListedVolume, { settledAt }: Allocation, died: DeadTask): boolean {
  if (row.createdMs !== undefined) return isInTime(row, died);
  return died.isKilled && settledAt === undefined;
}

function evidenceOf(
  { volume, sizeBytes, createdMs }: ListedVolume,
  { since }: Allocation,
  { task }: DeadTask,
): string[] {
  const { storage = "" } = parseVolume(volume) ?? {};
  return [
    `The storage ${storage} was listed at ${since}, just before our operation began, without it.`,
    `It has exactly the size of a volume that the operation makes: ${sizeBytes} bytes.`,
    `Its name ${volume} is one that the hypervisor chooses by itself.`,
    createdMs === undefined
      ? "The storage does not tell when it was created."
      : `It was created at ${formatTime(createdMs)}, while the task was running.`,
    `Our task ${task.task} did not end well: ${task.end ?? "without an end"}.`,
    "No task of anybody else on this id is known since then.",
  ];
}
