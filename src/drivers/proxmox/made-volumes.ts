import { answered, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine } from "../../hypervisor/index.ts";
import { cloneIn } from "./clones.ts";
import type { DriverContext } from "./context.ts";
import { type ListedTask, listTasks, lostEnds, wholeLog } from "./tasks.ts";
import { guard } from "../../kernel/guard.ts";

type Allocation = NonNullable<ClaimedMachine["allocation"]>;

/** Tasks that make volumes of the VM whose id they bear. A clone bears the id of its source. */
const making: ReadonlySet<string> = new Set(["qmconfig", "qmcreate", "qmmove", "qmsuspend"]);

/** What the tasks on an id tell of an allocation. */
export interface AllocatingTasks {
  /** Our own tasks since it began that make volumes and did not end well, newest first. */
  readonly died: readonly DeadTask[];
  /** A task of somebody else on the id since it began, if there was one. */
  readonly stranger?: ListedTask;
}

export interface DeadTask {
  readonly task: ListedTask;
  /** Its worker was killed. One that failed frees what it made itself, as far as it can. */
  readonly isKilled: boolean;
  /** The ids of volumes that its log names as new. */
  readonly volumes: ReadonlySet<string>;
  /** Those of them that it removed again, as its log says. */
  readonly removed: ReadonlySet<string>;
}

/**
 * Our own tasks behind an allocation, by the token in their names. One that ended well has what it
 * made in the config, so only the others may have left something.
 */
export async function tasksBehindAllocation(
  context: DriverContext,
  { externalId }: ClaimedMachine,
  allocation: Allocation,
): Promise<Answer<AllocatingTasks>> {
  const { api, user } = context;
  const { node, since } = allocation;
  const sinceMs = Date.parse(since);
  const listed = await listTasks(context, { node, externalId, sinceMs });
  if (!listed.ok) return listed;
  const clones = await clonesBehind(context, allocation);
  if (!clones.ok) return clones;
  const isRecent = ({ startMs }: ListedTask): boolean => {
    return guard("allocating-task-recent", startMs >= sinceMs - taskTimeSlackMs);
  };
  const recent = listed.value.filter(isRecent);
  const own = recent
    .filter(({ type }) => making.has(type))
    .filter((one) => guard("allocating-task-of-ours", one.user === user));
  const died: DeadTask[] = [];
  for (const task of [...own, ...clones.value.filter(isRecent)].toSorted(newestFirst)) {
    if (!guard("allocating-task-dead", isDead(task))) continue;
    const lines = (await wholeLog(api, task.task)) ?? [];
    if (isOfAnother(task, lines, externalId)) continue;
    const volumes = volumesIn(lines, allocation, externalId);
    const removed = new Set([...volumes].filter((volume) => isRemovedIn(lines, volume)));
    died.push({ task, volumes, removed, isKilled: lostEnds.test(task.end ?? "") });
  }
  const stranger = recent.find((task) => task.user !== user && !isClearing(context, task));
  return answered({ died, ...(stranger === undefined ? {} : { stranger }) });
}

/** The account for unlocking is used to destroy placeholder VMs, which makes no volume. */
function isClearing({ unlock }: DriverContext, { type, user }: ListedTask): boolean {
  return type === "qmdestroy" && user === unlock?.username;
}

/** Our own clones of the VM that the allocation copies. */
async function clonesBehind(
  context: DriverContext,
  { node, source, since }: Allocation,
): Promise<Answer<readonly ListedTask[]>> {
  if (source === undefined) return answered([]);
  const sinceMs = Date.parse(since);
  const listed = await listTasks(context, { node, externalId: source, sinceMs });
  if (!listed.ok) return listed;
  const { user } = context;
  return answered(listed.value.filter((task) => task.type === "qmclone" && task.user === user));
}

/** Since 9.1 the log of a clone names the new VM. Before, nothing does. */
function isOfAnother({ type }: ListedTask, lines: readonly string[], externalId: string): boolean {
  const made = type === "qmclone" ? cloneIn(lines) : undefined;
  return made !== undefined && !guard("allocating-clone-of-this-id", made === externalId);
}

function newestFirst(a: ListedTask, b: ListedTask): number {
  return b.startMs - a.startMs;
}

function isDead({ isRunning, endedWell }: ListedTask): boolean {
  return !isRunning && !endedWell;
}

/**
 * The volumes that a log names as new (qemu-server and pve-storage, 7.4 to 9.2):
 *
 * - "allocated target volume 'zfs:vm-1-disk-0'": copies and moves since 9.2, on every storage;
 * - "scsi0: successfully created disk 'zfs:vm-1-disk-0,size=8G'": on every storage, when whole;
 * - "Formatting '/var/lib/vz/images/1/vm-1-disk-0.qcow2', fmt=…": files, before they are written;
 * - `Logical volume "vm-1-disk-0" created.`: LVM. ZFS and RBD print nothing;
 * - "clone 9/base-9-disk-0.qcow2: images, … to vm-1-disk-0.qcow2 (base=…)": linked clones, files;
 * - "clone base-9-disk-0: base-9-disk-0 snapname __base__ to vm-1-disk-0": linked clones, RBD.
 *
 * All but the first two tell no storage. It is that of the drive which a line before says is being
 * cloned, or the only one that the operation allocates on; else the line proves nothing.
 */
function volumesIn(
  lines: readonly string[],
  allocation: Allocation,
  externalId: string,
): ReadonlySet<string> {
  const storages = storagesOf(allocation);
  const found = new Set<string>();
  let storage = storages.length === 1 ? storages[0] : undefined;
  for (const line of lines) {
    const cloned = /^create (?:full|linked) clone of drive \w+ \(([^:)]+):/.exec(line)?.[1];
    if (cloned !== undefined && storages.includes(cloned)) storage = cloned;
    const whole = /^(?:allocated target volume|\w+: successfully created disk) '([^',]+)/.exec(
      line,
    );
    if (whole?.[1] !== undefined) found.add(whole[1]);
    const name = nameIn(line, externalId);
    if (name !== undefined && storage !== undefined) found.add(`${storage}:${name}`);
  }
  return found;
}

/** The name that a line gives to a new volume of the id, as it follows the storage in its id. */
function nameIn(line: string, externalId: string): string | undefined {
  const own = `vm-${externalId}-`;
  const file = /^Formatting '[^']*\/images\/(\d+)\/([^'/]+)', fmt=/.exec(line);
  if (file?.[1] === externalId) return `${externalId}/${file[2] ?? ""}`;
  for (const [text, nameOf] of lineForms) {
    const [, name = "", base = ""] = text.exec(line) ?? [];
    if (name.startsWith(own)) return nameOf({ name, base, externalId });
  }
  return undefined;
}

interface Named {
  readonly name: string;
  readonly base: string;
  readonly externalId: string;
}

const lineForms: readonly (readonly [RegExp, (named: Named) => string])[] = [
  [
    /^clone (?=\S+: images, .* to ([^/\s]+) \(base=)(\S+):/,
    ({ name, base, externalId }) => `${base}/${externalId}/${name}`,
  ],
  [/^clone (?=\S+: \S+ snapname \S+ to (\S+)$)(\S+):/, ({ name, base }) => `${base}/${name}`],
  [/^\s*Logical volume "([^"]+)" created\.$/, ({ name }) => name],
];

/**
 * Whether a log says that a volume was removed again: `Logical volume "vm-1-disk-0" successfully
 * removed`, or of an RBD image, which it does not name, "Removing image: 100% complete...done.".
 * Files and ZFS volumes are removed in silence.
 */
function isRemovedIn(lines: readonly string[], volume: string): boolean {
  const name = volume.replace(/^.*[:/]/, "");
  return lines.some((line) => {
    if (/Removing image: 100% complete\.\.\.done/.test(line)) return true;
    const words = line.split(/[\s'":/,]+/).map((word) => word.replace(/\.$/, ""));
    return removing.test(line) && !failing.test(line) && words.includes(name);
  });
}

const removing = /\b(?:remov|free|delet)/i;
const failing = /\b(?:unable|failed|error|cannot|can't|could not)\b/i;

/** The storages that an operation allocates on. */
export function storagesOf({ storage, also = [] }: Allocation): string[] {
  return [...new Set([storage, ...also.map((one) => one.storage)])];
}
